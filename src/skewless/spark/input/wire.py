"""Keys in the form in which they are hashed, ordered and handed to Python.

Most values travel as they are. A map has no order, no hash and no one order of its entries: it
travels as the list of its entries, sorted by key. Intervals of months and of the calendar have no
Arrow type that Spark's Python takes: they travel as a number of months and as text. Equal keys have
equal forms and different keys different ones, so Spark groups by the form as by the value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
    YearMonthIntervalType,
)

from skewless.errors import SkewlessError
from skewless.spark.input.version import collation_of, is_calendar_interval, is_variant

Change = Callable[[Column, DataType], Column]


def identity(columns: Sequence[Column], fields: Sequence[StructField]) -> Column:
    """The hash by which a key is routed: equal keys, as Spark compares them, have equal hashes."""
    for field in fields:
        check_collation(field.name, field.dataType)
    return identity_by_bytes(columns, fields)


def identity_by_bytes(columns: Sequence[Column], fields: Sequence[StructField]) -> Column:
    """The same where nothing is lost if texts that a collation takes for equal are told apart."""
    pairs = zip(columns, fields, strict=True)
    return F.xxhash64(*(to_wire(column, field.dataType) for column, field in pairs))


def check_key(name: str, kind: DataType) -> None:
    """Refuse a key by which Spark itself does not group."""
    if any(map(is_variant, leaves(kind))):
        raise SkewlessError(
            f"Column '{name}' of type {kind.simpleString()} cannot be a key: "
            "Spark groups by no such value; take fields out of it first."
        )


def check_collation(name: str, kind: DataType) -> None:
    """Refuse text, also inside of other values, that Spark compares otherwise than by its bytes."""
    for part in leaves(kind):
        if isinstance(part, StringType) and collation_of(part) != "UTF8_BINARY":
            raise SkewlessError(
                f"Column '{name}' has the collation {collation_of(part)}, by which different texts "
                "may be equal: first cast it to UTF8_BINARY, for example by lower(...)."
            )


def wire_type(kind: DataType) -> DataType:
    """The type of the form."""
    if isinstance(kind, MapType):
        key = StructField("key", wire_type(kind.keyType), nullable=False)
        value = StructField("value", wire_type(kind.valueType), kind.valueContainsNull)
        return ArrayType(StructType([key, value]), containsNull=False)
    if isinstance(kind, ArrayType):
        return ArrayType(wire_type(kind.elementType), kind.containsNull)
    if isinstance(kind, StructType):
        parts = [StructField(f.name, wire_type(f.dataType), f.nullable) for f in kind.fields]
        return StructType(parts)
    if isinstance(kind, YearMonthIntervalType):
        return IntegerType()
    return StringType() if is_calendar_interval(kind) else kind


def to_wire(column: Column, kind: DataType) -> Column:
    """The form of a value."""
    if not _travels_otherwise(kind):
        return column
    if isinstance(kind, MapType):
        entries = F.map_entries(column)
        if _travels_otherwise(kind.keyType) or _travels_otherwise(kind.valueType):
            entries = F.transform(entries, lambda e: _entry(e, kind, to_wire))
        return F.sort_array(entries)
    return _inside(column, kind, to_wire)


def orderable(column: Column, kind: DataType) -> Column:
    """The form of a value, also of one that is no key: variants, which Spark cannot compare, are
    text."""
    return F.to_json(column) if any(map(is_variant, leaves(kind))) else to_wire(column, kind)


def from_wire(column: Column, kind: DataType) -> Column:
    """The value of a form."""
    if not _travels_otherwise(kind):
        return column
    if isinstance(kind, MapType):
        if _travels_otherwise(kind.keyType) or _travels_otherwise(kind.valueType):
            column = F.transform(column, lambda e: _entry(e, kind, from_wire))
        return F.map_from_entries(column)
    if isinstance(kind, YearMonthIntervalType):
        return F.make_ym_interval(F.lit(0), column).cast(kind)
    if is_calendar_interval(kind):
        return column.cast("interval")
    return _inside(column, kind, from_wire)


def _inside(column: Column, kind: DataType, change: Change) -> Column:
    """The same change at every part of an array or struct, or at the value itself."""
    if isinstance(kind, ArrayType):
        return F.transform(column, lambda element: change(element, kind.elementType))
    if isinstance(kind, StructType):
        parts = [change(column.getField(f.name), f.dataType).alias(f.name) for f in kind.fields]
        return F.when(column.isNotNull(), F.struct(*parts))
    if isinstance(kind, YearMonthIntervalType):
        return column.cast("interval month").cast("int")  # of years it would count years
    return column.cast("string")


def _entry(entry: Column, kind: MapType, change: Change) -> Column:
    key = change(entry.getField("key"), kind.keyType).alias("key")
    return F.struct(key, change(entry.getField("value"), kind.valueType).alias("value"))


def leaves(kind: DataType) -> list[DataType]:
    """The type, or all types inside of it that have no inner ones."""
    if isinstance(kind, ArrayType):
        return leaves(kind.elementType)
    if isinstance(kind, MapType):
        return leaves(kind.keyType) + leaves(kind.valueType)
    if isinstance(kind, StructType):
        return [leaf for field in kind.fields for leaf in leaves(field.dataType)]
    return [kind]


def _travels_otherwise(kind: DataType) -> bool:
    return wire_type(kind) != kind
