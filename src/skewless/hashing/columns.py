"""Keys to 64-bit identities.

The identity of a key is Spark's `xxhash64` of it, bit for bit: xxh64 with seed 42, several columns
chained by handing the hash so far on as the seed, a null leaving it as it was. It depends on the
column's type: Spark hashes the int 1 (4 bytes) and the long 1 (8 bytes) differently, and so do we.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from skewless.errors import SkewlessError
from skewless.hashing.literals import SPARK_SEED
from skewless.hashing.xxh64 import U64, hash_ints, hash_longs, hash_slices


def identity(key: Any) -> int:
    """The identity of one key: text, bytes, a number, a date, a time, or a tuple of such columns.

    A whole number of Python counts as a long, one of NumPy keeps its width.
    """
    parts = key if isinstance(key, tuple) else (key,)
    seed = SPARK_SEED
    for part in parts:
        if part is None:
            continue
        plain = _canonical_bytes(part)
        if plain is not None:
            seed = xxhash.xxh64_intdigest(plain, seed=seed)
        else:
            one = np.asarray([part]) if isinstance(part, np.generic) else [part]
            seed = int(_hash_column(_as_arrow(one), np.array([seed], np.uint64), False)[0])
    return seed


def _canonical_bytes(part: Any) -> bytes | None:
    """What Spark hashes of a plain value of Python; None for any other."""
    if isinstance(part, str):
        return _utf8(part)
    if isinstance(part, bytes):
        return part
    if isinstance(part, bool):
        return int(part).to_bytes(4, "little")
    if isinstance(part, int) and -(2**63) <= part < 2**63:
        return part.to_bytes(8, "little", signed=True)
    if isinstance(part, float):
        return _double_bits(np.array([part])).tobytes()
    return None


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise SkewlessError(f"A key of text must fit into UTF-8, not this: {error}") from None


def identities(*columns: Any) -> U64:
    """The identities of arrays of keys (NumPy, Arrow or lists), one array per key column.

    Strings and bytes are hashed through their dictionary, so a repeated word is hashed once.
    Whole numbers keep their width: 32 bits and less hash as Spark's int, 64 bits as its long.
    """
    if not columns:
        raise SkewlessError("A key needs at least one column.")
    arrays = [_as_arrow(c) for c in columns]
    if len({len(a) for a in arrays}) != 1:
        raise SkewlessError("The key columns differ in length: give arrays of one length.")
    seeds = np.full(len(arrays[0]), SPARK_SEED, np.uint64)
    for depth, array in enumerate(arrays):
        seeds = _hash_column(array, seeds, same_seed=depth == 0)
    return seeds


def _as_arrow(column: Any) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return column.combine_chunks()
    if isinstance(column, pa.Array):
        return column
    try:
        if isinstance(column, pa.Table | pa.RecordBatch):
            raise TypeError  # Arrow would take them for lists of columns or rows
        return pa.array(column)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
        raise SkewlessError(
            f"Keys are of one type that 64 bits or text can hold, and these are not: {error}"
        ) from None
    except (TypeError, KeyError):  # KeyError: pandas looks for columns called 0, 1, …
        raise SkewlessError(
            f"Keys are an array or a list of values, and one {type(column).__name__} is neither."
        ) from None


def _hash_column(array: pa.Array, seeds: U64, same_seed: bool) -> U64:
    kind = array.type
    if pa.types.is_dictionary(kind):
        if same_seed:
            return _hash_dictionary(array, seeds)
        array = array.dictionary_decode()
        kind = array.type
    if same_seed and (_is_text(kind) or _is_bytes(kind)):
        return _hash_dictionary(array.dictionary_encode(), seeds)
    if pa.types.is_null(kind):
        return seeds
    if array.null_count:
        # Spark leaves the hash of the columns before as it was when this one is null.
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        hashed = seeds.copy()
        hashed[valid] = _hash_plain(array.drop_null(), seeds[valid])
        return hashed
    return _hash_plain(array, seeds)


def _hash_dictionary(array: pa.DictionaryArray, seeds: U64) -> U64:
    words = array.dictionary
    hashed = _hash_column(words, np.full(len(words), SPARK_SEED, np.uint64), same_seed=False)
    codes = array.indices
    if not codes.null_count:
        return hashed[codes.to_numpy()]
    hashed = np.append(hashed, np.uint64(SPARK_SEED))
    return hashed[codes.cast(pa.int64()).fill_null(len(words)).to_numpy()]


def _hash_plain(array: pa.Array, seeds: U64) -> U64:
    kind = array.type
    if _is_text(kind) or _is_bytes(kind):
        binary = array.cast(pa.large_binary())
        _, offsets, data = binary.buffers()
        first, count = binary.offset, len(binary)
        ends = np.frombuffer(offsets, np.int64)[first : first + count + 1]
        raw = np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8)
        return np.asarray(hash_slices(raw, ends, seeds))
    if pa.types.is_boolean(kind):
        return np.asarray(hash_ints(_bits(array.cast(pa.int32()), np.int32), seeds))
    if pa.types.is_floating(kind):
        if kind.bit_width == 32:
            floats = array.to_numpy()
            canonical = np.where(np.isnan(floats), np.float32(np.nan), floats) + np.float32(0)
            return np.asarray(hash_ints(canonical.view(np.uint32).astype(np.uint64), seeds))
        return np.asarray(hash_longs(_double_bits(array.cast(pa.float64()).to_numpy()), seeds))
    if pa.types.is_date32(kind):
        return np.asarray(hash_ints(_bits(array.cast(pa.int32()), np.int32), seeds))
    if pa.types.is_timestamp(kind):
        # Spark keeps microseconds, and drops what is finer.
        micros = array.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
        return np.asarray(hash_longs(_bits(micros, np.int64), seeds))
    if pa.types.is_uint64(kind):
        return np.asarray(hash_longs(array.to_numpy(), seeds))
    if pa.types.is_integer(kind):
        if pa.types.is_uint32(kind):
            array, kind = array.cast(pa.int64()), pa.int64()
        if kind.bit_width == 64:
            return np.asarray(hash_longs(_bits(array, np.int64), seeds))
        return np.asarray(hash_ints(_bits(array.cast(pa.int32()), np.int32), seeds))
    raise SkewlessError(
        f"A key of type {kind} cannot be hashed: use strings, bytes, whole numbers, "
        "floats, dates or timestamps."
    )


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or _is_view(kind)


def _is_view(kind: pa.DataType) -> bool:
    return pa.types.is_string_view(kind) or pa.types.is_binary_view(kind)


def _is_bytes(kind: pa.DataType) -> bool:
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


def _bits(array: pa.Array, dtype: type[np.signedinteger[Any]]) -> U64:
    # Sign extension is harmless: hash_int masks to its 4 bytes.
    return array.to_numpy().astype(dtype).astype(np.int64).view(np.uint64)


def _double_bits(values: npt.NDArray[np.float64]) -> U64:
    """Spark hashes -0.0 as 0.0 and every NaN alike."""
    canonical = np.where(np.isnan(values), np.nan, values) + 0.0
    return canonical.view(np.uint64)
