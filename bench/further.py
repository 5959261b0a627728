"""Streams that took no part in the making of graded choices: neither to choose by, nor to judge.

They were drawn up when all was chosen (`frontier.py --fresh further`). Whoever changes the rule by
what they show should draw up others.
"""

import re
import sysconfig
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from fresh import SHARE, SYMBOLS, keys_from, texts, words, zipf

MOST = 400_000  # messages of a stream
LIBRARY = Path(sysconfig.get_paths()["stdlib"])
NAMES = re.compile(r"[A-Za-z_]\w*")
TAGS = re.compile(r"<[^>]+>")


def manuals_of_libraries() -> Iterator[str]:
    for section in ("man3", "man7", "man8"):
        yield from words(SHARE / "man" / section, "*.gz")


def documents_of_rust() -> Iterator[str]:
    for text in texts(Path.home() / ".rustup/toolchains", "*.html"):
        yield from NAMES.findall(TAGS.sub(" ", text))


def triples_of_bytes() -> Iterator[bytes]:
    for path in sorted(Path("/usr/bin").glob("[c-p]*")):
        if path.is_file() and not path.is_symlink():
            data = path.read_bytes()[4096:65536]
            yield from (data[at : at + 3] for at in range(0, len(data) - 2, 3))


def lengths_of_lines() -> Iterator[str]:
    return (str(len(line)) for text in texts(LIBRARY, "*.py") for line in text.splitlines())


def walking(rng: np.random.Generator) -> np.ndarray:
    """Each key near the one before it."""
    return np.cumsum(rng.integers(-3, 4, MOST))


def walking_beside_a_hot_key(rng: np.random.Generator) -> np.ndarray:
    near = np.cumsum(rng.integers(-1, 2, MOST)) // 4
    return np.where(rng.random(MOST) < 0.15, 10**7, near)


def of_skews(exponents: Any, rng: np.random.Generator) -> np.ndarray:
    """Zipf with one exponent after another."""
    return np.concatenate([zipf(rng, z, 20_000, MOST // len(exponents)) for z in exponents])


def bursts_that_drift(rng: np.random.Generator) -> np.ndarray:
    lengths = rng.integers(5, 400, 4_000)
    bursts = np.repeat(rng.integers(10**6, 10**6 + 2_000, lengths.size), lengths)[:MOST]
    moving = zipf(rng, 1.1, 5_000, MOST) + np.arange(MOST) // 20_000 * 37
    return np.where(rng.random(MOST) < 0.4, bursts, moving)


def skewed_then_level(rng: np.random.Generator) -> np.ndarray:
    """Each for 50,000 messages."""
    skewed = np.arange(MOST) // 50_000 % 2 == 0
    return np.where(skewed, zipf(rng, 1.5, 3_000, MOST), 5_000 + rng.integers(0, 3_000, MOST))


def two_populations(rng: np.random.Generator) -> np.ndarray:
    few = rng.random(MOST) < 0.3
    return np.where(few, rng.integers(0, 20, MOST), 100 + rng.integers(0, 100_000, MOST))


def visits(rng: np.random.Generator) -> np.ndarray:
    """Each key comes for a while of its own, and again 40,000 keys later."""
    lengths = np.minimum(rng.pareto(1.2, MOST) + 1, 5_000).astype(np.int64)
    return np.repeat(np.arange(MOST), lengths)[:MOST] % 40_000


REAL: dict[str, Callable[[], Iterator[Any]]] = {
    "names, Python": lambda: words(LIBRARY, "*.py", NAMES),
    "code, Perl": lambda: words(SHARE / "perl", "*.p[lm]", SYMBOLS),
    "code, C++": lambda: words(Path("/usr/include/c++"), "*", SYMBOLS),
    "code, Vim": lambda: words(SHARE / "vim", "*.vim", SYMBOLS),
    "names, JavaScript": lambda: words(Path("/usr/local/lib/node_modules"), "*.js", NAMES),
    "locales": lambda: words(SHARE / "i18n/locales", "*", SYMBOLS),
    "manuals of libraries": manuals_of_libraries,
    "documents of Rust": documents_of_rust,
    "triples of bytes": triples_of_bytes,
    "lengths of lines": lengths_of_lines,
}
GENERATED: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "walking": walking,
    "walking beside a hot key": walking_beside_a_hot_key,
    "rising skew": lambda rng: of_skews(np.linspace(0.6, 2.2, 16), rng),
    "falling skew": lambda rng: of_skews(np.linspace(2.2, 0.6, 16), rng),
    "changing skew": lambda rng: of_skews(rng.permutation(np.linspace(0.6, 2.2, 16)), rng),
    "bursts that drift": bursts_that_drift,
    "sorted": lambda rng: np.sort(zipf(rng, 1.0, 5_000, MOST)),
    "skewed, then level": skewed_then_level,
    "200 level keys": lambda rng: rng.integers(0, 200, MOST),
    "777 keys in turn": lambda rng: np.arange(MOST) % 777,
    "two populations": two_populations,
    "visits": visits,
}


def streams() -> Iterator[tuple[str, np.ndarray]]:
    """Name and keys of each that this machine has at least 100,000 messages for."""
    for name, read in REAL.items():
        keys = keys_from(islice(read(), MOST))
        if keys.size >= 100_000:
            yield name, keys
    for number, (name, draw) in enumerate(GENERATED.items()):
        yield name, keys_from(draw(np.random.default_rng(number)))
