"""Where streams keep their state."""

from __future__ import annotations

from pyspark.sql import SparkSession

STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
_STORES = "org.apache.spark.sql.execution.streaming.state."
IN_MEMORY = _STORES + "HDFSBackedStateStoreProvider"
ROCKSDB = _STORES + "RocksDBStateStoreProvider"


def use_rocksdb(spark: SparkSession) -> None:
    """Let streams of this session keep state in RocksDB, unless the user chose another store.

    Spark reads the setting when a query starts, and a restarted one follows its checkpoint. Its
    default store holds all state in the memory of the JVM; who sets that one by name keeps it.
    """
    if not spark.conf.get(STATE_STORE, ""):
        spark.conf.set(STATE_STORE, ROCKSDB)
