"""What a model must know of a problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Inputs:
    """The shape of a problem as a network sees it: nothing of its equation but the order.

    ``spread(count, rng)`` gives points of the domain far from each other, for initial centres;
    ``cover(count, rng)`` many points that cover it evenly, cheaply.
    """

    bounds: tuple[tuple[float, float], ...]
    periodic: tuple[bool, ...]
    outputs: int
    order: int
    spread: Callable[[int, np.random.Generator], np.ndarray]
    cover: Callable[[int, np.random.Generator], np.ndarray]
    has_time: bool = False  # the first coordinate is time
