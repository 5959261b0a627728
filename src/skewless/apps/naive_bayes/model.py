"""A model as arrays, as a DataFrame, and as a Column that predicts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession

from skewless.apps.naive_bayes.moments import merge_moments
from skewless.apps.naive_bayes.statistics import CATEGORICAL, GAUSSIAN, MULTINOMIAL, WORDS, prepared
from skewless.errors import SkewlessError
from skewless.folds.groups import Groups
from skewless.spark.input.version import arrow_function, spark_type_of

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class NaiveBayesModel:
    """What was learned, as arrays over C classes; made by `NaiveBayes.fit`.

    kind, features: as for `NaiveBayes`
    classes: in ascending order; class_counts: rows of each, [C]
    values: categorical: the values of each feature; multinomial and words: the counted names
    counts: categorical: per feature [C, values]; multinomial and words: one [C, names]
    means, variances: Gaussian: [C, features], the variances with their smoothing
    log_probabilities: of values or features given the class, in the shapes of `counts`
    unseen: categorical: per feature [C], for a value that never came
    """

    kind: str
    features: tuple[str, ...]
    classes: pa.Array
    class_counts: F64
    values: list[pa.Array]
    counts: list[F64]
    log_probabilities: list[F64]
    unseen: list[F64]
    means: F64
    variances: F64

    def __repr__(self) -> str:
        return (
            f"NaiveBayesModel({self.kind}: {len(self.classes):,} classes by "
            f"{', '.join(self.features)}, learned from {self.class_counts.sum():,.0f} rows)"
        )

    @property
    def log_priors(self) -> F64:
        """The logarithm of each class's share of the rows."""
        return np.log(self.class_counts / self.class_counts.sum())

    def log_joint(self, rows: pa.Array) -> F64:
        """log P(class, row) of each row and class, [rows, C]; a row is a list of its features."""
        # Where Spark hands over pandas, a batch of nothing but nulls or empty lists has no type.
        if pa.types.is_null(rows.type) or pa.types.is_null(rows.type.value_type):
            rows = rows.cast(pa.list_(pa.float64() if self.kind == GAUSSIAN else pa.string()))
        lengths = pc.fill_null(pc.list_value_length(rows), 0).to_numpy(zero_copy_only=False)
        flat, size = rows.flatten(), len(rows)
        scores = np.tile(self.log_priors, (size, 1))
        if self.kind == WORDS:
            return scores + self._of_words(flat, lengths, size)
        width = len(self.features)
        if self.kind == CATEGORICAL:
            for j in range(width):
                scores += self._of_values(j, flat.take(pa.array(np.arange(j, size * width, width))))
            return scores
        numbers = pc.cast(flat, pa.float64()).to_numpy(zero_copy_only=False).reshape(size, width)
        known = np.isfinite(numbers)
        numbers = np.where(known, numbers, 0.0)
        if self.kind == MULTINOMIAL:
            return scores + numbers @ self.log_probabilities[0].T
        for c in range(len(self.classes)):
            mean, variance = self.means[c], self.variances[c]
            with np.errstate(over="ignore"):
                terms = np.log(2 * np.pi * variance) + (numbers - mean) ** 2 / variance
            scores[:, c] -= 0.5 * np.where(known, terms, 0.0).sum(axis=1)
        return scores

    def prediction(self) -> Column:
        """The most likely class of a row, of equals the first: a Column for `withColumn`.

        It reads the columns that the model was learned from, in a batch or a stream.
        """
        kind = spark_type_of(self.classes.type).simpleString()

        def classes_of(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
            for rows in batches:
                best = self.log_joint(rows).argmax(axis=1)
                yield self.classes.take(pa.array(best))

        return arrow_function(classes_of, kind)(prepared(list(self.features), self.kind)).alias(
            "prediction"
        )

    def table(self) -> pa.Table:
        """One row per feature, value and class, and one without a feature per class."""
        rows: list[dict[str, Any]] = []
        classes = self.classes.to_pylist()
        priors = zip(classes, self.class_counts.tolist(), self.log_priors.tolist(), strict=True)
        rows += [{"label": c, "count": n, "log_probability": p} for c, n, p in priors]
        for c, label in enumerate(classes):
            if self.kind == GAUSSIAN:
                pairs = zip(self.features, self.means[c], self.variances[c], strict=True)
                rows += [
                    {"feature": f, "label": label, "mean": float(m), "variance": float(v)}
                    for f, m, v in pairs
                ]
                continue
            tables = zip(self.values, self.counts, self.log_probabilities, strict=True)
            for j, (names, counts, logs) in enumerate(tables):
                columns = zip(names.to_pylist(), counts[c].tolist(), logs[c].tolist(), strict=True)
                for name, n, p in columns:
                    whose = (
                        {"feature": self.features[j], "value": name}
                        if self.kind == CATEGORICAL
                        else {"feature": name}
                    )
                    rows.append({**whose, "label": label, "count": n, "log_probability": p})
        number, text = pa.float64(), pa.string()
        schema = [("feature", text), ("value", text), ("label", self.classes.type)]
        numbers = ("count", "log_probability", "mean", "variance")
        return pa.Table.from_pylist(
            rows, pa.schema([*schema, *((name, number) for name in numbers)])
        )

    def frame(self, spark: SparkSession) -> DataFrame:
        """The same as a DataFrame."""
        schema = ", ".join(
            f"{f.name} {spark_type_of(f.type).simpleString()}" for f in self.table().schema
        )
        rows = [tuple(row.values()) for row in self.table().to_pylist()]
        return spark.createDataFrame(rows, schema)

    def _of_values(self, j: int, values: pa.Array) -> F64:
        """What feature j adds to each class; nothing where it is null."""
        codes = pc.index_in(values, self.values[j])
        last = len(self.values[j])  # for a value that never came
        rows = np.vstack(
            [self.log_probabilities[j].T, self.unseen[j], np.zeros_like(self.unseen[j])]
        )
        at = pc.fill_null(codes, last).to_numpy(zero_copy_only=False).copy()
        at[values.is_null().to_numpy(zero_copy_only=False)] = last + 1
        return rows[at]

    def _of_words(self, words: pa.Array, lengths: Any, size: int) -> F64:
        """What the words of each row add; those that never came add nothing."""
        codes = pc.index_in(words, self.values[0])
        known = codes.is_valid().to_numpy(zero_copy_only=False)
        owners = np.repeat(np.arange(size), lengths)[known]
        at = pc.drop_null(codes).to_numpy(zero_copy_only=False)
        logs = self.log_probabilities[0]
        return np.column_stack([np.bincount(owners, row[at], size) for row in logs])


def model_of(
    counts: pa.Table, features: tuple[str, ...], kind: str, alpha: float, var_smoothing: float
) -> NaiveBayesModel:
    """The model of such statistics."""
    of_class = counts.filter(counts["feature"].is_null()).sort_by("label").combine_chunks()
    if not of_class.num_rows:
        raise SkewlessError("There is nothing to learn from: no row has a label.")
    classes = _whole(of_class["label"])
    rest = counts.filter(counts["feature"].is_valid()).combine_chunks()
    found = NaiveBayesModel(
        kind, features, classes, of_class["n"].to_numpy(), [], [], [], [],
        np.empty(0), np.empty(0),
    )  # fmt: skip
    fields = dict(vars(found))
    if kind == CATEGORICAL:
        for name in features:
            mine = rest.filter(pc.equal(rest["feature"], name))
            values = _sorted(mine["value"])
            table = _spread(mine, "value", values, classes)
            smoothed = table + alpha
            of_all = smoothed.sum(axis=1) if len(values) else np.full(len(classes), alpha)
            fields["values"].append(values)
            fields["counts"].append(table)
            fields["log_probabilities"].append(np.log(smoothed) - np.log(of_all)[:, None])
            fields["unseen"].append(np.log(alpha) - np.log(of_all))
    elif kind in (MULTINOMIAL, WORDS):
        names = pa.array(features) if kind == MULTINOMIAL else _sorted(rest["feature"])
        table = _spread(rest, "feature", names, classes)
        smoothed = table + alpha
        with np.errstate(divide="ignore"):  # where no word was ever seen
            logs = np.log(smoothed) - np.log(smoothed.sum(axis=1))[:, None]
        fields.update(values=[names], counts=[table], log_probabilities=[logs])
    else:
        means, variances = _normal(rest, features, classes, var_smoothing)
        fields.update(means=means, variances=variances)
    return NaiveBayesModel(**fields)


def _normal(
    rest: pa.Table, features: tuple[str, ...], classes: pa.Array, var_smoothing: float
) -> tuple[F64, F64]:
    """Means and variances; a class without a value of a feature has those of all classes."""
    names = pa.array(features)
    n, mean, m2 = (_spread(rest, "feature", names, classes, part) for part in ("n", "mean", "m2"))
    one_each = Groups(np.tile(np.arange(len(names)), len(classes)), len(names))
    total, centre, spread = merge_moments(one_each, n.ravel(), mean.ravel(), m2.ravel())
    of_all = np.divide(spread, total, out=np.zeros_like(spread), where=total > 0)
    own = np.divide(m2, n, out=np.broadcast_to(of_all, n.shape).copy(), where=n > 0)
    means = np.where(n > 0, mean, centre)
    smallest = np.finfo(np.float64).tiny  # where all values are the same
    return means, np.maximum(own + var_smoothing * of_all.max(), smallest)


def _spread(
    rows: pa.Table, column: str, values: pa.Array, classes: pa.Array, part: str = "n"
) -> F64:
    """[classes, values] of a column of numbers; 0 where there is no row."""
    table = np.zeros((len(classes), len(values)))
    at = (
        pc.index_in(rows["label"], classes).to_numpy(),
        pc.index_in(rows[column], values).to_numpy(),
    )
    table[at] = rows[part].to_numpy()
    return table


def _sorted(column: pa.ChunkedArray) -> pa.Array:
    distinct = _whole(column.unique())
    return distinct.take(pc.sort_indices(distinct))


def _whole(column: Any) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
