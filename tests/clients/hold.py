"""A client made from /openapi.json alone: holds a conversation, watches it, answers, cancels, comes back."""

import json
import sys
import threading
import time

import httpx

folder, url, token, story = sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
sys.path.insert(0, folder)
from made import AuthenticatedClient  # noqa: E402
from made.api.conversations import foresee, send, send_message  # noqa: E402
from made.api.questions import answer_turn, inbox  # noqa: E402
from made.api.turns import cancel_turn, show_turn  # noqa: E402
from made.models import AnswerBody, AnswerBodyAnswersType0, Choice, MessageRequest  # noqa: E402

client = AuthenticatedClient(base_url=url, token=token, timeout=120)


class Watcher(threading.Thread):
    """Reads events until the connection is closed, and goes on from the last one it saw."""

    def __init__(self, path, last=None):
        super().__init__(daemon=True)
        self.path, self.last, self.seen, self.open = path, last, [], threading.Event()
        self.start()
        assert self.open.wait(30)

    def run(self):
        headers = {"Authorization": f"Bearer {token}"}
        if self.last is not None:
            headers["Last-Event-ID"] = str(self.last)
        with httpx.stream("GET", url + self.path, headers=headers, timeout=120) as self.response:
            assert self.response.status_code == 200
            self.open.set()
            try:
                for line in self.response.iter_lines():
                    if line.startswith("data: "):
                        self.seen.append(json.loads(line[6:]))
            except httpx.HTTPError:
                pass

    def until(self, fits):
        deadline = time.time() + 60
        while not any(fits(event) for event in list(self.seen)):
            assert time.time() < deadline, self.seen
            time.sleep(0.01)
        return list(self.seen)


def ended(turn):
    return lambda event: event["type"] == "turn.ended" and event["turn_id"] == turn


def settled(turn):
    deadline = time.time() + 60
    while True:
        view = show_turn.sync(turn, client=client)
        if view.status not in ("queued", "running", "waiting"):
            return view
        assert time.time() < deadline, view
        time.sleep(0.05)


first = send.sync(client=client, wait=True, body=MessageRequest(text=story["say"][0], key="k", agent=story["agent"], workdir=story["workdir"], model=story["model"]))
assert (first.status, first.verdict) == ("succeeded", "started"), first
conversation = first.conversation_id
assert foresee.sync(conversation, client=client).verdict in ("resumed", "live")

watcher = Watcher(f"/api/conversations/{conversation}/events")
second = send_message.sync(conversation, client=client, wait=True, body=MessageRequest(text=story["say"][1]))
assert second.status == "succeeded" and second.verdict in ("resumed", "live"), second
live = watcher.until(ended(second.turn_id))
watcher.response.close()
third = send_message.sync(conversation, client=client, wait=True, body=MessageRequest(text=story["say"][2]))
again = Watcher(f"/api/conversations/{conversation}/events", live[-1]["seq"]).until(ended(third.turn_id))
numbers = [event["seq"] for event in live + again]
assert numbers == sorted(set(numbers)), numbers
whole = Watcher(f"/api/conversations/{conversation}/events", 0).until(ended(third.turn_id))
assert [e for e in whole if e["seq"] >= live[0]["seq"]] == live + again

if "ask" in story:
    waiting = send_message.sync(conversation, client=client, wait=True, body=MessageRequest(text=story["ask"]))
    assert waiting.status == "waiting", waiting
    assert [turn.turn_id for turn in inbox.sync(client=client).turns] == [waiting.turn_id]
    question = waiting.questions[0]
    answers = AnswerBodyAnswersType0()
    for item in question.questions:
        answers[item.id] = [item.options[-1].label]
    answer_turn.sync(waiting.turn_id, client=client, body=AnswerBody(question_id=question.id, answers=answers))
    view = settled(waiting.turn_id)
    assert view.status == "succeeded", view
    late = answer_turn.sync_detailed(waiting.turn_id, client=client, body=AnswerBody(question_id=question.id, answers=answers))
    assert late.status_code == 409, late
    assert inbox.sync(client=client).turns == []

if "approve" in story:
    body = MessageRequest(text=story["approve"], permission="ask")
    waiting = send_message.sync(conversation, client=client, wait=True, body=body)
    assert waiting.status == "waiting", waiting
    question = waiting.questions[0]
    answer_turn.sync(waiting.turn_id, client=client, body=AnswerBody(question_id=question.id, decision=Choice.ALLOW))
    assert settled(waiting.turn_id).status == "succeeded"

slow = send_message.sync(conversation, client=client, body=MessageRequest(text=story["slow"]))
Watcher(f"/api/conversations/{conversation}/events", 0).until(lambda e: e["type"] == "turn.started" and e["turn_id"] == slow.turn_id)
assert cancel_turn.sync(slow.turn_id, client=client).status == "cancelled"
last = send_message.sync(conversation, client=client, wait=True, body=MessageRequest(text=story["say"][3]))
assert last.status == "succeeded", last
print("held")
