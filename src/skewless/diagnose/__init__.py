"""Which key, what it costs, what to do: from a stream, a file, or Spark's own event log."""
