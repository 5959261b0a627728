#!/usr/bin/env bash
# Proves the set-up as a newcomer meets it: a clone of HEAD, an empty home, no package cache, no compiled code.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d -t skewless-fresh-XXXXXX)
trap 'rm -rf "$work"' EXIT
mkdir "$work/home" "$work/tmp"
git clone --quiet --no-hardlinks . "$work/skewless"

# Runs a command there and says how long it took.
timed() {
  local name=$1 start=$SECONDS
  shift
  (
    cd "$work/skewless"
    env -u NUMBA_CACHE_DIR -u PYTHONPATH -u PYSPARK_PYTHON -u SPARK_HOME -u VIRTUAL_ENV \
      HOME="$work/home" TMPDIR="$work/tmp" XDG_CACHE_HOME="$work/home/.cache" PIP_NO_CACHE_DIR=1 \
      "$@"
  ) >"$work/$name.log" 2>&1 || {
    tail -n 40 "$work/$name.log" >&2
    echo "fresh: $name failed after $((SECONDS - start)) s: $*" >&2
    exit 1
  }
  printf 'fresh: %-6s %4d s   %s\n' "$name" "$((SECONDS - start))" "$*"
}

timed setup make setup
timed demo make demo
timed smoke .venv/bin/python -m skewless simulate \
  --stream zipf:z=1.0,keys=10000,messages=100000 --scheme graded --workers 10 --json
