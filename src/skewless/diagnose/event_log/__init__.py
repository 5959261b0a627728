"""Spark's event logs, read without Spark: what each stage did, what skew cost, and where."""
