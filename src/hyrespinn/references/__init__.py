"""Reference solutions to measure errors with; training never sees them."""

from . import allen_cahn  # noqa: F401 - registers its references
from .reference import Reference, error_axes, reference_of

__all__ = ["Reference", "error_axes", "reference_of"]
