"""The Java that Spark runs on, asked for its version before Spark starts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pyspark

from skewless.errors import SkewlessError
from skewless.spark.input.version import parsed

_LIMIT_S = 60
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


def java() -> str:
    """The Java that Spark would start, or one sentence."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home) / "bin" / "java") if home else "java")
    if found is None:
        where = f" in JAVA_HOME '{home}'" if home else ""
        raise SkewlessError(
            f"There is no Java{where}: install version 17 or later, for example with apt-get "
            "install default-jre-headless, or set JAVA_HOME."
        )
    return found


def check_java() -> None:
    """Refuse a Java that is missing, broken or too old; Spark would answer with a trace."""
    program, needed = java(), 17 if parsed(pyspark.__version__) >= (4, 0) else 8
    try:
        asked = subprocess.run(
            [program, "-version"], capture_output=True, text=True, timeout=_LIMIT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _broken(program, str(error)) from error
    said = asked.stderr + asked.stdout
    if asked.returncode:
        raise _broken(program, said.strip().splitlines()[0] if said.strip() else "it says nothing")
    version = _VERSION.search(said)
    if version is not None and int(version[1]) < needed:
        raise SkewlessError(
            f"The Java at '{program}' is version {version[1]}, and Spark {pyspark.__version__} "
            f"needs {needed} or later: install one, or set JAVA_HOME to it."
        )


def _broken(program: str, why: str) -> SkewlessError:
    return SkewlessError(
        f"The Java at '{program}' does not run ({why}): install version 17 or later, or set "
        "JAVA_HOME to one that does."
    )
