"""What a model must know of a problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Inputs:
    """The shape of a problem as a network sees it: nothing of its equation but the order.

    ``spread(count, rng)`` gives well-spread points of the domain, for initial centres.
    """

    bounds: tuple[tuple[float, float], ...]
    periodic: tuple[bool, ...]
    outputs: int
    order: int
    spread: Callable[[int, np.random.Generator], np.ndarray]
