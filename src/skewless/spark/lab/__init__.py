"""Schemes side by side on a Spark of one machine."""
