"""The live page: what an observer sees, pushed to a browser on this machine."""

from skewless.live.history import HotKey, PlanFacts, Sight
from skewless.live.page import Page

__all__ = ["HotKey", "Page", "PlanFacts", "Sight"]
