"""The key's columns: as the user gave them, and flat under internal names for the workers.

A time window is a struct of two timestamps, and travels as two columns. Spark's event-time
watermark rides on a column's metadata, which is lost where Python hands rows back: so it is put on
again in front of the merge. The watermark itself is still the one that the user set.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from skewless.errors import SkewlessError
from skewless.spark.input.checks import SESSION, WINDOW, Key, key_columns
from skewless.spark.input.wire import check_collation, from_wire, identity, to_wire, wire_type

WATERMARK = "spark.watermarkDelayMs"
SALT = "salt"
COST = "cost"


@dataclass(frozen=True)
class Keys:
    """Columns with their names, types and metadata; made by `group_keys`."""

    columns: tuple[Column, ...]
    fields: tuple[StructField, ...]

    def flat_fields(self) -> list[StructField]:
        """What travels: a window as its start and its end, all else as it is."""
        return [_inner(field, part) for field, part, _ in self._flat()]

    def names(self) -> list[str]:
        """The internal names of the flat columns."""
        return [name for _, _, name in self._flat()]

    def group_names(self) -> list[str]:
        """The internal names of the columns that Spark merges by."""
        return [f"g{i}" for i in range(len(self.fields))]

    def select(
        self, df: DataFrame, values: list[Column] | None, **besides: Column | None
    ) -> DataFrame:
        """The flat keys, then the values as v0, v1, …, then what else there is, by name.

        values: None for all columns, whatever they are called, even if two have one name
        """
        count = len(df.columns if values is None else values)
        more = {name: column for name, column in besides.items() if column is not None}
        sent = [*(f"v{i}" for i in range(count)), *more]
        chosen = [*(["*"] if values is None else values), *more.values()]
        taken = df.select(*self.columns, *chosen).toDF(*self.group_names(), *sent)
        names = iter(self.names())
        flat = [
            (F.col(f"{group}.{part}") if part else to_wire(F.col(group), field.dataType)).alias(
                next(names)
            )
            for field, group in zip(self.fields, self.group_names(), strict=True)
            for part in _parts(field)
        ]
        return taken.select(*flat, *sent)

    def routing_fields(self) -> list[StructField]:
        """What routes: the columns beside a window, so that a hot key stays known over time."""
        besides = [field for field in self.fields if not _is_window(field)]
        return besides or list(self.fields)

    def identity(self) -> Column:
        """The hash that routes."""
        routing = self.routing_fields()
        sent = zip(self._flat(), self.flat_fields(), strict=True)
        mine = [(name, wired) for (field, _, name), wired in sent if field in routing]
        return identity([F.col(name) for name, _ in mine], [wired for _, wired in mine])

    def together(self) -> list[Column]:
        """The flat columns as what Spark merges by, with the watermark on them again."""
        names = iter(self.names())
        whole = []
        for field, group in zip(self.fields, self.group_names(), strict=True):
            parts = [F.col(next(names)).alias(part or group) for part in _parts(field)]
            column = F.struct(*parts) if _is_window(field) else parts[0]
            whole.append(column.alias(group, metadata=field.metadata))
        return whole

    def outer(self) -> list[Column]:
        """What Spark merged by, under the user's names."""
        pairs = zip(self.group_names(), self.fields, strict=True)
        return [
            from_wire(F.col(group), f.dataType).alias(f.name, metadata=f.metadata)
            for group, f in pairs
        ]

    def expiry(self) -> str | None:
        """The flat column at whose time a key is final: a window's end; None if no key ends."""
        for field, part, name in self._flat():
            if WATERMARK in field.metadata and part != "start":
                return name
        return None

    def _flat(self) -> list[tuple[StructField, str, str]]:
        """Per flat column: the field it is of, the part of the window or "", its internal name."""
        flat = [(field, part) for field in self.fields for part in _parts(field)]
        return [(field, part, f"k{i}") for i, (field, part) in enumerate(flat)]


def group_keys(df: DataFrame, key: Key) -> Keys:
    """The key's columns, checked by analysis alone."""
    columns, fields = key_columns(df, key, windows=True)
    for field in fields:
        if SESSION in field.metadata:
            raise SkewlessError(
                "A session window cannot be spread over workers, since messages of one worker "
                "could join two sessions of another: use a window of fixed length."
            )
        if not _is_window(field):
            check_collation(field.name, field.dataType)
    if sum(map(_is_window, fields)) > 1:
        raise SkewlessError("A key takes one time window: give one window column, not several.")
    return Keys(tuple(columns), tuple(fields))


def _is_window(field: StructField) -> bool:
    return WINDOW in field.metadata and isinstance(field.dataType, StructType)


def _parts(field: StructField) -> list[str]:
    return ["start", "end"] if _is_window(field) else [""]


def _inner(field: StructField, part: str) -> StructField:
    if not part:
        return StructField(field.name, wire_type(field.dataType))
    assert isinstance(field.dataType, StructType)
    return StructField(f"{field.name}.{part}", field.dataType[part].dataType)
