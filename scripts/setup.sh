#!/usr/bin/env bash
# Make .venv and install the pinned packages, only when their list has changed.
# Usage: scripts/setup.sh run|dev
set -euo pipefail
cd "$(dirname "$0")/.."
kind="${1:-run}"

fail() {
  echo "Cannot install: $1" >&2
  exit 1
}

fits() {
  "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null
}

python=""
for candidate in "${PYTHON:-}" python3.11 python3.12 python3.13 python3; do
  if [ -n "$candidate" ] && command -v "$candidate" >/dev/null 2>&1 && fits "$candidate"; then
    python="$candidate"
    break
  fi
done
if [ ! -x .venv/bin/python ]; then
  [ -n "$python" ] || fail "Python 3.11, 3.12 or 3.13 is needed and was not found; install it, or name it with PYTHON=…"
  "$python" -c 'import ensurepip, venv' 2>/dev/null || fail "this Python cannot make virtual environments; install its venv package (Debian: python3-venv)."
  echo "Making .venv with $("$python" --version)."
  "$python" -m venv .venv || fail "the folder .venv could not be made; see the lines above."
fi
fits .venv/bin/python || fail "the Python of .venv does not fit (3.11 to 3.13); remove the folder .venv and try again."

files=(requirements/train.txt requirements/server.txt)
[ "$kind" = dev ] && files+=(requirements/dev.txt)
stamp=".venv/.installed-$kind"
wanted="$(cat "${files[@]}" requirements/constraints.txt | sha256sum)"
[ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && exit 0

echo "Installing pinned packages; the first time takes a few minutes."
pip=(.venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint requirements/constraints.txt)
# By exact version and first: an open range would bring a build of several gigabytes.
"${pip[@]}" "$(grep '^torch==' requirements/train.txt)" || fail "torch could not be installed; see the lines above."
args=()
for file in "${files[@]}"; do args+=(--requirement "$file"); done
"${pip[@]}" "${args[@]}" setuptools || fail "a package could not be installed; see the lines above."
echo "$wanted" >"$stamp"
