"""Which Spark is new enough; imports none, so that an old one gets a clear sentence too."""

from __future__ import annotations

from skewless.errors import SkewlessError

OLDEST_SPARK = (4, 2)


def check_version(version: str, what: str) -> None:
    """Refuse a Spark whose retries could lose or repeat rows that were routed by their order."""
    parts = tuple(int(p) for p in version.split(".")[:2])
    if parts < OLDEST_SPARK:
        raise SkewlessError(
            f"{what} is version {version}, but routing is exact under retries only from Spark "
            f"{'.'.join(map(str, OLDEST_SPARK))} on: upgrade it."
        )
