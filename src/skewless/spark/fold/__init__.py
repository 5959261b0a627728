"""Fold on the workers, merge by key: batch and streams."""
