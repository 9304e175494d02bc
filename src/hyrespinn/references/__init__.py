"""Reference solutions to measure errors with; training never sees them."""

from . import allen_cahn, burgers, dispersive, grey_scott  # noqa: F401 - they register themselves
from .reference import (
    Reference,
    error_axes,
    make_reference,
    reference_of,
    reference_of_the_paper,
)

__all__ = [
    "Reference",
    "error_axes",
    "make_reference",
    "reference_of",
    "reference_of_the_paper",
]
