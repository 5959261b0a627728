"""A stateful processor per worker."""
