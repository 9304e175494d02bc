"""Reference solutions to measure errors with; training never sees them."""

from .reference import Reference, reference_of, test_axes

__all__ = ["Reference", "reference_of", "test_axes"]
