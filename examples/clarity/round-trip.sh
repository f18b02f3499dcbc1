#!/bin/sh
# For a product that keeps sessions as {"sessionId","sessionBlob"}: take one in, run one turn, give
# the new one back.
#   round-trip.sh MESSAGE <envelope.json >next-envelope.json
# An empty envelope, or an id without a blob, begins cold. The answer goes to fd 3 if that is open, else
# to stderr.
set -eu
message=$1
key=${KEY:-request}
envelope=$(mktemp)
trap 'rm -f "$envelope"' EXIT
cat >"$envelope"
if [ -s "$envelope" ]; then
    rejoin import --envelope "$envelope" --agent "${AGENT:-claude}" --key "$key" >&2
fi
answer=$(rejoin send --key "$key" --agent "${AGENT:-claude}" "$message")
if [ -e /dev/fd/3 ]; then
    printf '%s\n' "$answer" >&3
else
    printf '%s\n' "$answer" >&2
fi
rejoin export "$key" --envelope
