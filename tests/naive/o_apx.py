from tests.naive.off_greedy import route

__all__ = ["route"]
