"""Streams that every Linux machine has, and generated ones that drift: to choose by, and to judge.

    python bench/fresh.py            what each stream is made of, here

Real streams are read from what is installed: code, documents, translations, archives, lists of
files. They come out the same every time on one machine, differ between machines, and are never
kept. A stream's name decides its half: those of `choose` may be used to choose a rule or a
constant by, those of `judge` are looked at once, when all is chosen.
"""

import gettext
import gzip
import re
import sys
import sysconfig
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from skewless.hashing import identities

MOST = 1_000_000  # messages of a stream
WORDS = re.compile(r"[^\W\d_]+")
SYMBOLS = re.compile(r"[A-Za-z_]\w*|[^\s\w]")
IMPORTS = re.compile(r"^\s*(?:from\s+([\w.]+)\s+import|import\s+([\w.]+))", re.MULTILINE)
SHARE = Path("/usr/share")


def texts(folder: Path, pattern: str) -> Iterator[str]:
    """The contents of files, in the order of their paths."""
    for path in sorted(folder.rglob(pattern)):
        try:
            if path.is_file() and not path.is_symlink():
                data = path.read_bytes()
                data = gzip.decompress(data) if path.suffix == ".gz" else data
                yield data.decode("utf-8", "ignore")
        except OSError:
            continue


def words(folder: Path, pattern: str, kind: re.Pattern[str] = WORDS) -> Iterator[str]:
    return (word for text in texts(folder, pattern) for word in kind.findall(text))


def python_folder() -> Path:
    return Path(sysconfig.get_paths()["purelib"])


def imports() -> Iterator[str]:
    """The modules that Python files import: the edges of a graph, by their ends."""
    for text in texts(python_folder(), "*.py"):
        for pair in IMPORTS.findall(text):
            yield pair[0] or pair[1]


def java_packages() -> Iterator[str]:
    """The package of every class in every archive, in the archive's order."""
    for path in sorted(python_folder().rglob("*.jar")):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
        yield from (name.rpartition("/")[0] for name in names if name.endswith(".class"))


def translations(language: str) -> Iterator[str]:
    for path in sorted((SHARE / "locale").glob(f"{language}/LC_MESSAGES/*.mo")):
        try:
            with path.open("rb") as file:
                catalogue = vars(gettext.GNUTranslations(file))["_catalog"]
        except UnicodeDecodeError:  # a catalogue that does not say how it is encoded
            continue
        yield from (text for text in catalogue.values() if isinstance(text, str))


def words_of(language: str) -> Iterator[str]:
    return (word for text in translations(language) for word in WORDS.findall(text))


def characters_of(language: str) -> Iterator[str]:
    return (letter for text in translations(language) for letter in text if not letter.isspace())


def names_of_characters() -> Iterator[str]:
    """The words in the names of all characters of Unicode, by code point: blocks of a kind."""
    for point in range(sys.maxunicode + 1):
        yield from unicodedata.name(chr(point), "").split()


def path_parts() -> Iterator[str]:
    """The folders and names in the paths of all installed packages' files."""
    for text in texts(Path("/var/lib/dpkg/info"), "*.list"):
        for line in text.splitlines():
            yield from line.strip("/").split("/")


def file_sizes() -> Iterator[str]:
    for path in sorted((SHARE).rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield str(path.stat().st_size)


def machine_code() -> Iterator[bytes]:
    """Pairs of bytes of compiled libraries."""
    for path in sorted(python_folder().rglob("*.so")):
        data = path.read_bytes()
        yield from (data[at : at + 2] for at in range(0, min(len(data), 1 << 17), 2))


def log_lines() -> Iterator[str]:
    """The packages that the log of installations names, as often as it names them."""
    for text in texts(Path("/var/log"), "dpkg.log*"):
        for line in text.splitlines():
            yield from line.split()[2:5]


def zipf(rng: np.random.Generator, z: float, keys: int, messages: int) -> np.ndarray:
    shares = np.arange(1, keys + 1) ** -z
    bounds = np.cumsum(shares / shares.sum())
    return np.minimum(np.searchsorted(bounds, rng.random(messages)), keys - 1)


def renamed(rng: np.random.Generator) -> np.ndarray:
    """Zipf whose 20 hottest keys are replaced by new ones at moments of their own."""
    ranks = zipf(rng, 1.1, 50_000, MOST)
    periods = rng.integers(30_000, 300_000, 20)
    at = np.arange(MOST)
    hot = ranks < periods.size
    named = ranks.copy()
    named[hot] += 50_000 * (1 + at[hot] // periods[ranks[hot]])
    return named


def sliding(rng: np.random.Generator) -> np.ndarray:
    """Sessions: keys come, are used some hundred times, and never come again."""
    return np.arange(MOST) // 400 + zipf(rng, 0.8, 2_000, MOST)


def swinging(rng: np.random.Generator) -> np.ndarray:
    """Day and night: two populations of keys, the share of each a slow wave."""
    day = rng.random(MOST) < 0.5 + 0.5 * np.sin(np.arange(MOST) * 2 * np.pi / 250_000)
    return np.where(day, zipf(rng, 1.3, 5_000, MOST), 5_000 + zipf(rng, 0.9, 50_000, MOST))


def bursting(rng: np.random.Generator) -> np.ndarray:
    """A hot key, and others that come in bursts of up to a thousand messages."""
    lengths = np.minimum(rng.zipf(1.6, MOST), 1_000)
    others = np.repeat(zipf(rng, 0.7, 3_000, MOST), lengths)[:MOST]
    return np.where(rng.random(MOST) < 0.3, 1_000_000, others)


def warming(rng: np.random.Generator) -> np.ndarray:
    """Evenly frequent keys, one of which grows from nothing to half of the stream."""
    grown = rng.random(MOST) < 0.5 * np.arange(MOST) / MOST
    return np.where(grown, 0, 1 + rng.integers(0, 20_000, MOST))


def level(rng: np.random.Generator) -> np.ndarray:
    """Evenly frequent keys and nothing else."""
    return rng.integers(0, 30_000, MOST)


def log_normal(rng: np.random.Generator) -> np.ndarray:
    """Shares log-normal, drawn again by a tenth of the keys every 100,000 messages."""
    shares = rng.lognormal(1.8, 2.4, 20_000)
    parts = []
    for _ in range(MOST // 100_000):
        new = rng.random(shares.size) < 0.1
        shares[new] = rng.lognormal(1.8, 2.4, int(new.sum()))
        parts.append(rng.choice(shares.size, 100_000, p=shares / shares.sum()))
    return np.concatenate(parts)


REAL = {
    "headers": lambda: words(Path("/usr/include"), "*.h", SYMBOLS),
    "documents": lambda: words(SHARE / "doc", "copyright"),
    "changes": lambda: words(SHARE / "doc", "changelog*.gz"),
    "manuals": lambda: words(SHARE / "man/man1", "*.gz"),
    "imports": imports,
    "java packages": java_packages,
    "words, German": lambda: words_of("de"),
    "words, Russian": lambda: words_of("ru"),
    "characters, Chinese": lambda: characters_of("zh_CN"),
    "characters, Japanese": lambda: characters_of("ja"),
    "names of characters": names_of_characters,
    "path parts": path_parts,
    "file sizes": file_sizes,
    "machine code": machine_code,
    "installations": log_lines,
}
GENERATED = {
    each.__name__: each
    for each in (renamed, sliding, swinging, bursting, warming, level, log_normal)
}


def half(name: str) -> str:
    return "choose" if zlib.crc32(name.encode()) >> 11 & 1 else "judge"


def keys_of(name: str) -> np.ndarray:
    """The identities of a stream's keys; none where this machine has nothing to make it of."""
    if name in GENERATED:
        return keys_from(GENERATED[name](np.random.default_rng(zlib.crc32(name.encode()))))
    return keys_from(islice(REAL[name](), MOST))


def keys_from(values: Iterable[Any]) -> np.ndarray:
    """The identities of values."""
    drawn = values if isinstance(values, np.ndarray) else list(values)
    return identities(drawn if len(drawn) else np.empty(0, np.int64))


def streams(part: str) -> Iterator[tuple[str, np.ndarray]]:
    """Name and keys of the streams of one half, or of `both`."""
    for name in [*REAL, *GENERATED]:
        if part in ("both", half(name)):
            keys = keys_of(name)
            if keys.size >= 10_000:
                yield name, keys


def main() -> None:
    from rich.console import Console

    from skewless.report.tables import table

    rows = []
    for name, keys in streams("both"):
        counts = np.sort(np.unique(keys, return_counts=True)[1])[::-1]
        rows.append(
            {
                "stream": name,
                "half": half(name),
                "messages": keys.size,
                "keys": counts.size,
                "hottest": f"{counts[0] / keys.size:.2%}",
            }
        )
    Console(width=100).print(table("fresh streams", rows))


if __name__ == "__main__":
    main()
