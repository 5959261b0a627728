"""What the state of a stream is about: which folds of which columns, by which key.

Kept in front of each state that Python reads, since its bytes mean nothing without, and beside the
checkpoint if the user names it, so that a change is refused before the stream starts.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import NamedTuple

from skewless.errors import SkewlessError

_MARK = b"skewless 1"
_LENGTH = struct.Struct("<I")


class StateFacts(NamedTuple):
    """The key's columns and the folds, each in words with all types.

    A change of one of these gives the bytes of a partial another meaning.
    """

    key: tuple[str, ...]
    folds: tuple[str, ...]

    @property
    def seal(self) -> bytes:
        """What stands in front of a state."""
        text = json.dumps(self, separators=(",", ":"), ensure_ascii=False).encode()
        return _MARK + _LENGTH.pack(len(text)) + text

    def sealed(self, state: bytes) -> bytes:
        """The state with its facts in front."""
        return self.seal + state

    def opened(self, data: bytes) -> bytes:
        """The state, if it is one of these facts."""
        seal = self.seal
        if data.startswith(seal):
            return data[len(seal) :]
        raise SkewlessError(f"The state of this stream was {self._other(data)}")

    def _other(self, data: bytes) -> str:
        start = len(_MARK) + _LENGTH.size
        if not data.startswith(_MARK) or len(data) < start:
            return "not written by this version of skewless: start with a new checkpoint."
        (length,) = _LENGTH.unpack(data[len(_MARK) : start])
        try:
            key, folds = json.loads(data[start : start + length])
            return f"written with {self.changes_from((key, folds))}"
        except (ValueError, TypeError):
            return "damaged: restore the checkpoint, or start with a new one."

    def changes_from(self, before: Sequence[Sequence[str]]) -> str:
        """What changed since, as the end of a sentence."""
        key, folds = (tuple(part) for part in before)
        changes = []
        if key != self.key:
            changes.append(f"the key {', '.join(key)}, but now it is {', '.join(self.key)}")
        if folds != self.folds:
            changes.append(
                f"the folds {', '.join(folds)}, but now they are {', '.join(self.folds)}"
            )
        return f"{', and with '.join(changes)}: use the same as before, or a new checkpoint."
