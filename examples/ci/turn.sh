#!/bin/sh
# One turn in a job. The answer goes to stdout and into the job's summary, the verdict to the log.
#   turn.sh KEY MESSAGE
set -eu
key=$1
message=$2
mkdir -p .talk
code=0
rejoin send --key "$key" --bundle .talk/talk.rejoin --agent "${AGENT:-claude}" \
    --permission "${PERMISSION:-read-only}" "$message" >.talk/answer.md || code=$?
cat .talk/answer.md
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
    cat .talk/answer.md >>"$GITHUB_STEP_SUMMARY"
fi
exit "$code"
