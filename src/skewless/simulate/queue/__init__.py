"""The queueing simulator: time, capacities, costs, late feedback."""
