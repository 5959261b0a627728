"""Small changes to valid inputs, drawn from a seed."""

from __future__ import annotations

import gzip
import random

ODD_NUMBERS = ["-1", "0", "1", "nan", "inf", "-inf", "1e400", "1.5", "1e9", "1e12",
               "99999999999999999999", "9223372036854775808", "0x10", "１２", "1_000", "",
               " "]  # fmt: skip
ODD_TEXTS = ["", " ", ",", ":", "=", "::", ",,", "a=b", "\x00", "\n", "é", "𝔘", "\ud800", "'", '"',
             "../..", "~", "[bold]", "%s", "{}", "--", "-", "/dev/null", "a" * 5000]  # fmt: skip


def mutated_bytes(data: bytes, drawn: random.Random) -> bytes:
    """One to four changes."""
    changed = bytearray(data)
    for _ in range(drawn.randint(1, 4)):
        at = drawn.randrange(len(changed) + 1)
        kind = drawn.randrange(7)
        if kind == 0:
            changed = changed[:at]
        elif kind == 1 and at < len(changed):
            changed[at] ^= 1 << drawn.randrange(8)
        elif kind == 2 and at < len(changed):
            changed[at] = drawn.choice([0, 9, 10, 13, 34, 44, 127, 128, 255])
        elif kind == 3:
            changed[at:at] = drawn.randbytes(drawn.randint(1, 40))
        elif kind == 4:
            del changed[at : at + drawn.randint(1, 40)]
        elif kind == 5:
            changed[at:at] = changed[max(0, at - drawn.randint(1, 200)) : at]
        else:
            number = drawn.choice(ODD_NUMBERS).encode()
            changed[at : at + len(number)] = number
    return bytes(changed)


def bomb(start: bytes, piece: bytes, size: int, part: int = 10_000_000) -> bytes:
    """A gzip file that unpacks to `start` and then `piece` again and again; about 1 : 1000."""
    member = gzip.compress(piece * (part // len(piece)))
    return gzip.compress(start) + member * (size // part)


def mutated_text(text: str, drawn: random.Random) -> str:
    """One to three changes, of characters or of numbers and words."""
    for _ in range(drawn.randint(1, 3)):
        at = drawn.randrange(len(text) + 1)
        kind = drawn.randrange(5)
        if kind == 0:
            text = text[:at] + drawn.choice(ODD_TEXTS) + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + drawn.randint(1, 5) :]
        elif kind == 2:
            text = text[:at] + chr(drawn.choice([0, 32, 61, 58, 44, 48, 233, 0x1D518])) + text[at:]
        elif kind == 3 and "=" in text:
            head, _, tail = text.rpartition("=")
            rest = tail[tail.find(",") :] if "," in tail else ""
            text = f"{head}={drawn.choice(ODD_NUMBERS)}{rest}"
        else:
            text = text[:at] + text[:at] if len(text) < 5000 else text[:at]
    return text


def mutated_json(value: object, drawn: random.Random) -> object:
    """One value somewhere inside replaced, dropped or put into a list."""
    if isinstance(value, dict) and value and drawn.random() < 0.8:
        name = drawn.choice(sorted(value))
        if drawn.random() < 0.15:
            return {k: v for k, v in value.items() if k != name}
        return {**value, name: mutated_json(value[name], drawn)}
    if isinstance(value, list) and value and drawn.random() < 0.8:
        at = drawn.randrange(len(value))
        return [*value[:at], mutated_json(value[at], drawn), *value[at + 1 :]]
    odd = [None, True, -1, 0, 1 << 70, 1e300, "", "x", [], {}, [value], {"a": value}, float("nan")]
    return drawn.choice(odd)
