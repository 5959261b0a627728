"""A plan of a join: what was counted, the grid of every hot key, and where its cells go."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from skewless.errors import SkewlessError
from skewless.spark.input.checks import check_plan_path
from skewless.spark.join.damage import checked
from skewless.spark.join.describe import describe, facts_of
from skewless.spark.join.grid import Layout, Pieces, arrange
from skewless.spark.join.keys import JoinKeys
from skewless.spark.join.kinds import Kind, kind_of
from skewless.spark.join.sizes import LEAST_SHARE, Sizes
from skewless.spark.join.slots import places, search
from skewless.spark.routing.shown import table_of

FORMAT = 1
EVEN_ENOUGH = 1.2  # fullest partition over the mean, of a plain join that is left alone
WORTH_IT = 0.85  # of the plain join's fullest partition: what a plan must get below
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
_NULL_HASH = 42  # Spark's hash of nulls is its seed


@dataclass(frozen=True)
class Choices:
    """How a plan is made.

    result_weight: what a result row costs, an input row being 1
    target: by how much the fullest partition may exceed the mean
    exists: the counts are of the very rows that are joined, so a key that was seen exists
    split_left, split_right: whether anything tells rows of one key apart on that side
    distinct: a semi or anti join may reduce its right side to distinct keys
    """

    result_weight: float = 1.0
    target: float = 0.05
    exists: bool = False
    split_left: bool = True
    split_right: bool = True
    distinct: bool = True


@dataclass(frozen=True, eq=False)
class JoinPlan:
    """What `learn_join` returns, to show, keep and pass to `join` as plan=."""

    kind: Kind
    pairs: tuple[tuple[str, str], ...]  # the key's columns
    types: tuple[str, ...]
    sizes: Sizes
    choices: Choices
    plain: str  # why the join is left to Spark as it is; "" if hot keys are spread
    distinct: bool  # the right side is reduced to distinct keys first
    stripes_left: I64  # [k] a
    stripes_right: I64  # [k] b
    slots: tuple[I32, ...]  # [k] a key's cells, row by row of its grid
    null_slots_left: I32  # slots over which rows with a null key are spread; empty if not
    null_slots_right: I32
    plain_loads: npt.NDArray[np.float64]  # [partitions] expected without the plan
    loads: npt.NDArray[np.float64]  # [partitions] expected with it

    @property
    def partitions(self) -> int:
        """How many partitions the plan is for."""
        return self.sizes.partitions

    @property
    def spreads(self) -> bool:
        """Whether the plan changes the join at all."""
        return not self.plain

    @property
    def evenness(self) -> tuple[float, float]:
        """The fullest partition over the mean, expected without and with the plan."""
        return _uneven(self.plain_loads), _uneven(self.loads)

    def describe(self) -> str:
        """The plan in words: which keys are split how, and what is expected."""
        return describe(self)

    def explain(self) -> None:
        """Print the plan in words."""
        print(self.describe())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JoinPlan) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __repr__(self) -> str:
        hot = f"{len(self.slots)} hot key{'' if len(self.slots) == 1 else 's'}"
        how = f"plain: {self.plain}" if self.plain else hot
        return f"JoinPlan({self.kind.name}, {self.partitions} partitions, {how})"

    def _repr_html_(self) -> str:
        return table_of("Plan of a join", facts_of(self))

    def for_join(self, kind: Kind, distinct: bool) -> JoinPlan:
        """The same counts, planned for another type of join and for rows of another time.

        distinct: whether the right side may be reduced to distinct keys
        """
        choices = replace(self.choices, exists=False, distinct=self.choices.distinct and distinct)
        if kind == self.kind and choices == self.choices:
            return self
        return make_plan(self.sizes, kind, self.pairs, self.types, choices)

    def to_json(self) -> str:
        """The plan as text."""
        facts = {
            "format": FORMAT,
            "how": self.kind.name,
            "pairs": self.pairs,
            "types": self.types,
            "plain": self.plain,
            "distinct": self.distinct,
            "choices": asdict(self.choices),
            "sizes": {f.name: _plain(getattr(self.sizes, f.name)) for f in fields(Sizes)},
            **{name: _plain(getattr(self, name)) for name in _ARRAYS},
            "slots": [s.tolist() for s in self.slots],
        }
        return json.dumps(facts, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> JoinPlan:
        """The plan that `to_json` gave."""
        try:
            facts = json.loads(text)
            if facts["format"] != FORMAT:
                raise SkewlessError(
                    f"The plan of a join has format {facts['format']}, and this version reads "
                    f"format {FORMAT}: learn it again."
                )
            return checked(_read(facts))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            if isinstance(error, SkewlessError):
                raise
            raise SkewlessError("This is not the plan of a join: learn it again.") from None

    def save(self, path: str | Path) -> None:
        """Write the plan to a file, as JSON."""
        check_plan_path(path)
        try:
            Path(path).write_text(self.to_json())
        except OSError as error:
            raise SkewlessError(
                f"The plan cannot be written to '{path}': {error.strerror}."
            ) from None

    @classmethod
    def load(cls, path: str | Path) -> JoinPlan:
        """Read a plan from a file."""
        check_plan_path(path)
        try:
            text = Path(path).read_text()
        except OSError as error:
            raise SkewlessError(f"The plan '{path}' cannot be read: {error.strerror}.") from None
        except UnicodeDecodeError:
            raise SkewlessError(f"The plan '{path}' is damaged: learn it again.") from None
        return cls.from_json(text)

    def check(self, keys: JoinKeys, partitions: int | None) -> None:
        """Refuse a join of other keys, or another number of partitions unless that is None."""
        if self.types != keys.types or self.pairs != as_pairs(keys):
            raise SkewlessError(
                f"The plan is for the key {_words(self.pairs, self.types)}, and this join is on "
                f"{_words(as_pairs(keys), keys.types)}: learn a plan for it."
            )
        if partitions is not None and partitions != self.partitions:
            raise SkewlessError(
                f"The plan is for {self.partitions} partitions, not {partitions}: learn it with as "
                "many workers as the join shall have."
            )


_ARRAYS = (
    "stripes_left",
    "stripes_right",
    "null_slots_left",
    "null_slots_right",
    "plain_loads",
    "loads",
)


def make_plan(
    sizes: Sizes,
    kind: Kind,
    pairs: tuple[tuple[str, str], ...],
    types: tuple[str, ...],
    choices: Choices,
    plain: str = "",
) -> JoinPlan:
    """Arrange the hot keys of a join.

    plain: a reason to leave the join as it is, if there is one already
    """
    count = sizes.left.size
    pieces = _pieces(sizes, kind, choices)
    base = sizes.cold(kind, choices.result_weight)
    hashes = np.concatenate([sizes.hashes, [_NULL_HASH] * 2]).astype(np.int64)
    plain_loads = _plain_loads(pieces, hashes, base)
    distinct = kind.filters and choices.distinct
    distinct = distinct and bool((pieces.right > LEAST_SHARE * plain_loads.mean()).any())
    if distinct:
        pieces = pieces._replace(right=np.minimum(pieces.right, 1.0))
    layout, none = arrange(pieces, base, choices.target), np.empty(0, np.int32)
    plain = plain or _not_worth_it(plain_loads, layout.loads)
    if plain:
        ones = np.ones(count + 2, np.int64)
        layout = Layout(ones, ones, np.arange(count + 3), ones, plain_loads)
        slots = [np.zeros(1, np.int32)] * count + [none, none]
    else:
        slots = _slots(layout, hashes, sizes.partitions)
    return JoinPlan(
        kind=kind,
        pairs=pairs,
        types=types,
        sizes=sizes,
        choices=choices,
        plain=plain,
        distinct=distinct and not plain,
        stripes_left=layout.stripes_left[:count],
        stripes_right=layout.stripes_right[:count],
        slots=tuple(slots[:count]),
        null_slots_left=slots[count] if kind.keeps_left else none,
        null_slots_right=slots[count + 1] if kind.keeps_right else none,
        plain_loads=plain_loads,
        loads=layout.loads,
    )


def _pieces(sizes: Sizes, kind: Kind, choices: Choices) -> Pieces:
    """The hot keys, then either side's null keys, which meet nobody: free to be anywhere."""
    count = sizes.left.size
    left, right = np.append(sizes.left, [0.0, 0.0]), np.append(sizes.right, [0.0, 0.0])
    left[count] = sizes.left_nulls if kind.keeps_left else 0.0
    right[count + 1] = sizes.right_nulls if kind.keeps_right else 0.0
    alone = [left[count], right[count + 1]]
    results = choices.result_weight * np.append(sizes.results(kind), alone)
    sure_left, sure_right = choices.exists & (left > 0), choices.exists & (right > 0)
    splits_left = np.array([kind.splits_left(bool(sure)) for sure in sure_left])
    splits_right = np.array([kind.splits_right(bool(sure)) for sure in sure_right])
    splits_left[count], splits_right[count + 1] = True, True
    return Pieces(
        left,
        right,
        results,
        splits_left & (left > 0) & choices.split_left,
        splits_right & (right > 0) & choices.split_right,
    )


def as_pairs(keys: JoinKeys) -> tuple[tuple[str, str], ...]:
    """The key's columns in words."""
    return tuple(zip(keys.left.words, keys.right.words, strict=True))


def _plain_loads(pieces: Pieces, hashes: I64, base: npt.NDArray[np.float64]) -> Any:
    work = pieces.left + pieces.right + pieces.results
    at = places(hashes, np.zeros(1, np.int32), base.size)
    return base + np.bincount(at, work, base.size)


def _not_worth_it(plain: npt.NDArray[np.float64], planned: npt.NDArray[np.float64]) -> str:
    if _uneven(plain) <= EVEN_ENOUGH:
        return "no key is hot enough to matter"
    if planned.max() > WORTH_IT * plain.max():
        return "no split that is exact here would make it much more even"
    return ""


def _slots(layout: Layout, hashes: I64, partitions: int) -> list[I32]:
    """The slots of every piece.

    Null keys of the right have slots of their own: a full join of two streams, which Spark does by
    the bytes of keys, would otherwise let null meet null.
    """
    starts = layout.starts
    return [
        search(int(h), layout.places[starts[i] : starts[i + 1]], partitions, i == hashes.size - 1)
        for i, h in enumerate(hashes)
    ]


def _uneven(loads: npt.NDArray[np.float64]) -> float:
    return float(loads.max() / loads.mean()) if loads.sum() else 1.0


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def _read(facts: Mapping[str, Any]) -> JoinPlan:
    kinds: dict[str, Any] = {"identities": np.uint64, "hashes": np.int64}
    sizes: dict[str, Any] = {
        name: np.array(value, kinds.get(name, np.float64))
        if isinstance(value, list) and name != "names"
        else value
        for name, value in facts["sizes"].items()
    }
    sizes["names"] = tuple(sizes["names"])
    arrays = {
        name: np.array(facts[name], np.int32 if "slots" in name else None) for name in _ARRAYS
    }
    with np.errstate(invalid="ignore"):  # what is no number is refused with the rest
        for name in ("stripes_left", "stripes_right"):
            arrays[name] = arrays[name].astype(np.int64)
    return JoinPlan(
        kind=kind_of(facts["how"]),
        pairs=tuple((a, b) for a, b in facts["pairs"]),
        types=tuple(facts["types"]),
        sizes=Sizes(**sizes),
        choices=Choices(**facts["choices"]),
        plain=facts["plain"],
        distinct=facts["distinct"],
        slots=tuple(np.array(s, np.int32) for s in facts["slots"]),
        **arrays,
    )


def _words(pairs: tuple[tuple[str, str], ...], types: tuple[str, ...]) -> str:
    named = [a if a == b else f"{a} = {b}" for a, b in pairs]
    return ", ".join(f"{n} ({t})" for n, t in zip(named, types, strict=True))
