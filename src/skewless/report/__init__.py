"""Results for people: tables on a terminal, pictures in a file. Reads results, computes none."""
