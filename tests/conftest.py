"""One hypothesis profile: kernels compile on first use, so examples have no deadline."""

from hypothesis import settings

settings.register_profile("skewless", deadline=None, derandomize=True)
settings.load_profile("skewless")
