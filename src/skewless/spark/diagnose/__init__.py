"""Which key of a DataFrame is hot, what would help, and whether it did."""
