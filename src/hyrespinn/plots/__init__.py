"""Figures, made from arrays and result files alone."""

from .fields import plot_fields
from .history import plot_history

__all__ = ["plot_fields", "plot_history"]
