"""Which worker a row goes to: as a Column where the plan allows it, in Python otherwise."""
