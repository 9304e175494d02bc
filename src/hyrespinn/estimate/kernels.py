"""Gaussians scattered over a box of four dimensions or more, where splines are too many."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from numpy.polynomial import hermite_e

from ..derivatives import MultiIndex
from ..geometry.sampling import kronecker
from .splines import Coefficients

OVERLAP = 3.0
"""The width of a Gaussian in spacings."""
BEYOND = 0.5
"""How far centres stand outside of the box, in spacings."""


@dataclass(frozen=True)
class KernelSpace:
    """``count`` Gaussians for each field, with the interface of a space of splines.

    >>> space = KernelSpace(((0.0, 1.0), (0.0, 2.0)), 50, fields=2)
    >>> space.size, space.values(np.array([[0.5, 1.0]]), (1, 0), 1).shape
    (100, (1, 100))
    """

    bounds: tuple[tuple[float, float], ...]
    count: int
    fields: int

    @property
    def size(self) -> int:
        return self.count * self.fields

    @property
    def bandwidth(self) -> int:
        return self.size - 1

    @cached_property
    def _widths(self) -> np.ndarray:
        extents = np.array([b - a for a, b in self.bounds])
        return OVERLAP * extents * self.count ** (-1 / len(extents))

    @cached_property
    def _centres(self) -> np.ndarray:
        beyond = BEYOND / OVERLAP * self._widths
        lower, upper = np.asarray(self.bounds).T
        with jax.enable_x64(True):
            dtype = jnp.dtype("float64")
            unit = np.asarray(kronecker(jax.random.key(7), self.count, len(lower), dtype))
        return lower - beyond + (upper - lower + 2 * beyond) * unit

    def rows(self, points: np.ndarray, coefficients: Coefficients) -> scipy.sparse.csr_array:
        """``Σ c_α ∂^α`` of all Gaussians at points: a row for each point, a column for each unknown."""

        def places(axis: int) -> np.ndarray:
            return (points[:, axis, None] - self._centres[:, axis]) / self._widths[axis]

        bells = np.exp(-0.5 * sum(places(axis) ** 2 for axis in range(points.shape[1])))
        values = np.zeros((len(points), self.count, self.fields))
        for index, coefficient in coefficients.items():
            product = bells.copy()
            for axis, order in enumerate(index):
                if order:
                    # The n-th derivative of exp(−z²/2) is (−1)ⁿ Heₙ(z) exp(−z²/2).
                    series = [0.0] * order + [(-1.0 / self._widths[axis]) ** order]
                    product *= hermite_e.hermeval(places(axis), series)
            values += product[:, :, None] * coefficient[:, None]
        return scipy.sparse.csr_array(values.reshape(len(points), self.size))

    def values(self, points: np.ndarray, index: MultiIndex, field: int) -> scipy.sparse.csr_array:
        """One derivative of one field."""
        unit = np.zeros((len(points), self.fields))
        unit[:, field] = 1
        return self.rows(points, {index: unit})
