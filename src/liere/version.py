"""The version, in a file of its own: whoever needs it need not import the package."""

__all__ = ["__version__"]

__version__ = "0.1.0"
