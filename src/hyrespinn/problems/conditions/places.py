"""Where conditions hold, and how points are drawn there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from ...geometry import Domain
from ...geometry.lattice import Lattice
from ...geometry.patch import Patch
from ...geometry.patch import draw as draw_points
from ...geometry.sampling import PoissonDisk, Sampler


class Samples(NamedTuple):
    """Points ``(n, d)`` of one term, with outward normals where they lie on a boundary.

    ``data`` are values to meet in place of those that the condition itself gives; ``shares`` are
    weights with which a mean over the points is taken. ``factors`` multiply residuals at points that
    are not spread evenly, so that their mean square is still that over the whole place.
    """

    points: Array
    normals: Array | None = None
    data: Array | None = None
    shares: Array | None = None
    factors: Array | None = None


@dataclass(frozen=True)
class Counts:
    """How many points the equation gets, and conditions of either kind."""

    interior: int
    initial: int
    boundary: int


@dataclass(frozen=True)
class Sampling:
    """How points are drawn: how many, by which sampler, in which precision.

    With a lattice the equation and the initial conditions have its points.
    """

    counts: Counts
    sampler: Sampler
    dtype: jnp.dtype
    lattice: Lattice | None = None

    @property
    def fixed(self) -> bool:
        """Whether the points of the interior are the same in every draw."""
        return isinstance(self.sampler, PoissonDisk) or self.lattice is not None

    def array(self, values: np.ndarray) -> Array:
        return jnp.asarray(values, self.dtype)


class Place(ABC):
    """A part of a domain, or of its boundary, in which a condition holds."""

    @abstractmethod
    def draw(self, key: Array, domain: Domain, sampling: Sampling) -> Samples:
        """Points of it; called inside compiled code."""

    def grid(self, sampling: Sampling) -> tuple[int, ...]:
        """The shape of the points where they form a grid, else nothing."""
        return ()


@dataclass(frozen=True)
class Interior(Place):
    """All of the domain."""

    def draw(self, key: Array, domain: Domain, sampling: Sampling) -> Samples:
        if sampling.lattice is not None:
            return Samples(sampling.array(sampling.lattice.points()))
        count = sampling.counts.interior
        return Samples(domain.interior(key, count, sampling.sampler, sampling.dtype))

    def grid(self, sampling: Sampling) -> tuple[int, ...]:
        return () if sampling.lattice is None else sampling.lattice.shape


@dataclass(frozen=True)
class InitialTime(Place):
    """The beginning of time."""

    def draw(self, key: Array, domain: Domain, sampling: Sampling) -> Samples:
        if sampling.lattice is not None:
            return Samples(sampling.array(sampling.lattice.start()))
        count = sampling.counts.initial
        return Samples(domain.initial(key, count, sampling.sampler, sampling.dtype))

    def grid(self, sampling: Sampling) -> tuple[int, ...]:
        return () if sampling.lattice is None else sampling.lattice.space


@dataclass(frozen=True)
class Pieces(Place):
    """Pieces of the boundary by name, with outward normals."""

    names: tuple[str, ...]

    def draw(self, key: Array, domain: Domain, sampling: Sampling) -> Samples:
        count = sampling.counts.boundary
        return Samples(*domain.boundary(key, count, self.names, sampling.sampler, sampling.dtype))


@dataclass(frozen=True)
class Planes(Place):
    """Planes inside the domain across one axis, with the normal along it."""

    axis: str
    at: tuple[float, ...]

    def draw(self, key: Array, domain: Domain, sampling: Sampling) -> Samples:
        cuts = tuple(cut(domain, self.axis, at) for at in self.at)
        count = sampling.counts.boundary
        placed = draw_points(cuts, key, count, sampling.sampler, sampling.dtype)
        return Samples(placed.points, placed.normals)


@lru_cache(maxsize=64)
def cut(domain: Domain, axis: str, at: float) -> Patch:
    """A plane through a domain, made once: its size is an estimate that takes a while."""
    return domain.cut(axis, at)


@dataclass(frozen=True)
class LowerEnd(Place):
    """The lower end of one axis, which stands for both ends."""

    axis: str

    def draw(self, key: Array, domain: Domain, sampling: Sampling) -> Samples:
        axis = domain.coordinates.index(self.axis)
        count, pieces = sampling.counts.boundary, (f"{self.axis}.min",)
        points, _ = domain.boundary(key, count, pieces, sampling.sampler, sampling.dtype)
        return Samples(points.at[:, axis].set(domain.bounds[axis][0]))


@dataclass(frozen=True)
class Quadrature(Place):
    """Nodes of a quadrature over the domain: always the same, so that a mean has no random error."""

    def draw(self, key: Array, domain: Domain, sampling: Sampling) -> Samples:
        nodes, shares = domain.body.quadrature(sampling.counts.interior)
        return Samples(sampling.array(nodes), shares=sampling.array(shares))


@dataclass(frozen=True)
class FixedPoints(Place):
    """Points that are given, one tuple of coordinates each."""

    points: Sequence[Sequence[float]]

    def draw(self, key: Array, domain: Domain, sampling: Sampling) -> Samples:
        return Samples(sampling.array(np.asarray(self.points, dtype=float)))
