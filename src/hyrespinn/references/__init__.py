"""Reference solutions to measure errors with; training never sees them."""

from . import allen_cahn  # noqa: F401 - registers its references
from .reference import Reference, reference_of, test_axes

__all__ = ["Reference", "reference_of", "test_axes"]
