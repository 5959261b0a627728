#!/usr/bin/env bash
# Builds the sdist and the wheel, installs the wheel into a new environment outside the tree, and uses it there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d -t skewless-wheel-XXXXXX)
trap 'rm -rf "$work"' EXIT
PIP_CONSTRAINT=$PWD/constraints.txt PIP_BUILD_CONSTRAINT=$PWD/constraints.txt \
  .venv/bin/python -m build --outdir "$work/dist" . >"$work/build.log" 2>&1 ||
  { tail -n 30 "$work/build.log" >&2; exit 1; }
.venv/bin/python -m venv "$work/env"
wheel=$(ls "$work"/dist/*.whl)
PIP_CONSTRAINT=$PWD/constraints.txt PIP_BUILD_CONSTRAINT=$PWD/constraints.txt \
  "$work/env/bin/python" -m pip install --quiet "${wheel}[spark,plots]"
.venv/bin/python scripts/readme_example.py >"$work/example.py"

cd "$work" # outside the tree, so that only the installed package can be meant
env/bin/skewless --version
env/bin/python -m skewless simulate --stream zipf:z=1.0,keys=1000,messages=10000 --scheme graded --workers 8
# The environment is not activated, so Spark has to be told its Python, as the README says.
PYSPARK_PYTHON="$work/env/bin/python" SPARK_LOCAL_IP=127.0.0.1 env/bin/python example.py
echo "wheel: $(basename "$wheel") installs, and the README's example runs"
