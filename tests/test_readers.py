from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.hashing import identity
from skewless.streams import Stream, files, stream_of
from skewless.streams import api as streams_api
from skewless.streams.csv import CommaSeparated
from skewless.streams.parquet import Parquet
from skewless.streams.tsv import TabSeparated
from skewless.streams.words import Words

# A file per example is written over the one before: nothing leaks from example to example.
same_file = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
fields = st.text(st.sampled_from("ab é漢\u00a0,;\"'"), max_size=40)


def read(stream: Stream, source_column: str | None = None) -> tuple[list[int], list[int]]:
    chunks = list(stream.chunks(0, source_column))
    assert all(0 < chunk.keys.size <= streams_api.CHUNK_MESSAGES for chunk in chunks)
    keys = [int(key) for chunk in chunks for key in chunk.keys]
    sources = [int(s) for chunk in chunks if chunk.sources is not None for s in chunk.sources]
    return keys, sources


def expect(keys: list[str]) -> list[int]:
    return [identity(key) for key in keys]


def write(path: Path, data: bytes) -> str:
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)


@pytest.fixture(params=["plain", "tiny blocks"], autouse=True)
def _block_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "tiny blocks":
        monkeypatch.setattr(files, "BLOCK_BYTES", 5)
        monkeypatch.setattr(streams_api, "CHUNK_MESSAGES", 3)
        monkeypatch.setattr("skewless.streams.parquet.CHUNK_MESSAGES", 3)
        monkeypatch.setattr("skewless.streams.csv.BLOCK_BYTES", 64)


@same_file
@given(lines=st.lists(fields, min_size=1), end=st.sampled_from(["\n", "\r\n"]))
def test_words_are_what_splitting_at_ascii_blanks_gives(
    tmp_path: Path, lines: list[str], end: str
) -> None:
    text = end.join([*lines, "last\tword"]).encode()
    path = write(tmp_path / "text.txt.gz", text)
    assert read(Words(path))[0] == [identity(word) for word in text.split()]


@same_file
@given(
    rows=st.lists(st.tuples(fields, fields, fields), min_size=1),
    end=st.sampled_from(["\n", "\r\n"]),
    ended=st.booleans(),
)
def test_tsv_columns_are_the_fields_between_tabs(
    tmp_path: Path, rows: list[tuple[str, str, str]], end: str, ended: bool
) -> None:
    text = end.join("\t".join(row) for row in rows) + (end if ended else "")
    path = write(tmp_path / "rows.tsv", text.encode())
    first, second, third = (expect(list(column)) for column in zip(*rows, strict=True))
    assert read(TabSeparated(path, 2), "3") == (second, third)
    assert read(TabSeparated(path, 1), "1") == (first, first)
    assert read(TabSeparated(path, 3)) == (third, [])


@same_file
@given(rows=st.lists(st.tuples(fields, fields), min_size=1))
def test_words_of_a_column_are_the_blank_separated_parts_of_that_field(
    tmp_path: Path, rows: list[tuple[str, str]]
) -> None:
    rows = [*rows, ("7", "one  two")]
    path = write(tmp_path / "rows.tsv.gz", "\n".join("\t".join(row) for row in rows).encode())
    expected = [identity(word) for _, field in rows for word in field.encode().split()]
    assert read(Words(path, column=2))[0] == expected


@same_file
@given(
    rows=st.lists(
        st.tuples(*[st.text(st.sampled_from('ab é漢,;"\n'), max_size=20)] * 2), min_size=1
    )
)
def test_csv_columns_are_what_a_plain_csv_reader_gives(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(["key", "from,where"])
        writer.writerows(rows)
    first, second = (expect(list(column)) for column in zip(*rows, strict=True))
    assert read(CommaSeparated(str(path), "key"), "from,where") == (first, second)
    assert read(CommaSeparated(str(path), "2"), "2") == (second, second)


def test_csv_keeps_empty_fields_and_names_that_occur_twice(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv.gz", b"\xef\xbb\xbfkey,x,x\na,1,NULL\n,2,\n\nb,3,NA\n")
    assert read(CommaSeparated(path, "key"))[0] == expect(["a", "", "b"])
    assert read(CommaSeparated(path, "3"))[0] == expect(["NULL", "", "NA"])
    one = write(tmp_path / "one.csv", b"key\na\n\nb\n")
    assert read(CommaSeparated(one, "key"))[0] == expect(["a", "", "b"])


def test_gzip_is_known_by_its_first_bytes_too_and_may_have_several_members(tmp_path: Path) -> None:
    path = write(tmp_path / "noname", gzip.compress(b"a b\n") + gzip.compress(b"c"))
    assert read(Words(path))[0] == expect(["a", "b", "c"])


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    path = write(tmp_path / "bom.txt", b"\xef\xbb\xbfa b")
    assert read(Words(path))[0] == expect(["a", "b"])


def test_a_file_of_several_blocks_is_read_whole(tmp_path: Path) -> None:
    words = [f"word{i % 1000}" for i in range(20_000)]
    path = write(tmp_path / "long.txt", " ".join(words).encode())
    assert read(Words(path))[0] == expect(words)


def test_a_null_is_told_by_its_row_in_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"k": ["a"] * 7 + [None]}), path)
    with pytest.raises(SkewlessError, match="Row 8 of"):
        read(Parquet(str(path), "k"))


@pytest.mark.parametrize(
    ("kind", "as_key"),
    [
        (pa.string(), str),
        (pa.large_string(), str),
        (pa.dictionary(pa.int32(), pa.string()), str),
        (pa.int64(), int),
        (pa.float64(), float),
    ],
)
def test_parquet_keys_keep_their_type(tmp_path: Path, kind: pa.DataType, as_key: type) -> None:
    values = [as_key(i % 7) for i in range(100)]
    table = pa.table({"k": pa.array(values).cast(kind), "s": pa.array(range(100))})
    path = str(tmp_path / "t.parquet")
    pq.write_table(table, path, row_group_size=40)
    keys, sources = read(Parquet(path, "k"), "s")
    assert keys == [identity(value) for value in values]
    assert sources == [identity(i) for i in range(100)]


def test_parquet_int_and_long_are_different_keys(tmp_path: Path) -> None:
    path = str(tmp_path / "t.parquet")
    pq.write_table(pa.table({"i": pa.array([1], pa.int32()), "l": pa.array([1])}), path)
    keys, sources = read(Parquet(path, "i"), "l")
    assert keys != sources == [identity(1)]


def test_parquet_rows_with_the_same_column_as_key_and_source(tmp_path: Path) -> None:
    path = str(tmp_path / "t.parquet")
    pq.write_table(pa.table({"k": ["a", "b"]}), path)
    assert read(Parquet(path, "k"), "k") == (expect(["a", "b"]), expect(["a", "b"]))


ZIPPED = gzip.compress(bytes(np.random.default_rng(0).integers(97, 122, 9000, np.uint8)))
WRONG_SUM = ZIPPED[:-8] + b"\0\0\0\0" + ZIPPED[-4:]


@pytest.mark.parametrize(
    ("spec", "content", "source", "sentence"),
    [
        ("words:path={}", None, None, "There is no file"),
        ("tsv:column=1,path={}", None, None, "There is no file"),
        ("csv:column=1,path={}", None, None, "There is no file"),
        ("parquet:column=k,path={}", None, None, "There is no file"),
        ("words:path={}", ZIPPED[:500], None, "not a whole gzip file"),
        ("tsv:column=1,path={}", ZIPPED[:500], None, "not a whole gzip file"),
        ("csv:column=1,path={}", gzip.compress(b"k\na\n")[:-9], None, "not a whole gzip file"),
        ("words:path={}", WRONG_SUM, None, "not a whole gzip file"),
        ("words:path={}", b"", None, "is empty"),
        ("words:path={}", b" \n\t\r\n", None, "is empty"),
        ("tsv:column=1,path={}", b"", None, "is empty"),
        ("csv:column=1,path={}", b"", None, "is empty"),
        ("csv:column=k,path={}", b"k\n", None, "is empty"),
        ("words:path={}", b"caf\xe9 au lait", None, "not UTF-8"),
        ("tsv:column=1,path={}", b"caf\xe9\n", None, "not UTF-8"),
        ("csv:column=1,path={}", b"k\ncaf\xe9\n", None, "not UTF-8"),
        ("csv:column=1,path={}", b"caf\xe9\nk\n", None, "not UTF-8"),
        ("tsv:column=2,path={}", b"a\tb\nc\n", None, "Line 2 of .* has no column 2"),
        ("words:column=2,path={}", b"a\tb\n\nc\td\n", None, "Line 2 of .* has no column 2"),
        ("tsv:column=1,path={}", b"a\tb\n", "3", "Line 1 of .* has no column 3"),
        ("tsv:column=1,path={}", b"a\tb\n", "x", "number counted from 1, not 'x'"),
        ("tsv:column=0,path={}", b"a\n", None, "counts columns from 1"),
        ("words:column=-1,path={}", b"a\n", None, "counts columns from 1, with 0 for the whole"),
        ("tsv:column=x,path={}", b"a\n", None, "tsv:column takes a whole number"),
        ("words:path={}", b"a\n", "1", "no source column '1'"),
        ("csv:column=kee,path={}", b"key,b\n1,2\n", None, "did you mean 'key'"),
        ("csv:column=3,path={}", b"key,b\n1,2\n", None, "Valid: b, key"),
        ("csv:column=b,path={}", b"key,b\n1,2\n", "c", "no column .* called 'c'"),
        ("csv:column=b,path={}", b"key,b\n1,2,3\n", None, "not well-formed CSV"),
        ("parquet:column=k,path={}", b"nothing of the kind", None, "not a readable Parquet"),
    ],
)
def test_a_bad_file_is_one_clear_sentence(
    tmp_path: Path, spec: str, content: bytes | None, source: str | None, sentence: str
) -> None:
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SkewlessError, match=sentence) as caught:
        read(stream_of(spec.format(path)), source)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("column", "source", "sentence"),
    [
        ("kee", None, "did you mean 'key'"),
        ("key", "nil", "no column .* called 'nil'"),
        ("holes", None, "Row 2 of .* has a null in column 'holes'"),
        ("key", "holes", "Row 2 of .* has a null in column 'holes'"),
        ("codes", None, "Row 2 of .* has a null in column 'codes'"),
        ("lists", None, "cannot be hashed"),
    ],
)
def test_a_bad_parquet_column_is_one_clear_sentence(
    tmp_path: Path, column: str, source: str | None, sentence: str
) -> None:
    path = str(tmp_path / "t.parquet")
    holes = pa.array(["x", None])
    columns = {"key": ["a", "b"], "holes": holes, "codes": holes.dictionary_encode()}
    pq.write_table(pa.table({**columns, "lists": [[1], [2]]}), path)
    with pytest.raises(SkewlessError, match=sentence):
        read(Parquet(path, column), source)


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    for spec in ("words:path={}", "tsv:column=1,path={}"):
        with pytest.raises(SkewlessError, match="cannot be read"):
            read(stream_of(spec.format(tmp_path)))


def test_a_reader_does_not_know_its_length(tmp_path: Path) -> None:
    assert Words(str(tmp_path)).length() is None


def test_a_folder_of_parquet_files_is_read_as_spark_writes_it(tmp_path: Path) -> None:
    for number in range(2):
        keys = [f"k{number}", "both"]
        pq.write_table(pa.table({"k": keys}), tmp_path / f"part-0000{number}.snappy.parquet")
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / "_temporary").mkdir()
    pq.write_table(pa.table({"k": ["lost"]}), tmp_path / "_temporary" / "x.parquet")
    keys, _ = read(Parquet(str(tmp_path), "k"))
    assert keys == expect(["k0", "both", "k1", "both"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(SkewlessError, match="holds no Parquet file"):
        read(Parquet(str(tmp_path / "empty"), "k"))


def test_a_comma_in_the_name_of_a_file_that_exists_is_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "a,x=b.tsv"
    path.write_text("one\nb\n")
    keys, _ = read(stream_of(f"tsv:path={path},column=1"))
    assert len(keys) == 2
    with pytest.raises(SkewlessError, match="is empty"):
        stream_of("tsv:path=,column=1")


def test_a_quote_that_is_never_closed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_text('a,b\n1,"x\n2,y\n')
    with pytest.raises(SkewlessError, match="quote that is never closed"):
        read(CommaSeparated(str(path), "b"))
    path.write_text('a,b\n1,5" pipe\n2,y\n')
    assert len(read(CommaSeparated(str(path), "b"))[0]) == 2


@pytest.mark.parametrize("spec", ["mu=1000", "mu=-1000", "sigma=1000"])
def test_log_normal_keys_that_would_all_be_one_are_refused(spec: str) -> None:
    with pytest.raises(SkewlessError, match="nearly all keys"):
        stream_of(f"lognormal:messages=10,{spec}")
