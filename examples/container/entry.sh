#!/bin/sh
# One turn of a conversation that lives in one file.
#   entry.sh KEY MESSAGE
# TALKS: where the files lie (default /talks). AGENT: who answers first (default claude).
set -eu
key=$1
message=$2
talks=${TALKS:-/talks}
mkdir -p "$talks"
# exec: signals of the container engine reach rejoin, which ends the turn in order.
exec rejoin send --key "$key" --bundle "$talks/$key.rejoin" --agent "${AGENT:-claude}" "$message"
