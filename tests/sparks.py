"""What the tests' own sessions need on the Spark that they run on."""

from __future__ import annotations

import pyspark

from skewless.spark.input.version import CHECKSUMS, HAS_CHECKSUMS, parsed

SPARK = parsed(pyspark.__version__)
# Spark 4.1 compares checksums of shuffles only where it is told to, later ones by themselves.
SETTINGS = dict.fromkeys(CHECKSUMS, "true") if SPARK == HAS_CHECKSUMS else {}
if SPARK < (4, 2):
    SETTINGS["spark.python.daemon.module"] = "tests.daemon"  # says why
# On streams of older ones only schemes that do not depend on the order of rows are allowed.
SCHEME_OF_STREAMS = "partial" if SPARK >= HAS_CHECKSUMS else "key"
