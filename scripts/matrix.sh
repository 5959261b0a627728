#!/usr/bin/env bash
# Runs the Spark tests on each Spark that is supported, in an environment of its own, and prints what works where; fails
# if a test failed.
#   scripts/matrix.sh [VERSION …]
# MATRIX_TESTS: other tests. MATRIX_AT_ONCE: how many Sparks at a time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

VERSIONS=("$@")
[ ${#VERSIONS[@]} -gt 0 ] || VERSIONS=(3.5.9 4.0.5 4.1.4 4.2.1 4.3.0)
# Left out is what asks Spark for nothing that differs between versions: its code takes nothing from
# src/skewless/spark/input/version.py, and stands on what the other tests try.
LEFT_OUT=(tests/spark/test_{app_counting,app_examples,grafana,live_page,snippets}.py tests/faults/test_{apps_faults,interrupt}.py)
export TESTS=${MATRIX_TESTS:-tests/spark tests/faults ${LEFT_OUT[*]/#/--ignore=}}

# An environment with this Spark, made once; the other packages are those of constraints.txt.
make_environment() {
  local version=$1 folder=.matrix/$1
  [ -f "$folder/.ready" ] && return
  mkdir -p .matrix
  python3 -m venv --clear "$folder"
  # An older Spark asks for other versions of what it talks to the JVM and to Connect with.
  grep -vE '^(pyspark|py4j|grpcio.*|googleapis-common-protos|protobuf|numpy)==' constraints.txt >".matrix/constraints-$version.txt"
  echo "pyspark==$version" >>".matrix/constraints-$version.txt"
  case $version in # wants NumPy 1, which newer versions of pyarrow and river do not take
  3.5.*) sed -i 's/^pyarrow==.*/pyarrow==18.1.0/; /^river==/d' ".matrix/constraints-$version.txt" ;;
  esac
  PIP_CONSTRAINT=.matrix/constraints-$version.txt PIP_BUILD_CONSTRAINT=constraints.txt \
    "$folder/bin/python" -m pip install --quiet --editable '.[dev]'
  touch "$folder/.ready"
}

# Failures are what the table tells, so they end nothing.
run_tests() {
  rm -f ".matrix/$1.xml" ".matrix/$1.status"
  local status=0
  # A test that takes too long is to fail alone: by default, which is for compiled loops that never end, it ends all.
  # shellcheck disable=SC2086
  ".matrix/$1/bin/python" -m pytest -vv --timeout=900 --timeout-method=signal --junit-xml=".matrix/$1.xml" $TESTS \
    >".matrix/$1.log" 2>&1 || status=$?
  echo "$status" >".matrix/$1.status"
  echo "Spark $1: $(tail -n 1 ".matrix/$1.log")"
}
export -f run_tests

for version in "${VERSIONS[@]}"; do
  make_environment "$version"
done
printf '%s\n' "${VERSIONS[@]}" | xargs --max-procs="${MATRIX_AT_ONCE:-2}" -I{} bash -c 'run_tests {}'
.venv/bin/python scripts/matrix_table.py "${VERSIONS[@]}"
