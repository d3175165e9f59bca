"""The version of symad."""

__version__ = "0.1.0"
