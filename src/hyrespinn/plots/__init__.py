"""Figures, made from arrays and result files alone."""

import threading
from importlib import import_module

from .fields import plot_fields
from .history import plot_history
from .overview import plot_overview

__all__ = ["plot_fields", "plot_history", "plot_overview", "prepare_to_draw"]


def prepare_to_draw() -> None:
    """Import what figures need, while something else is computed."""
    names = ("matplotlib.figure", "matplotlib.backends.backend_agg", "matplotlib.colorbar")
    work = threading.Thread(target=lambda: [import_module(name) for name in names], daemon=True)
    work.start()
