#!/usr/bin/env python3
"""chat.py KEY TEXT: goes on with your conversation KEY, prints the answer while it comes."""
import json, os, sys, urllib.error, urllib.request

key, text = sys.argv[1:3]
request = urllib.request.Request(
    os.environ["REJOIN_HUB"] + "/api/send",
    json.dumps({"key": key, "text": text}).encode(),
    {"authorization": "Bearer " + os.environ["REJOIN_TOKEN"],
     "content-type": "application/json", "accept": "text/event-stream"})
try:
    for line in urllib.request.urlopen(request):
        event = json.loads(line[5:]) if line.startswith(b"data:") else {"type": ""}
        if event["type"] == "text":
            print(event["text"], flush=True)
        elif event["type"] == "turn.ended":
            print(event["summary"], file=sys.stderr)
            sys.exit(event["status"] != "succeeded")
except urllib.error.HTTPError as refused:
    sys.exit(json.load(refused)["detail"])
