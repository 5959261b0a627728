"""What the user sees of a computation: records, progress, Prometheus."""
