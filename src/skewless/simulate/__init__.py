"""Hosts that run schemes over streams without an engine."""
