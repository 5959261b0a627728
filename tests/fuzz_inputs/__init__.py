"""Inputs that somebody might hand in, damaged at random: one sentence or a result, never more."""
