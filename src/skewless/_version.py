"""The version, where everything can read it: the workers' must be the driver's."""

__version__ = "0.2.0"
