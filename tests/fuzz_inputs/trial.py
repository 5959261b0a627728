"""One input at a time: it gives a result or one sentence within its time, or it is a defect."""

from __future__ import annotations

import signal
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from skewless.errors import SkewlessError

LIMIT_S = 20.0
LONGEST_SENTENCE = 20_000


class TooLong(BaseException):
    """The time is up; not an Exception, so that nobody takes it for one of their own."""


@dataclass
class Trials:
    """What became of all inputs of one kind."""

    kind: str
    counts: Counter[str] = field(default_factory=Counter)
    defects: list[str] = field(default_factory=list)

    def run(self, action: Callable[[], object], shown: object, limit_s: float = LIMIT_S) -> None:
        """Try one input; `shown` is what to say of it if it is a defect."""
        try:
            with _limited(limit_s):
                action()
            self.counts["fine"] += 1
        except SkewlessError as error:
            self.counts["refused"] += 1
            if "\n" in str(error) or not str(error).rstrip().endswith((".", "?", "…")):
                self._defect("not one sentence", shown, str(error))
            if len(str(error)) > LONGEST_SENTENCE:
                self._defect("a sentence without end", shown, str(error)[:200])
        except TooLong:
            self._defect("too long", shown, "")
        except Exception:
            self._defect("a traceback", shown, traceback.format_exc(limit=-4))

    def _defect(self, what: str, shown: object, why: str) -> None:
        self.counts["defect"] += 1
        self.defects.append(f"{self.kind}: {what}: {str(shown)[:600]!r}\n{why}")


@contextmanager
def _limited(limit_s: float) -> Any:
    def ring(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
