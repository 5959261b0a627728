"""Keys to 64-bit identities, and identities to a family of distinct workers.

The identity of a key is Spark's `xxhash64` of it, bit for bit: xxh64 with seed 42, several columns
chained by handing the hash so far on as the seed, a null leaving it as it was. It depends on the
column's type: Spark hashes the int 1 (4 bytes) and the long 1 (8 bytes) differently, and so do we.

The choices of a key are distinct workers. The first two come from two hashes of the identity:
choice i hashes it with the seed `xxhash64(lit(2·seed + i))`, so that a Spark Column computes the
same by `xxhash64(lit(2·seed + i), identity)`. 31 bits of the hash are scaled to the range, which
needs no division and cannot overflow in Spark's ANSI mode; the second ranges over the other W − 1
workers. Further choices continue the arithmetic progression that the first two begin, modulo the
least prime ≥ W, leaving out numbers ≥ W: distinct for all W, O(1) each, no further hash. (Balanced
allocation with such double hashing is as even as with independent hashes: Mitzenmacher, 2014.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from skewless.compiled import allocating, compiled, inlined
from skewless.errors import SkewlessError

U64 = npt.NDArray[np.uint64]
SPARK_SEED = 42
SALT = -1  # the literal that salts are hashed with; those of choices are not negative

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)


@inlined
def _rotate(x: np.uint64, bits: int) -> np.uint64:
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


@inlined
def _avalanche(h: np.uint64) -> np.uint64:
    h = (h ^ (h >> np.uint64(33))) * _P2
    h = (h ^ (h >> np.uint64(29))) * _P3
    return h ^ (h >> np.uint64(32))


@inlined
def hash_long(x: np.uint64, seed: np.uint64) -> np.uint64:
    """xxh64 of the 8 bytes of x: Spark's xxhash64 of a long."""
    h = seed + _P5 + np.uint64(8)
    h ^= _rotate(x * _P2, 31) * _P1
    return _avalanche(_rotate(h, 27) * _P1 + _P4)


@inlined
def hash_int(x: np.uint64, seed: np.uint64) -> np.uint64:
    """xxh64 of the low 4 bytes of x: Spark's xxhash64 of an int."""
    h = seed + _P5 + np.uint64(4)
    h ^= (x & np.uint64(0xFFFFFFFF)) * _P1
    return _avalanche(_rotate(h, 23) * _P2 + _P3)


@inlined
def _word(data: npt.NDArray[np.uint8], at: int) -> np.uint64:
    value = np.uint64(0)
    for i in range(8):
        value |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return value


@inlined
def _round(lane: np.uint64, word: np.uint64) -> np.uint64:
    return _rotate(lane + word * _P2, 31) * _P1


@compiled
def hash_bytes(data: npt.NDArray[np.uint8], start: int, stop: int, seed: np.uint64) -> np.uint64:
    """xxh64 of data[start:stop]: Spark's xxhash64 of a string or a binary value."""
    at = start
    if stop - start >= 32:
        a, b, c, d = seed + _P1 + _P2, seed + _P2, seed, seed - _P1
        while at + 32 <= stop:
            a = _round(a, _word(data, at))
            b = _round(b, _word(data, at + 8))
            c = _round(c, _word(data, at + 16))
            d = _round(d, _word(data, at + 24))
            at += 32
        h = _rotate(a, 1) + _rotate(b, 7) + _rotate(c, 12) + _rotate(d, 18)
        for lane in (a, b, c, d):
            h = (h ^ _round(np.uint64(0), lane)) * _P1 + _P4
    else:
        h = seed + _P5
    h += np.uint64(stop - start)
    while at + 8 <= stop:
        h = _rotate(h ^ _round(np.uint64(0), _word(data, at)), 27) * _P1 + _P4
        at += 8
    if at + 4 <= stop:
        half = np.uint64(0)
        for i in range(4):
            half |= np.uint64(data[at + i]) << np.uint64(8 * i)
        h = _rotate(h ^ (half * _P1), 23) * _P2 + _P3
        at += 4
    while at < stop:
        h = _rotate(h ^ (np.uint64(data[at]) * _P5), 11) * _P1
        at += 1
    return _avalanche(h)


@allocating
def _hash_longs(values: U64, seeds: U64) -> U64:
    out = np.empty(values.size, np.uint64)
    for i in range(values.size):
        out[i] = hash_long(values[i], seeds[i])
    return out


@allocating
def _hash_ints(values: U64, seeds: U64) -> U64:
    out = np.empty(values.size, np.uint64)
    for i in range(values.size):
        out[i] = hash_int(values[i], seeds[i])
    return out


@allocating
def _hash_slices(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], seeds: U64) -> U64:
    out = np.empty(offsets.size - 1, np.uint64)
    for i in range(out.size):
        out[i] = hash_bytes(data, offsets[i], offsets[i + 1], seeds[i])
    return out


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
        return part.encode()
    if isinstance(part, bytes):
        return part
    if isinstance(part, bool):
        return int(part).to_bytes(4, "little")
    if isinstance(part, int) and -(2**63) <= part < 2**63:
        return part.to_bytes(8, "little", signed=True)
    if isinstance(part, float):
        return _double_bits(np.array([part])).tobytes()
    return None


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
        return pa.array(column)
    except (pa.ArrowException, OverflowError) as error:
        raise SkewlessError(
            f"Keys are of one type that 64 bits or text can hold, and these are not: {error}"
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
        return np.where(
            array.is_null().to_numpy(zero_copy_only=False),
            seeds,
            _hash_plain(array.fill_null(_any_value(kind)), seeds),
        )
    return _hash_plain(array, seeds)


def _hash_dictionary(array: pa.DictionaryArray, seeds: U64) -> U64:
    words = array.dictionary
    hashed = _hash_column(words, np.full(len(words), SPARK_SEED, np.uint64), same_seed=False)
    codes = array.indices
    if not codes.null_count:
        return hashed[codes.to_numpy()]
    hashed = np.append(hashed, np.uint64(SPARK_SEED))
    return hashed[codes.fill_null(len(words)).to_numpy()]


def _hash_plain(array: pa.Array, seeds: U64) -> U64:
    kind = array.type
    if _is_text(kind) or _is_bytes(kind):
        binary = array.cast(pa.large_binary())
        _, offsets, data = binary.buffers()
        first, count = binary.offset, len(binary)
        ends = np.frombuffer(offsets, np.int64)[first : first + count + 1]
        raw = np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8)
        return np.asarray(_hash_slices(raw, ends, seeds))
    if pa.types.is_boolean(kind):
        return np.asarray(_hash_ints(_bits(array.cast(pa.int32()), np.int32), seeds))
    if pa.types.is_floating(kind):
        if kind.bit_width == 32:
            floats = array.to_numpy()
            canonical = np.where(np.isnan(floats), np.float32(np.nan), floats) + np.float32(0)
            return np.asarray(_hash_ints(canonical.view(np.uint32).astype(np.uint64), seeds))
        return np.asarray(_hash_longs(_double_bits(array.cast(pa.float64()).to_numpy()), seeds))
    if pa.types.is_date32(kind):
        return np.asarray(_hash_ints(_bits(array.cast(pa.int32()), np.int32), seeds))
    if pa.types.is_timestamp(kind):
        # Spark keeps microseconds, and drops what is finer.
        micros = array.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
        return np.asarray(_hash_longs(_bits(micros, np.int64), seeds))
    if pa.types.is_uint64(kind):
        return np.asarray(_hash_longs(array.to_numpy(), seeds))
    if pa.types.is_integer(kind):
        if pa.types.is_uint32(kind):
            array, kind = array.cast(pa.int64()), pa.int64()
        if kind.bit_width == 64:
            return np.asarray(_hash_longs(_bits(array, np.int64), seeds))
        return np.asarray(_hash_ints(_bits(array.cast(pa.int32()), np.int32), seeds))
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


def _any_value(kind: pa.DataType) -> pa.Scalar:
    if _is_text(kind) or _is_bytes(kind):
        return pa.scalar(b"").cast(kind)
    return pa.scalar(0).cast(kind)


def _bits(array: pa.Array, dtype: type[np.signedinteger[Any]]) -> U64:
    # Sign extension is harmless: hash_int masks to its 4 bytes.
    return array.to_numpy().astype(dtype).astype(np.int64).view(np.uint64)


def _double_bits(values: npt.NDArray[np.float64]) -> U64:
    """Spark hashes -0.0 as 0.0 and every NaN alike."""
    canonical = np.where(np.isnan(values), np.nan, values) + 0.0
    return canonical.view(np.uint64)


def choice_seeds(seed: int) -> U64:
    """The hash seeds of the first two choices, u64[2]: the identities of two int literals."""
    _check_seed(seed)
    return _of_literals(2 * seed, 2 * seed + 1)


def source_seeds(seed: int) -> U64:
    """The hash seed of sources, u64[1], of its own: a key's source says nothing of its choices."""
    _check_seed(seed)
    return _of_literals(SALT - 1 - seed)


def _check_seed(seed: int) -> None:
    if not 0 <= seed < 2**30:
        raise SkewlessError(f"A seed is a whole number from 0 to {2**30 - 1}, not {seed}.")


def salt_seed() -> U64:
    """The hash seed of salts, u64[1]: the identity of the int literal `SALT`."""
    return _of_literals(SALT)


def _of_literals(*numbers: int) -> U64:
    """The identities of int literals; plain Python, which a start-up can wait for."""
    hashed = (
        xxhash.xxh64_intdigest(n.to_bytes(4, "little", signed=True), SPARK_SEED) for n in numbers
    )
    return np.array(list(hashed), np.uint64)


@inlined
def scale(h: np.uint64, size: np.uint64) -> np.int64:
    """31 bits of a hash scaled to 0 … size − 1."""
    return np.int64(((h >> np.uint64(33)) * size) >> np.uint64(31))


@inlined
def first_choice(identity: np.uint64, seeds: U64, workers: np.int64) -> np.int64:
    """The worker that key grouping takes."""
    return scale(hash_long(identity, seeds[0]), np.uint64(workers))


@inlined
def second_choice(identity: np.uint64, seeds: U64, workers: np.int64, first: np.int64) -> np.int64:
    """A worker other than the first, uniform over the rest; needs workers ≥ 2."""
    second = scale(hash_long(identity, seeds[1]), np.uint64(workers - 1))
    return second + np.int64(second >= first)


@inlined
def next_choice(choice: np.int64, step: np.int64, workers: np.int64, prime: np.int64) -> np.int64:
    """The choice after `choice` in the progression with this step (1 … prime − 1)."""
    choice += step
    if choice >= prime:
        choice -= prime
    while choice >= workers:
        choice += step
        if choice >= prime:
            choice -= prime
    return choice


@inlined
def stride(first: np.int64, second: np.int64, prime: np.int64) -> np.int64:
    """The step of the progression that begins first, second."""
    return second - first if second > first else second - first + prime


def least_prime(workers: int) -> int:
    """The least prime ≥ workers (and ≥ 2)."""
    candidate = max(2, workers)
    while any(candidate % d == 0 for d in range(2, int(candidate**0.5) + 1)):
        candidate += 1
    return candidate


def choices(identity: int, workers: int, count: int, seed: int = 0) -> list[int]:
    """The first `count` choices of one key, for people and tests; kernels compute them in place."""
    if not 1 <= count <= workers:
        raise SkewlessError(
            f"{count} distinct choices need at least {count} workers, not {workers}."
        )
    seeds, prime = choice_seeds(seed), least_prime(workers)
    key = np.uint64(identity)
    chosen: Sequence[int] = [int(first_choice(key, seeds, workers))]
    if count > 1:
        second = int(second_choice(key, seeds, workers, chosen[0]))
        step = int(stride(chosen[0], second, prime))
        chosen = [*chosen, second]
        while len(chosen) < count:
            chosen.append(int(next_choice(chosen[-1], step, workers, prime)))
    return list(chosen)
