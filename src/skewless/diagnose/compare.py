"""Did it help: two event logs of the same work, before and after."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import Any

from skewless.diagnose.event_log.log import LogDiagnosis
from skewless.diagnose.units import duration, percent


@dataclass(frozen=True)
class Pair:
    """All stages with one operator and one set of columns; a figure is 0 where there is no such.

    gain: the share of the time before that was saved; negative where it takes longer
    """

    label: str
    before_took_s: float
    after_took_s: float
    before_lost_s: float
    after_lost_s: float
    gain: float


@dataclass(frozen=True)
class LogComparison:
    """Two logs; the fields of `skewless diagnose --event-log A --against B --json`."""

    before: LogDiagnosis
    after: LogDiagnosis
    pairs: list[Pair]
    gain: float
    verdict: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as in JSON; `stages` are those before."""
        return {
            **self.before.to_dict(),
            "verdict": self.verdict,
            "gain": self.gain,
            "pairs": [asdict(pair) for pair in self.pairs],
            "against": self.after.to_dict(),
        }

    def to_json(self) -> str:
        """The same as text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def __repr__(self) -> str:
        return self.verdict

    def _repr_html_(self) -> str:
        from skewless.diagnose.page.log import comparison_body
        from skewless.diagnose.page.page import fragment

        return fragment(comparison_body(self))


def compare_logs(before: LogDiagnosis, after: LogDiagnosis) -> LogComparison:
    """Stages are matched by what they do: numbers change from run to run."""
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0] * 4)
    for side, log in enumerate((before, after)):
        for stage in log.stages:
            by = f" on {', '.join(stage.columns)}" if stage.columns else ""
            entry = sums[stage.operator + by]
            entry[side] += stage.took_s
            entry[2 + side] += stage.lost_s
    pairs = [
        Pair(label, before_s, after_s, lost_before_s, lost_after_s, _gain(before_s, after_s))
        for label, (before_s, after_s, lost_before_s, lost_after_s) in sums.items()
    ]
    pairs.sort(key=lambda pair: -abs(pair.before_took_s - pair.after_took_s))
    took = [sum(s.took_s for s in log.stages) for log in (before, after)]
    whole = before.took_s is not None and after.took_s is not None
    if whole:
        took = [float(log.took_s or 0.0) for log in (before, after)]
    gain = _gain(*took)
    return LogComparison(before, after, pairs, gain, _verdict(before, after, took, gain, whole))


def _gain(before_s: float, after_s: float) -> float:
    return 1 - after_s / before_s if before_s else 0.0


def _verdict(
    before: LogDiagnosis, after: LogDiagnosis, took: list[float], gain: float, whole: bool
) -> str:
    if gain > 0.05:
        said = f"It helped: {percent(gain)} of the time is saved"
    elif gain < -0.05:
        said = f"It did not help: it takes {percent(-gain)} longer"
    else:
        said = "It made no difference that matters"
    what = "the application took" if whole else "the stages took together"
    sentence = (
        f"{said}; {what} {duration(took[0])} before and {duration(took[1])} after, of which "
        f"{duration(before.lost_s)} and {duration(after.lost_s)} were lost"
    )
    if before.records_written != after.records_written:
        sentence += (
            f"; but {before.records_written:,} records were written before and "
            f"{after.records_written:,} after, so the results may differ"
        )
    return sentence + ". Logs hold no results: skewless.spark.verify compares two DataFrames."
