"""Plans of joins of two streams: fixed for the life of a checkpoint, and kept in it.

What a stream joined so far waits in Spark's state store by key and slot. Rows that come later must
follow the same plan, or they would not meet it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from skewless.errors import SkewlessError
from skewless.spark.adapt.files import checkpoint_path, make_folder, write_once
from skewless.spark.join.keys import JoinKeys
from skewless.spark.join.kinds import Kind
from skewless.spark.join.plan import JoinPlan


def kept_plan(checkpoint: str, keys: JoinKeys, kind: Kind) -> JoinPlan | None:
    """The plan that a checkpoint has for this join, or None."""
    path = _path(checkpoint, keys, kind)
    return JoinPlan.from_json(_read(path)) if path.exists() else None


def keep_plan(checkpoint: str, keys: JoinKeys, kind: Kind, plan: JoinPlan) -> None:
    """Write a plan to a checkpoint, or refuse it if another is there."""
    path = _path(checkpoint, keys, kind)
    make_folder(path.parent)
    text = plan.to_json()
    write_once(path, f"{text}\n{_digest(text)}".encode())
    if _read(path) != text:
        raise SkewlessError(
            f"The checkpoint '{checkpoint}' was written with another plan of a join by this key, "
            "which what waits there follows: leave plan= out to go on with it, or give a new "
            "checkpoint, or a folder of its own if this is a second join of the query."
        )


def _read(path: Path) -> str:
    """The plan's text. A slot that differs in one digit would keep rows from those that wait, so
    its digest stands behind it, where 0.3 or later wrote it."""
    try:
        text, _, digest = path.read_text().partition("\n")
    except (OSError, UnicodeDecodeError):
        text, digest = "", "unreadable"
    if digest and digest != _digest(text):
        raise SkewlessError(
            f"The plan '{path}' is damaged, and what waits in the checkpoint follows it: restore "
            "it, or start with a new checkpoint."
        )
    return text


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _path(checkpoint: str, keys: JoinKeys, kind: Kind) -> Path:
    """A file per join, for a query may have several."""
    words = "\n".join([kind.name, *(f"{a}\t{b}" for a, b in keys.pairs), *keys.types])
    digest = hashlib.sha256(words.encode()).hexdigest()[:16]
    return Path(checkpoint_path(checkpoint)) / "skewless" / f"join-{digest}.json"
