"""Proactive Online Shuffle Grouping: the scheme, the scheduler at a source, and the worker."""
