"""What a user's function returns, as the declared schema has it, or one sentence why it is not.

Spark's `applyInArrow` takes columns by name (by place if the session says so), no column more or
less, each of exactly the declared type. Its `mapInArrow` takes columns by place and reads their
bytes as the declared type, unseen: there we take what it reads rightly, such as large strings or a
timestamp of another zone, and refuse what it would misread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from skewless.errors import SkewlessError
from skewless.spark.input.types import arrow_type

_BY_NAME = "spark.sql.legacy.execution.pandas.groupedMap.assignColumnsByName"
_LARGE = "spark.sql.execution.arrow.useLargeVarTypes"


@dataclass(frozen=True)
class Declared:
    """The columns that a function shall return.

    function: how the user knows it, and what it does: "apply returned"
    by_name: whether columns may come in any order
    exactly: whether types must be the same, or need only be read alike
    """

    function: str
    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    by_name: bool
    exactly: bool

    def conform(self, result: Any) -> Any:
        """The table or batch with its columns in the declared order, checked."""
        if not result.num_columns and not result.num_rows:
            return result  # no rows, said without columns
        if self.by_name:
            self._check_names(result.schema.names)
            result = result.select(list(self.names))
        self.check(result.schema)
        return result

    def check(self, found: pa.Schema) -> None:
        """Refuse columns that are not the declared ones, place by place."""
        if len(found) != len(self.types):
            raise SkewlessError(
                f"The function of {self.function} {_counted(len(found))}, but schema= declares "
                f"{len(self.types)}: let it return what is declared, in that order."
            )
        fits = _same if self.exactly else reads_as
        for name, mine, wanted in zip(self.names, found.types, self.types, strict=True):
            if not fits(mine, wanted):
                raise SkewlessError(
                    f"The function of {self.function} a column '{name}' of type {mine}, but "
                    f"schema= declares {wanted}: cast it in the function, or declare it otherwise."
                )

    def _check_names(self, found: list[str]) -> None:
        if sorted(found) != sorted(self.names):
            raise SkewlessError(
                f"The function of {self.function} the columns {_quoted(found)}, but schema= "
                f"declares {_quoted(self.names)}: let it return each of these once, in any order."
            )


def declared_for_apply(spark: SparkSession, schema: StructType) -> Declared:
    """What Spark's applyInArrow would take."""
    large = spark.conf.get(_LARGE, "false") == "true"
    types = tuple(arrow_type(field.name, field.dataType) for field in schema.fields)
    return Declared(
        function="apply returned",
        names=tuple(schema.names),
        types=tuple(map(_large, types)) if large else types,
        by_name=spark.conf.get(_BY_NAME, "true") == "true",
        exactly=True,
    )


def schema_of(spark: SparkSession, schema: StructType | str) -> StructType:
    """The columns that a schema declares, or one sentence why Spark cannot read it."""
    if isinstance(schema, StructType):
        return schema
    try:
        return spark.createDataFrame([], schema).schema
    except (PySparkException, TypeError, ValueError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise SkewlessError(
            f"schema= is a StructType or a text such as 'word string, n long', not {schema!r} "
            f"({reason})."
        ) from None


def declared_for_map(schema: StructType) -> Declared:
    """What Spark's mapInArrow would read rightly."""
    types = tuple(arrow_type(field.name, field.dataType) for field in schema.fields)
    return Declared("balanced_map yielded", tuple(schema.names), types, False, False)


def reads_as(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Spark, told to read the one type, reads the values of the other as they are."""
    if found == wanted or pa.types.is_null(found):
        return True
    if pa.types.is_timestamp(found) and pa.types.is_timestamp(wanted):
        return bool(found.unit == wanted.unit)  # the zone is for show: both count from 1970
    for alike in _ALIKE:
        if alike(wanted):
            return alike(found)
    if pa.types.is_list(wanted):
        return pa.types.is_list(found) and reads_as(found.value_type, wanted.value_type)
    if pa.types.is_map(wanted):
        return (
            pa.types.is_map(found)
            and reads_as(found.key_type, wanted.key_type)
            and reads_as(found.item_type, wanted.item_type)
        )
    if pa.types.is_struct(wanted):
        return (
            pa.types.is_struct(found)
            and found.num_fields == wanted.num_fields
            and all(reads_as(a.type, b.type) for a, b in zip(found, wanted, strict=True))
        )
    return False


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def _is_bytes(kind: pa.DataType) -> bool:
    types = pa.types
    return types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)


def _is_decimal(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal128(kind))


_ALIKE: tuple[Callable[[pa.DataType], bool], ...] = (_is_text, _is_bytes, _is_decimal)


def _same(found: pa.DataType, wanted: pa.DataType) -> bool:
    return bool(found == wanted)


def _large(kind: pa.DataType) -> pa.DataType:
    """The type with large strings and bytes, as Spark hands them over if it is told to."""
    if pa.types.is_string(kind):
        return pa.large_string()
    if pa.types.is_binary(kind):
        return pa.large_binary()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_large(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_large(kind.key_type), kind.item_field.with_type(_large(kind.item_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_large(field.type)) for field in kind])
    return kind


def _counted(columns: int) -> str:
    return "1 column" if columns == 1 else f"{columns} columns"


def _quoted(names: Any) -> str:
    return ", ".join(f"'{name}'" for name in names) or "(none)"
