#!/usr/bin/env bash
# Makes .venv with the exact versions of constraints.txt, and ensures that Java 17 or later is installed.
#
#   scripts/setup.sh            for all who use skewless
#   scripts/setup.sh chromium   ensures the browser that the tests of the live page need, and nothing else
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
  printf 'set-up: %s\n' "$*" >&2
  exit 1
}

# Runs a command as root, or returns 1 where that would need a password.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    sudo -n "$@"
  else
    return 1
  fi
}

# Installs the first of the named Debian packages that exists here; 1 where that is not allowed.
install_first_of() {
  command -v apt-get >/dev/null || return 1
  as_root apt-get update -qq || return 1
  local package
  for package in "$@"; do
    if apt-cache show "$package" >/dev/null 2>&1; then
      as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "$package" && return 0
    fi
  done
  return 1
}

# For a newer Python, not all packages of constraints.txt are ready-made.
is_supported() {
  "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null
}

find_python() {
  local candidate
  for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
    if is_supported "$candidate"; then
      echo "$candidate"
      return
    fi
  done
  fail "no Python from 3.11 to 3.14 was found; install one, for example with: apt-get install python3"
}

has_venv() {
  "$1" -c 'import ensurepip, venv' 2>/dev/null
}

make_venv() {
  local python
  python=$(find_python)
  if ! has_venv "$python"; then
    local version
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    install_first_of "python$version-venv" python3-venv || true
    has_venv "$python" ||
      fail "$python cannot make virtual environments; run: apt-get install python$version-venv"
  fi
  "$python" -m venv --clear .venv
}

java_major() {
  local java=java
  [ -z "${JAVA_HOME:-}" ] || java=$JAVA_HOME/bin/java
  # Prints 17 for `version "17.0.15"` and 1 for `version "1.8.0"`; 0 where there is no Java.
  local major
  major=$("$java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1) || true
  echo "${major:-0}"
}

ensure_java() {
  [ "$(java_major)" -lt 17 ] || return 0
  if [ -z "${JAVA_HOME:-}" ]; then
    install_first_of openjdk-21-jre-headless openjdk-17-jre-headless default-jre-headless || true
  fi
  [ "$(java_major)" -ge 17 ] || fail "Spark needs Java 17 or later: install it, for example with" \
    "'apt-get install default-jre-headless', or set JAVA_HOME to one, then run make again."
}

has_chromium() {
  [ -x "${SKEWLESS_CHROMIUM:-}" ] || command -v chromium || command -v chromium-browser || command -v google-chrome
} >/dev/null

ensure_chromium() {
  has_chromium || install_first_of chromium chromium-browser || true
  has_chromium || fail "the tests of the live page need Chromium: install it, for example with" \
    "'apt-get install chromium', or set SKEWLESS_CHROMIUM to its program, then run make again."
}

if [ "${1:-}" = chromium ]; then
  ensure_chromium
  exit
fi
ensure_java
if ! is_supported .venv/bin/python; then
  make_venv
fi
# Packages that come as source (pyspark does) are built in an environment of their own, which pip
# makes from what they ask for: the constraints hold there too, by either of the two names that
# pip has had for this.
export PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt
.venv/bin/python -m pip install --quiet --editable '.[dev]'
