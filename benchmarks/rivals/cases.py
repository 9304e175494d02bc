"""What all libraries are given alike: equations, points, first weights, references.

Only numpy is needed, so that every environment can import it. Points have the columns t, x.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

ALPHA, BETA, GAMMA = 100 / 16, 100 / 16**2, 100 / 16**4  # of Kuramoto–Sivashinsky
NU = 0.01 / np.pi  # of Burgers
EPSILON, REACTION = 1e-4, 5.0  # of Allen–Cahn


@dataclass(frozen=True)
class Equation:
    """An equation on t ∈ [0, 1] and an interval of x, with its initial values."""

    interval: tuple[float, float]
    start: Callable[[np.ndarray], np.ndarray]


EQUATIONS = {
    "allen-cahn": Equation((-1.0, 1.0), lambda x: x**2 * np.cos(np.pi * x)),
    "kuramoto-sivashinsky": Equation((0.0, 2 * np.pi), lambda x: np.cos(x) * (1 + np.sin(x))),
}


@dataclass(frozen=True)
class Size:
    """A network and a number of points."""

    width: int
    depth: int
    residual: int
    initial: int
    precision: str

    @property
    def layers(self) -> list[int]:
        return [2, *[self.width] * self.depth, 1]

    @property
    def parameters(self) -> int:
        return sum(a * b + b for a, b in pairwise(self.layers))


STEP = Size(64, 4, 1024, 512, "float32")
SSBROYDEN = Size(30, 3, 4096, 512, "float64")


def points(name: str, size: Size) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Residual points, initial points ``(n, 2)`` and the initial values ``(n, 1)``."""
    rng = np.random.default_rng(0)
    equation = EQUATIONS[name]
    low, high = equation.interval
    inside = rng.random((size.residual, 2))
    inside[:, 1] = low + (high - low) * inside[:, 1]
    x = np.linspace(low, high, size.initial)[:, None]
    first = np.concatenate([np.zeros_like(x), x], axis=1)
    kept = [a.astype(size.precision) for a in (inside, first, equation.start(x))]
    return kept[0], kept[1], kept[2]


def weights(size: Size) -> list[tuple[np.ndarray, np.ndarray]]:
    """The same first weights ``(inputs, outputs)`` and biases for everyone: Glorot normal, zero."""
    rng = np.random.default_rng(1)
    drawn = []
    for a, b in pairwise(size.layers):
        weight = rng.normal(size=(a, b)) * np.sqrt(2 / (a + b))
        drawn.append((weight.astype(size.precision), np.zeros(b, size.precision)))
    return drawn


class Reference:
    """A reference on hyrespinn's test grid, as ``run.py`` exports it."""

    def __init__(self, path: Path):
        with np.load(path) as file:
            self.points, self.values = file["points"], file["values"]

    def error(self, values: np.ndarray) -> float:
        """The relative ℓ2 error of values at ``points``."""
        difference = np.asarray(values, float).reshape(-1) - self.values
        return float(np.linalg.norm(difference) / np.linalg.norm(self.values))
