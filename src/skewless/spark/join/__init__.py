"""Joins without stragglers: each hot key is a grid of cells, spread over the tasks."""
