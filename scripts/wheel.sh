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

# Executors that have the libraries but not the package: it comes with the job, in a wheel or a zip, to another user
# without a home, from an installation that only others may write to.
env/bin/python -m pip uninstall --quiet --yes skewless
env/bin/python -m zipfile -e "$wheel" unpacked
cp "$wheel" wheel.zip # Spark puts .zip, .egg and .jar on the workers' path, and leaves .whl alone
(cd unpacked && ../env/bin/python -m zipfile -c ../skewless.zip skewless)
cp "$OLDPWD/scripts/submitted.py" .
other=()
if [ "$(id -u)" = 0 ]; then
  other=(runuser -u nobody --)
  chmod 755 "$work"
  if ! "${other[@]}" env/bin/python -c "" 2>/dev/null; then
    other=()
    echo "wheel: nobody else may run $(readlink -f env/bin/python), so root submits"
  fi
fi
spark_home=$(env/bin/python -c 'import pyspark, pathlib; print(pathlib.Path(pyspark.__file__).parent)')
mkdir -p "$spark_home/work" scratch # where a local cluster keeps what its executors write
chmod 777 "$spark_home/work" scratch
for package in wheel.zip skewless.zip; do
  env -u HOME -u NUMBA_CACHE_DIR XDG_CACHE_HOME="$work/scratch/cache" SPARK_LOCAL_IP=127.0.0.1 SPARK_HOME="$spark_home" \
    PYSPARK_PYTHON="$work/env/bin/python" TMPDIR="$work/scratch" SPARK_LOCAL_DIRS="$work/scratch" \
    "${other[@]}" env/bin/spark-submit --master 'local-cluster[2,1,1024]' --conf spark.ui.enabled=false \
    --conf spark.executor.memory=1g --conf spark.jars.ivy="$work/scratch" --py-files "$package" submitted.py \
    2>"$work/submit.log" || { tail -n 30 "$work/submit.log" >&2; exit 1; }
done
echo "wheel: $(basename "$wheel") installs, and the README's example runs"
