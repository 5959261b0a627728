"""What Spark observed of a batch job, asked for without waiting: its action may never run.

Spark tells when the first action ends. On Connect the answer is empty until then. On classic Spark
`Observation.get` waits for it, for ever if need be, in a thread of Python's and one of the JVM's;
so we ask the JVM first whether it would, which is the one look behind PySpark's own API. A Spark
that cannot say so is waited for in a thread.
"""

from __future__ import annotations

import threading
from typing import Any

from pyspark.sql import Observation

Seen = list[dict[str, Any]]
_TOLD_S = 0.5  # after its action an older Spark tells of a job in this time


class Observed:
    """The observations of one job."""

    def __init__(self, *observations: Observation) -> None:
        self._observations = observations
        self._seen: Seen | None = None
        self._waits = not all(map(_can_be_asked, observations))
        if self._waits:
            self._thread = threading.Thread(
                target=self._wait, name="skewless-observed", daemon=True
            )
            self._thread.start()

    def seen(self) -> Seen | None:
        """What each observation saw, or None as long as no action of the job has ended.

        Raises what Spark raises if the session has ended meanwhile.
        """
        if self._waits:
            self._thread.join(_TOLD_S)
            return self._seen
        if not all(map(_is_told, self._observations)):
            return None
        return [observation.get for observation in self._observations]

    def _wait(self) -> None:
        try:
            self._seen = [observation.get for observation in self._observations]
        except Exception:  # the session ended: nothing was seen
            self._seen = [{} for _ in self._observations]


def _future(observation: Any) -> Any:
    """The JVM's promise of what will be seen; None on Connect, which has no JVM."""
    return observation._jo.future() if hasattr(observation, "_jo") else None


def _can_be_asked(observation: Any) -> bool:
    try:
        _future(observation)
    except Exception:  # before Spark 4 there is no such method
        return False
    return True


def _is_told(observation: Any) -> bool:
    future = _future(observation)
    return bool(observation.get) if future is None else bool(future.isCompleted())
