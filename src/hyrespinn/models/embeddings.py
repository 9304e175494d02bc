"""What a network sees of a point: scaled coordinates, and periodic ones as sines and cosines."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..derivatives import column, concatenate, cos, sin
from .layers import Series


class Embedding(eqx.Module):
    """Coordinates scaled to [−1, 1]; a periodic one becomes ``cos kx, sin kx`` for ``k = 1…harmonics``.

    Every function of the embedding is then exactly periodic, with all its derivatives.

    Args:
        bounds: The lower and upper end of every coordinate.
        periodic: Which coordinates are periodic; none by default.
        harmonics: The number of waves along a periodic coordinate.
    """

    lower: tuple[float, ...] = eqx.field(static=True)
    upper: tuple[float, ...] = eqx.field(static=True)
    periodic: tuple[bool, ...] = eqx.field(static=True)
    harmonics: int = eqx.field(static=True)

    def __init__(
        self,
        bounds: Sequence[tuple[float, float]],
        periodic: Sequence[bool] | None = None,
        harmonics: int = 1,
    ):
        self.lower = tuple(float(a) for a, _ in bounds)
        self.upper = tuple(float(b) for _, b in bounds)
        self.periodic = tuple(periodic) if periodic is not None else (False,) * len(bounds)
        self.harmonics = harmonics

    @property
    def size(self) -> int:
        """The number of features."""
        return sum(2 * self.harmonics if p else 1 for p in self.periodic)

    def columns(self) -> tuple[tuple[int, int], ...]:
        """Where the features of each coordinate begin and end."""
        sizes = [2 * self.harmonics if p else 1 for p in self.periodic]
        ends = np.cumsum([0, *sizes]).tolist()
        return tuple(pairwise(ends))

    def widths(self, along: Sequence[float]) -> np.ndarray:
        """A width for every feature, given one for each scaled coordinate (an angle, if periodic).

        Near a centre the squared distance is then ``Σ (Δ/width)²``, whatever the harmonics.
        """
        features: list[float] = []
        for width, is_periodic in zip(along, self.periodic, strict=True):
            if not is_periodic:
                features.append(width)
                continue
            for k in range(1, self.harmonics + 1):
                features += 2 * [width * k * float(np.sqrt(self.harmonics))]
        return np.asarray(features)

    def extents(self) -> np.ndarray:
        """The lengths of the scaled coordinates: of a periodic one, the whole angle."""
        return np.asarray([2 * np.pi if p else 2.0 for p in self.periodic])

    def __call__(self, x: Series) -> Series:
        lower = jnp.asarray(self.lower, x.dtype)
        scale = 2 / (jnp.asarray(self.upper, x.dtype) - lower)
        scaled = (x - lower) * scale - 1
        if not any(self.periodic):
            return scaled
        features: list[Series] = []
        for i, is_periodic in enumerate(self.periodic):
            one = column(scaled, i)
            if not is_periodic:
                features.append(one)
                continue
            for k in range(1, self.harmonics + 1):
                angle = one * (np.pi * k)
                features += [cos(angle), sin(angle)]
        return concatenate(features)

    def places(self, points: np.ndarray) -> Array:
        """The features of points ``(n, d)``, as an array."""
        return jnp.asarray(self(jnp.asarray(points)))
