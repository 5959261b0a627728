"""Tests of distinct counts are skipped where the package of the sketches is not installed."""

import importlib.util

import pytest

needs_sketches = pytest.mark.skipif(
    importlib.util.find_spec("datasketches") is None, reason="datasketches is not installed"
)
