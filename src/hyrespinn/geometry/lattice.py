"""Points of a box that form a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from jaxtyping import Float

from ..errors import UserError
from .domain import Domain


@dataclass(frozen=True)
class Lattice:
    """``shape`` points along each coordinate of a box.

    They are evenly spaced along a periodic coordinate, and Radau's points along time: the last of
    them is the end of time, and a solution that satisfies an equation at them is more accurate at
    the end than anywhere else, which is where the next window begins. Along any other coordinate
    they are those of Gauss.
    """

    domain: Domain
    shape: tuple[int, ...]
    periodic: tuple[bool, ...]

    def __post_init__(self) -> None:
        names = self.domain.coordinates
        if len(self.shape) != len(names) or any(n < 1 for n in self.shape):
            raise UserError(
                f"points.counts needs a number of points for each of {', '.join(names)}, at least "
                f"one, and is {list(self.shape)}."
            )
        if self.domain.volume < (1 - 1e-9) * math.prod(b - a for a, b in self.domain.bounds):
            raise UserError(f"Points on a grid are for boxes; {self.domain!r} is none.")

    @property
    def space(self) -> tuple[int, ...]:
        """The points at one time, as a grid of all coordinates."""
        return (1, *self.shape[1:])

    def points(self) -> Float[np.ndarray, "n d"]:
        """All points, the last coordinate fastest."""
        return _grid([self._axis(a) for a in range(len(self.shape))])

    def start(self) -> Float[np.ndarray, "n d"]:
        """The points at the initial time."""
        later = [self._axis(a) for a in range(1, len(self.shape))]
        return _grid([np.array([self.domain.bounds[0][0]]), *later])

    def _axis(self, a: int) -> np.ndarray:
        (lower, upper), count = self.domain.bounds[a], self.shape[a]
        if self.periodic[a]:
            unit = np.arange(count) / count
        elif self.domain.has_time and a == 0:
            unit = radau_points(count)
        else:
            unit = 0.5 + 0.5 * scipy.special.roots_legendre(count)[0]
        return lower + (upper - lower) * unit


def radau_points(count: int) -> Float[np.ndarray, " {count}"]:
    """Radau's points in (0, 1], the last of which is 1.

    >>> radau_points(2).round(6).tolist()
    [0.333333, 1.0]
    """
    inner = scipy.special.roots_jacobi(count - 1, 1, 0)[0] if count > 1 else np.zeros(0)
    return 0.5 + 0.5 * np.append(inner, 1.0)


def _grid(axes: list[np.ndarray]) -> np.ndarray:
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
