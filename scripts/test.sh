#!/usr/bin/env bash
# All tests, the quick ones first: a mistake shows early. The browser's program is Debian's chromium.
set -euo pipefail
cd "$(dirname "$0")/.."
pytest=(.venv/bin/python -m pytest -q)
status=0

echo "== fast"
# Four at a time: much of their time is spent waiting for processes.
"${pytest[@]}" -n 4 --dist worksteal -m "not redis and not postgres and not swarm and not e2e and not benchmark" || status=1
echo "== Redis and PostgreSQL"
"${pytest[@]}" -m "(redis or postgres) and not e2e and not benchmark" || status=1
echo "== swarm"
# One at a time: rounds have deadlines, which two swarms on two cores sometimes miss.
"${pytest[@]}" -m "swarm and not quiet and not e2e and not benchmark" || status=1
echo "== swarm, measured"
"${pytest[@]}" -m "swarm and quiet and not e2e and not benchmark" || status=1
echo "== end to end"
"${pytest[@]}" -m "e2e and not benchmark" || status=1
exit $status
