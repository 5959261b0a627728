"""Small compiled data structures over NumPy arrays: each file has its arrays, update and merge."""
