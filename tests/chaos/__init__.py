"""Rounds of work with faults at random moments, drawn from a seed: `make chaos`."""
