"""Which jars let Spark talk to Kafka."""

from __future__ import annotations

from pathlib import Path

import pyspark

from skewless.errors import SkewlessError
from skewless.spark.input.version import parsed
from skewless.spark.lab.jars import Packages, fetched, spark_jars

OLDEST_SPARK = (4, 0)  # before, it has no word for text that is not UTF-8

_SQL = "org.apache.spark:spark-sql-kafka-0-10_2.13"
_TOKENS = "org.apache.spark:spark-token-provider-kafka-0-10_2.13"
_CLIENTS = "org.apache.kafka:kafka-clients"
_POOL = "org.apache.commons:commons-pool2"
# Versions of connector (None: Spark's own), token provider (the same), clients, pool. What else the
# connector needs is in Spark. Where Spark's own is not in the registry, one that was tried with it.
_VERSIONS: dict[tuple[int, ...], tuple[str | None, str | None, str, str]] = {
    (4, 0): (None, None, "3.9.0", "2.12.0"),
    (4, 1): (None, None, "3.9.1", "2.12.1"),
    (4, 2): (None, None, "3.9.2", "2.13.1"),
    (4, 3): ("4.2.0", "4.0.0", "3.9.1", "2.12.1"),
}


def connector_packages(version: str = pyspark.__version__) -> Packages:
    """The coordinates for this Spark."""
    if parsed(version) < OLDEST_SPARK:
        raise SkewlessError(
            f"Kafka needs Spark {'.'.join(map(str, OLDEST_SPARK))} or later, and this is "
            f"{version}: upgrade it."
        )
    newest = max(_VERSIONS)
    sql, tokens, clients, pool = _VERSIONS.get(parsed(version), _VERSIONS[newest])
    pinned = (
        f"{_SQL}:{sql or version}",
        f"{_TOKENS}:{tokens or version}",
        f"{_CLIENTS}:{clients}",
        f"{_POOL}:{pool}",
    )
    return Packages(f"connector-{'-'.join(c.rsplit(':', 1)[1] for c in pinned)}", pinned)


def connector_jars() -> list[Path]:
    """The jars for `spark.jars`, fetched at the first use; none if Spark's own folder has them."""
    if any(spark_jars().glob("spark-sql-kafka-0-10_*.jar")):
        return []
    return fetched(connector_packages())
