"""The spaces in which errors are looked for: splines on a grid, and Gaussians where cells are too many."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import scipy

from ..derivatives import MultiIndex
from .kernels import KernelSpace
from .splines import Coefficients, SplineSpace

Bounds = tuple[tuple[float, float], ...]


@runtime_checkable
class Space(Protocol):
    """Functions with some unknowns for each field."""

    @property
    def size(self) -> int: ...

    @property
    def fields(self) -> int: ...

    def rows(self, points: np.ndarray, coefficients: Coefficients) -> scipy.sparse.csr_array:
        """What an operator makes of all functions at points."""

    def values(self, points: np.ndarray, index: MultiIndex, field: int) -> scipy.sparse.csr_array:
        """One derivative of one field."""


@runtime_checkable
class Choice(Protocol):
    """What is chosen of a space: it is made for a part of time."""

    @property
    def inside(self) -> float:
        """How many functions there are for a field."""

    @property
    def around(self) -> float:
        """How many of them, or sides of them, lie at the boundary."""

    def space(self, bounds: Bounds, periodic: tuple[bool, ...], fields: int) -> Space: ...


@dataclass(frozen=True)
class Grid:
    """Cells along each coordinate, and the degree of the splines."""

    cells: tuple[int, ...]
    degree: int

    @property
    def inside(self) -> float:
        # Splines reach beyond the ends; and on a line, points cost little.
        splines = math.prod(n + self.degree for n in self.cells)
        return splines * (4 if len(self.cells) == 1 else 1)

    @property
    def around(self) -> float:
        return 2 * len(self.cells) * math.prod(self.cells) / min(self.cells)

    def space(self, bounds: Bounds, periodic: tuple[bool, ...], fields: int) -> SplineSpace:
        return SplineSpace(bounds, self.cells, self.degree, periodic, fields)


@dataclass(frozen=True)
class Scatter:
    """So many Gaussians in a box of some dimension, which know nothing of periods."""

    count: int
    dimension: int

    @property
    def inside(self) -> float:
        return self.count

    @property
    def around(self) -> float:
        return 2 * self.dimension * self.count ** (1 - 1 / self.dimension)

    def space(self, bounds: Bounds, periodic: tuple[bool, ...], fields: int) -> KernelSpace:
        return KernelSpace(bounds, self.count, fields)
