"""A function over all rows, spread by what they cost."""
