"""What a source tells the driver of a batch: its report, packed, with its number and attempt."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from skewless.schemes.api import Arrays
from skewless.spark.report.codec import UnreadableError, pack, unpack


def reports_of(column: str) -> Column:
    """The aggregate that gathers reports for `observe`, as text: older Sparks hand no list on."""
    return F.to_json(F.collect_list(column)).alias("reports")


def gathered(seen: Any) -> list[str]:
    """The reports that were observed: none if nothing was."""
    text = None if seen is None else seen["reports"]
    return [] if text is None else list(json.loads(text))


def source_report(facts: Mapping[str, Any], report: Arrays) -> str:
    """The report of one source as text, with its number and attempt; sketches are mostly zeros."""
    return base64.b64encode(zlib.compress(pack(facts, report), level=1)).decode()


def read_source_report(text: str, template: Arrays) -> tuple[dict[str, Any], Arrays]:
    """The facts and the report of a source; a damaged one raises UnreadableError."""
    try:
        data = zlib.decompress(base64.b64decode(text))
    except (ValueError, zlib.error) as error:
        raise UnreadableError("damaged") from error
    facts, (report,) = unpack(data, template)
    if not all(type(facts.get(name)) is int for name in ("source", "attempt")):
        raise UnreadableError("damaged")
    return facts, report


def source_reports(observed: Iterable[str], template: Arrays) -> list[Arrays]:
    """One report per source, of its last attempt, ordered by source."""
    last: dict[int, tuple[int, Arrays]] = {}
    for text in observed:
        facts, report = read_source_report(text, template)
        source, attempt = facts["source"], facts["attempt"]
        if source not in last or last[source][0] < attempt:
            last[source] = attempt, report
    return [last[source][1] for source in sorted(last)]
