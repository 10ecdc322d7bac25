"""The version, in its own file so that it can be read without importing the package."""

__all__ = ["__version__"]

__version__ = "0.1.0"
