"""The one kind of error a user's mistake raises: a single sentence that says what to do."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable

_MOST_LISTED = 100  # a table may have a million columns, and a sentence has not
_MOST_COMPARED = 5000
_BRIEF = reprlib.Repr()  # of a list the first six items, whatever else is long without its middle
_BRIEF.maxother = _BRIEF.maxstring = 200


class SkewlessError(ValueError):
    """What the user gave cannot be used; the message says what is allowed.

    Names in it may be anybody's: what would break the line or steer a terminal is escaped.
    """

    def __init__(self, message: object = "") -> None:
        text = str(message)
        super().__init__(text if text.isprintable() else "".join(map(_shown, text)))


def _shown(letter: str) -> str:
    if letter.isprintable():
        return letter
    return letter.encode("unicode_escape").decode("ascii")


def brief(value: object) -> str:
    """The value as Python writes it, short enough for a sentence: it may be a million keys."""
    return _BRIEF.repr(value)


def unknown(kind: str, given: str, valid: Iterable[str]) -> SkewlessError:
    """An error for a name that does not exist, with the nearest spelling and all valid names."""
    names = sorted(valid)
    close = difflib.get_close_matches(given, names[:_MOST_COMPARED], n=1)
    hint = f"; did you mean '{close[0]}'?" if close else "."
    listed = ", ".join(names[:_MOST_LISTED]) or "none"
    more = f" and {len(names) - _MOST_LISTED:,} more" if len(names) > _MOST_LISTED else ""
    return SkewlessError(f"There is no {kind} '{given}'{hint} Valid: {listed}{more}.")
