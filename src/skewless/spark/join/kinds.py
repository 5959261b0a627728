"""The types of a join, and which splits of a hot key each of them bears.

A key that is split on one side is copied on the other. Copies are harmless where the join drops
rows without a partner. Where it keeps them, every cell without a partner would give one, and they
can be told from true ones only if the split side certainly has the key.
"""

from __future__ import annotations

from typing import NamedTuple

from skewless.errors import SkewlessError


class Kind(NamedTuple):
    """What a join type does with rows that have no partner."""

    name: str
    keeps_left: bool
    keeps_right: bool
    filters: bool = False  # gives rows of the left only: left semi, left anti

    def splits_left(self, sure: bool) -> bool:
        """May rows of the left be split, and those of the right copied?

        sure: the left certainly has the key
        """
        return sure or not self.keeps_right

    def splits_right(self, sure: bool) -> bool:
        """May rows of the right be split, and those of the left copied?"""
        return not self.filters and (sure or not self.keeps_left)

    @property
    def has_doubts(self) -> bool:
        """Are some splits exact only where the split side certainly has the key?"""
        return not self.filters and (self.keeps_left or self.keeps_right)


INNER = Kind("inner", keeps_left=False, keeps_right=False)
LEFT = Kind("left", keeps_left=True, keeps_right=False)
RIGHT = Kind("right", keeps_left=False, keeps_right=True)
FULL = Kind("full", keeps_left=True, keeps_right=True)
SEMI = Kind("left_semi", keeps_left=False, keeps_right=False, filters=True)
ANTI = Kind("left_anti", keeps_left=True, keeps_right=False, filters=True)

_SPELLINGS = {
    "inner": INNER,
    "cross": INNER,
    "left": LEFT,
    "leftouter": LEFT,
    "right": RIGHT,
    "rightouter": RIGHT,
    "full": FULL,
    "outer": FULL,
    "fullouter": FULL,
    "semi": SEMI,
    "leftsemi": SEMI,
    "anti": ANTI,
    "leftanti": ANTI,
}


def kind_of(how: str) -> Kind:
    """The type of a join in any spelling that Spark takes."""
    kind = _SPELLINGS.get(how.lower().replace("_", "")) if isinstance(how, str) else None
    if kind is None:
        raise SkewlessError(
            f"There is no join type {how!r}: use inner, cross, left, right, full, left_semi or "
            "left_anti."
        )
    return kind
