"""Consistent Grouping: the scheme, and who owns the virtual workers."""
