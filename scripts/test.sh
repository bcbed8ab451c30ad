#!/usr/bin/env bash
# All tests, the quick ones first: a mistake shows early. The browser's program is Debian's chromium.
set -euo pipefail
cd "$(dirname "$0")/.."
pytest=(.venv/bin/python -m pytest -q)
status=0

# Real processes keep real deadlines, which a busy machine can miss: what failed is tried once more,
# alone. What is broken fails twice.
patiently() {
  "${pytest[@]}" "$@" && return 0
  echo "== once more, alone: what failed"
  "${pytest[@]}" "$@" -n 0 --last-failed --last-failed-no-failures none
}

echo "== fast"
# Four at a time: much of their time is spent waiting for processes.
patiently -n 4 --dist worksteal -m "not redis and not postgres and not swarm and not e2e and not benchmark" || status=1
echo "== Redis and PostgreSQL"
patiently -m "(redis or postgres) and not e2e and not benchmark" || status=1
echo "== swarm"
# Two files at a time: most of their time is spent waiting for averaging rounds.
patiently -n 2 --dist loadfile -m "swarm and not e2e and not benchmark" || status=1
echo "== end to end"
patiently -m "e2e and not benchmark" || status=1
exit $status
