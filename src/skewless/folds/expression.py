"""An expression of Spark where a fold takes a column's name: `sum(F.col("x") * 2)`.

This room does not import Spark: it carries the expression to the one that does, which has Spark
compute it in front of the fold.
"""

from __future__ import annotations

from typing import Any

from skewless.errors import SkewlessError


class Expression(str):
    """What stands for the expression until Spark names it; travels to workers as mere text."""

    column: Any

    def __new__(cls, column: Any) -> Expression:
        """Under the text that the Column shows of itself."""
        made = super().__new__(cls, str(column).removeprefix("Column<'").removesuffix("'>"))
        made.column = column
        return made

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


def check_column(fold: str, column: Any) -> str:
    """The column's name or the expression, or one sentence why it is neither."""
    if isinstance(column, str) and column:
        return column
    kinds = [c for c in type(column).__mro__ if c.__module__.startswith("pyspark.sql.")]
    if any(c.__name__ == "Column" for c in kinds):
        return Expression(column)
    raise SkewlessError(
        f'{fold} takes the name of a column, such as {fold}("x"), or a Column of Spark, such as '
        f'{fold}(F.col("x") * 2), not {column!r}.'
    )
