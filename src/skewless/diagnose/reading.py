"""Code that reads a stream into a DataFrame, for the code to paste to run as it is."""

from __future__ import annotations

from dataclasses import dataclass

from skewless.streams import Stream
from skewless.streams.csv import CommaSeparated
from skewless.streams.parquet import Parquet
from skewless.streams.tsv import TabSeparated
from skewless.streams.words import Words

_SPARK = "from pyspark.sql import SparkSession"
_SESSION = "spark = SparkSession.builder.getOrCreate()\n"


@dataclass(frozen=True)
class Reading:
    """Code that makes `df` with its imports, the key as an expression, and its name for people."""

    imports: tuple[str, ...]
    code: str
    key: str
    key_name: str


def given(key: str, key_name: str) -> Reading:
    """The user has `df` already."""
    return Reading((), "", key, key_name)


def script(reading: Reading, imports: tuple[str, ...], body: str) -> str:
    """Imports first, the standard library's before others, then the DataFrame, then the body."""
    lines = sorted({*reading.imports, *imports}, key=lambda line: (_place(line), line))
    gap = "\n\n" if body.startswith("def ") else "\n"
    return (
        "\n".join(lines) + ("\n" + gap if lines else "") + body.replace("READ_DF\n", reading.code)
    )


def _place(line: str) -> int:
    return 0 if line.endswith(("import tempfile", "import Path")) else 1


def reading_of(stream: Stream, sources: int, seed: int) -> Reading:
    """How Spark reads this stream."""
    if isinstance(stream, Parquet):
        code = f"{_SESSION}df = spark.read.parquet({stream.path!r})\n"
        return Reading((_SPARK,), code, _named(stream.column), stream.column)
    if isinstance(stream, CommaSeparated):
        tabs = "" if stream.delimiter == "," else f", sep={stream.delimiter!r}"
        code = f"{_SESSION}df = spark.read.csv({stream.path!r}, header=True{tabs})\n"
        key = f"df.columns[{int(stream.column) - 1}]" if stream.column.isdecimal() else None
        return Reading((_SPARK,), code, key or _named(stream.column), stream.column)
    if isinstance(stream, TabSeparated):
        code = f'{_SESSION}df = spark.read.csv({stream.path!r}, sep="\\t", quote="")\n'
        return Reading((_SPARK,), code, f'"_c{stream.column - 1}"', f"column {stream.column}")
    if isinstance(stream, Words):
        field = f'F.get(F.split("value", "\\t"), F.lit({stream.column - 1}))'
        line = field if stream.column else 'F.col("value")'
        code = (
            f"{_SESSION}lines = spark.read.text({stream.path!r})\n"
            f'df = lines.select(words_of({line}).alias("word"))\n'
        )
        imports = (
            _SPARK,
            "from pyspark.sql import functions as F",
            "from skewless.spark.lab.frames import words_of",
        )
        return Reading(imports, code, '"word"', "word")
    code = (
        f"{_SESSION}stream, folder = stream_of({stream.spec!r}), Path(tempfile.mkdtemp())\n"
        f'df = write_keys(spark, stream, folder / "keys", {sources}, {seed})\n'
    )
    made = (
        "import tempfile",
        "from pathlib import Path",
        _SPARK,
        "from skewless.spark.lab.frames import write_keys",
        "from skewless.streams import stream_of",
    )
    return Reading(made, code, '"key"', "key")


def _named(column: str) -> str:
    """A column's name in code, in backticks where Spark would take it for a field's."""
    odd = "." in column or "`" in column
    return repr("`" + column.replace("`", "``") + "`" if odd else column)
