"""Plans of joins of two streams: fixed for the life of a checkpoint, and kept in it.

What a stream joined so far waits in Spark's state store by key and slot. Rows that come later must
follow the same plan, or they would not meet it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from skewless.errors import SkewlessError
from skewless.spark.adapt.plans import checkpoint_path, make_folder, write_once
from skewless.spark.join.keys import JoinKeys
from skewless.spark.join.kinds import Kind
from skewless.spark.join.plan import JoinPlan


def kept_plan(checkpoint: str, keys: JoinKeys, kind: Kind) -> JoinPlan | None:
    """The plan that a checkpoint has for this join, or None."""
    path = _path(checkpoint, keys, kind)
    return JoinPlan.load(path) if path.exists() else None


def keep_plan(checkpoint: str, keys: JoinKeys, kind: Kind, plan: JoinPlan) -> None:
    """Write a plan to a checkpoint, or refuse it if another is there."""
    path = _path(checkpoint, keys, kind)
    make_folder(path.parent)
    write_once(path, plan.to_json().encode())
    if path.read_text() != plan.to_json():
        raise SkewlessError(
            f"The checkpoint '{checkpoint}' was written with another plan of this join, which what "
            "waits there follows: leave plan= out to go on with it, or use a new checkpoint."
        )


def _path(checkpoint: str, keys: JoinKeys, kind: Kind) -> Path:
    """A file per join, for a query may have several."""
    words = "\n".join([kind.name, *(f"{a}\t{b}" for a, b in keys.pairs), *keys.types])
    digest = hashlib.sha256(words.encode()).hexdigest()[:16]
    return Path(checkpoint_path(checkpoint)) / "skewless" / f"join-{digest}.json"
