"""Estimated errors: what a run knows of its error without a reference."""

from .estimate import Estimate, Piece, estimate_error

__all__ = ["Estimate", "Piece", "estimate_error"]
