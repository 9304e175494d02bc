"""Products of B-splines on a box, and what operators make of them at scattered points."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from ..derivatives import MultiIndex

Coefficients = Mapping[MultiIndex, np.ndarray]
"""Of a linear operator at points, by derivative: ``(points, fields)`` each."""


def cardinal(u: np.ndarray, degree: int, order: int) -> np.ndarray:
    """The ``order``-th derivatives of the ``degree + 1`` B-splines on a cell of length one.

    ``u`` are places in the cell; ``(places, degree + 1)``, by the recursion of Cox and de Boor.

    >>> cardinal(np.array([0.0, 0.5]), 2, 0).tolist()
    [[0.5, 0.5, 0.0], [0.125, 0.75, 0.125]]
    """
    values = np.ones((1, *u.shape))
    for k in range(1, degree - order + 1):
        j = np.arange(k)[:, None]
        longer = np.zeros((k + 1, *u.shape))
        longer[:-1] += (j + 1 - u) / k * values
        longer[1:] += (u + k - 1 - j) / k * values
        values = longer
    for _ in range(order):
        longer = np.zeros((len(values) + 1, *u.shape))
        longer[1:] += values
        longer[:-1] -= values
        values = longer
    return values.T


@dataclass(frozen=True)
class SplineSpace:
    """``cells`` equal cells along each coordinate; unknowns are numbered so that neighbours are near.

    >>> space = SplineSpace(((0.0, 1.0), (0.0, 2.0)), (4, 8), 3, (False, True), fields=1)
    >>> space.counts, space.size
    ((7, 8), 56)
    """

    bounds: tuple[tuple[float, float], ...]
    cells: tuple[int, ...]
    degree: int
    periodic: tuple[bool, ...]
    fields: int

    @property
    def counts(self) -> tuple[int, ...]:
        """The splines along each coordinate."""
        return tuple(
            max(n, self.degree + 1) if p else n + self.degree
            for n, p in zip(self.cells, self.periodic, strict=True)
        )

    @property
    def size(self) -> int:
        return math.prod(self.counts) * self.fields

    @cached_property
    def _order(self) -> tuple[int, ...]:
        """The coordinates, the one with most unknowns first: the band is as wide as the others."""
        lengths = [n / (2 if p else 1) for n, p in zip(self.counts, self.periodic, strict=True)]
        return tuple(sorted(range(len(lengths)), key=lambda a: -lengths[a]))

    @property
    def bandwidth(self) -> int:
        """How far apart the numbers of two splines that overlap may be."""
        first, *others = self._order
        across = math.prod(self.counts[a] for a in others) * self.fields
        return min(self.size - 1, ((2 if self.periodic[first] else 1) * self.degree + 1) * across)

    def _number(self, axis: int, cell: np.ndarray) -> np.ndarray:
        """The numbers of the splines on cells along an axis: ``(places, degree + 1)``."""
        along = cell[:, None] + np.arange(self.degree + 1)
        count = self.counts[axis]
        if not self.periodic[axis]:
            return along
        along = along % count
        if axis != self._order[0]:
            return along
        # Folded, so that both ends of the period have numbers that are near.
        return np.where(2 * along < count, 2 * along, 2 * (count - 1 - along) + 1)

    def rows(self, points: np.ndarray, coefficients: Coefficients) -> scipy.sparse.csr_array:
        """``Σ c_α ∂^α`` of all splines at points: a row for each point, a column for each unknown."""
        tables: dict[tuple[int, int], np.ndarray] = {}
        numbers: np.ndarray = np.zeros((len(points), 1), np.int64)
        for a in self._order:
            lower, upper = self.bounds[a]
            cells = self.counts[a] if self.periodic[a] else self.cells[a]
            width = (upper - lower) / cells
            place = (points[:, a] - lower) / width
            cell = np.clip(np.floor(place).astype(np.int64), 0, cells - 1)
            for order in {index[a] for index in coefficients}:
                tables[a, order] = cardinal(place - cell, self.degree, order) / width**order
            along = self._number(a, cell)
            numbers = (numbers[:, :, None] * self.counts[a] + along[:, None]).reshape(
                len(points), -1
            )
        values = np.zeros((*numbers.shape, self.fields))
        for index, coefficient in coefficients.items():
            if not np.any(coefficient):
                continue
            product = np.ones((len(points), 1))
            for a in self._order:
                product = (product[:, :, None] * tables[a, index[a]][:, None]).reshape(
                    len(points), -1
                )
            values += product[:, :, None] * coefficient[:, None]
        columns = numbers[:, :, None] * self.fields + np.arange(self.fields)
        ends = np.arange(len(points) + 1) * (numbers.shape[1] * self.fields)
        return scipy.sparse.csr_array(
            (values.reshape(-1), columns.reshape(-1), ends), shape=(len(points), self.size)
        )

    def values(self, points: np.ndarray, index: MultiIndex, field: int) -> scipy.sparse.csr_array:
        """One derivative of one field."""
        unit = np.zeros((len(points), self.fields))
        unit[:, field] = 1
        return self.rows(points, {index: unit})
