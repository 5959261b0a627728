"""Counts of keys in bounded memory, one summary per worker: what three applications share."""
