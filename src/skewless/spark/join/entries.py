"""Which of some keys a row has, as a Column expression over tables of literals."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from pyspark.sql import Column
from pyspark.sql import functions as F

from skewless.spark.routing.columns import lay_out, literal_array, slot_of

I64 = npt.NDArray[np.int64]


def entry_of(values: tuple[Column, ...], identities: npt.NDArray[np.uint64], hashes: I64) -> Column:
    """The number of a row's key among some keys, or −1."""
    heads = lay_out(identities, np.arange(identities.size, dtype=np.int32))
    hashed = np.where(heads.values >= 0, hashes[heads.values], 0)
    identity = F.xxhash64(*values)
    slot = slot_of(identity, heads)
    # Both hashes must agree: no cold key is taken for a hot one, which might not exist elsewhere.
    found = (F.get(literal_array(heads.keys, "bigint"), slot) == identity) & (
        F.get(literal_array(hashed, "int"), slot) == F.hash(*values)
    )
    number = F.get(literal_array(heads.values, "int"), slot)
    return F.coalesce(F.when(found, number), F.lit(-1))
