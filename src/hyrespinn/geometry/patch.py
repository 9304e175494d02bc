"""Sets as images of a unit cube: the body of a domain, its faces, a cut through it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .poisson import poisson_disk
from .sampling import PoissonDisk, Sampler, UnitSampler, sobol_points

ESTIMATE = 2**16

Points: TypeAlias = Any
"""An array of JAX or of numpy; what goes in is what comes out, which no type can say."""


class Placed(NamedTuple):
    """Points ``(n, d)``; unit normals where the set is a surface; which points belong to it."""

    points: Points
    normals: Points = None
    keep: Points = None

    def at(self, index: Points) -> Placed:
        """Some of the points, all of which belong."""
        return Placed(self.points[index], None if self.normals is None else self.normals[index])


def together(parts: Sequence[Placed]) -> Placed:
    """The points of several parts, one after the other."""
    xp = parts[0].points.__array_namespace__()
    points = xp.concatenate([part.points for part in parts])
    if parts[0].normals is None:
        return Placed(points)
    return Placed(points, xp.concatenate([part.normals for part in parts]))


class Patch:
    """A set of points as the image of the unit cube under a map that keeps uniform points uniform.

    ``place`` maps points ``(n, dimension)`` of the cube, numpy's or JAX's, to :class:`Placed`;
    where that has ``keep``, the other points are outside the set and are rejected. ``full`` is
    the length, area or volume of the image before rejection.
    """

    def __init__(self, dimension: int, full: float, place: Callable[[Points], Placed]):
        self.dimension, self.full, self.place = dimension, full, place

    @cached_property
    def share(self) -> float:
        """The share of the image that belongs to the set; an estimate where points are rejected."""
        if not self.rejects:
            return 1.0
        if self.dimension == 0:
            return float(np.mean(self.place(np.zeros((1, 0))).keep))
        unit = sobol_points(ESTIMATE, self.dimension, np.random.default_rng(0))
        return float(np.mean(self.place(unit).keep))

    @cached_property
    def rejects(self) -> bool:
        """Whether some points of the cube may fall outside the set."""
        return self.place(np.full((1, self.dimension), 0.5)).keep is not None

    @property
    def measure(self) -> float:
        """Length, area or volume."""
        return self.full * self.share

    def where(self, test: Callable[[Points, Points], Points]) -> Patch:
        """The part on which ``test(points, normals)`` holds."""

        def place(unit: Points) -> Placed:
            points, normals, keep = self.place(unit)
            passed = test(points, normals)
            return Placed(points, normals, passed if keep is None else keep & passed)

        return Patch(self.dimension, self.full, place)

    def flipped(self) -> Patch:
        """The same surface seen from its other side."""

        def place(unit: Points) -> Placed:
            points, normals, keep = self.place(unit)
            return Placed(points, -normals, keep)

        return Patch(self.dimension, self.full, place)

    def times(self, other: Patch) -> Patch:
        """The product: the coordinates of this set, then those of the other."""

        def place(unit: Points) -> Placed:
            xp = unit.__array_namespace__()
            one, two = self.place(unit[:, : self.dimension]), other.place(unit[:, self.dimension :])
            points = xp.concatenate([one.points, two.points], axis=1)
            normals = None
            if one.normals is not None or two.normals is not None:
                parts = [
                    xp.zeros_like(part.points) if part.normals is None else part.normals
                    for part in (one, two)
                ]
                normals = xp.concatenate(parts, axis=1)
            keeps = [part.keep for part in (one, two) if part.keep is not None]
            keep = keeps[0] & keeps[-1] if keeps else None
            return Placed(points, normals, keep)

        return Patch(self.dimension + other.dimension, self.full * other.full, place)

    def joined(self, other: Patch) -> Patch:
        """This set and another, apart from it: the first coordinate of the cube chooses between them."""
        whole = self.full + other.full
        split = self.full / whole

        def place(unit: Points) -> Placed:
            xp = unit.__array_namespace__()
            mine, choice = unit[:, 0] < split, unit[:, 0]
            # Each part of the cube is stretched to a whole one.
            first = xp.clip(xp.where(mine, choice / split, (choice - split) / (1 - split)), 0, 1)
            stretched = xp.concatenate([first[:, None], unit[:, 1:]], axis=1)
            one, two = self.place(stretched), other.place(stretched)
            keeps = [xp.ones_like(mine) if part.keep is None else part.keep for part in (one, two)]
            points = xp.where(mine[:, None], one.points, two.points)
            return Placed(points, None, xp.where(mine, *keeps))

        return Patch(self.dimension, whole, place)

    def draw(self, key: Array, count: int, sampler: UnitSampler, dtype: jnp.dtype) -> Placed:
        """``count`` points, inside compiled code."""
        candidates = self._candidates(count)
        if self.dimension == 0:
            unit = jnp.zeros((candidates, 0), dtype)
        else:
            unit = sampler(key, candidates, self.dimension, dtype)
        placed = self.place(unit)
        keep = placed.keep
        if keep is None:
            return placed
        # The first that belong; should too few do, which five standard deviations make unlikely,
        # the first of them again.
        chosen = jnp.flatnonzero(keep, size=count, fill_value=jnp.argmax(keep))
        return placed.at(chosen)

    def _candidates(self, count: int) -> int:
        """So many that ``count`` of them belong, with five standard deviations to spare."""
        if not self.rejects:
            return count
        return int(np.ceil((np.sqrt(count) + 2.5 * np.sqrt(1 - self.share) + 2) ** 2 / self.share))

    def scatter(
        self, count: int, rng: np.random.Generator, unit: Callable[[int], np.ndarray] | None = None
    ) -> Placed:
        """``count`` points on the host: independent, or from successive ``unit`` cubes of points."""
        found: list[Placed] = []
        missing = count
        while missing > 0:
            size = self._candidates(missing)
            cube = rng.random((size, self.dimension)) if unit is None else unit(size)
            placed = self.place(cube)
            found.append(placed if placed.keep is None else placed.at(placed.keep))
            missing -= len(found[-1].points)
        if not found:
            return self.place(np.full((1, self.dimension), 0.5)).at(slice(0))
        return together(found).at(slice(count))

    def quadrature(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """About ``count`` points, and weights with which a mean over the set is taken.

        Gauss–Legendre nodes of the cube, so a smooth function has its mean to many digits; where
        points are rejected, evenly spread points of equal weight.
        """
        if self.rejects:
            rng = np.random.default_rng(0)
            points = self.scatter(count, rng, lambda n: sobol_points(n, self.dimension, rng)).points
            return points, np.full(count, 1 / count)
        if self.dimension == 0:
            return self.place(np.zeros((1, 0))).points, np.ones(1)
        per_axis = max(1, round(count ** (1 / self.dimension)))
        nodes, weights = np.polynomial.legendre.leggauss(per_axis)
        unit = np.stack(np.meshgrid(*[0.5 + 0.5 * nodes] * self.dimension), axis=-1)
        product = np.prod(np.meshgrid(*[0.5 * weights] * self.dimension), axis=0)
        return self.place(unit.reshape(-1, self.dimension)).points, product.ravel()


def shares(count: int, measures: Sequence[float] | np.ndarray) -> list[int]:
    """``count`` split in proportion, with at least one for each where there are enough.

    >>> shares(10, [1.0, 4.0]), shares(3, [1.0, 1000.0])
    ([2, 8], [1, 2])
    """
    quota = np.asarray(measures) / np.sum(measures) * count
    split = np.floor(quota).astype(int)
    for i in np.argsort(split - quota, kind="stable")[: count - split.sum()]:
        split[i] += 1
    while count >= len(split) and split.min() == 0:
        split[split.argmax()] -= 1
        split[split.argmin()] += 1
    return [int(n) for n in split]


def draw(
    patches: tuple[Patch, ...], key: Array, count: int, sampler: Sampler, dtype: jnp.dtype
) -> Placed:
    """``count`` points of several sets, shared in proportion to their sizes."""
    if isinstance(sampler, PoissonDisk):
        points, normals, _ = fixed_set(patches, count, sampler.seed)
        fixed = Placed(*(None if a is None else jnp.asarray(a, dtype) for a in (points, normals)))
        return fixed.at(jax.random.permutation(key, count))
    assert isinstance(sampler, UnitSampler)
    parts = [
        patch.draw(jax.random.fold_in(key, i) if len(patches) > 1 else key, n, sampler, dtype)
        for i, (patch, n) in enumerate(
            zip(patches, shares(count, [p.measure for p in patches]), strict=True)
        )
    ]
    return together(parts)


def scatter(patches: tuple[Patch, ...], count: int, sampler: UnitSampler, seed: int) -> Placed:
    """The same on the host, in double precision: only the points of the cube are JAX's."""
    key = jax.random.key(seed)
    parts = []
    numbers = shares(count, [p.measure for p in patches])
    for i, (patch, number) in enumerate(zip(patches, numbers, strict=True)):
        keys = [jax.random.fold_in(key, i) if len(patches) > 1 else key]

        def cube(size: int, patch: Patch = patch, keys: list[Array] = keys) -> np.ndarray:
            if patch.dimension == 0:
                return np.zeros((size, 0))
            with jax.enable_x64(True):
                unit = np.asarray(sampler(keys[-1], size, patch.dimension, jnp.dtype("float64")))
            keys.append(jax.random.fold_in(keys[-1], 0))
            return unit

        parts.append(patch.scatter(number, np.random.default_rng(seed), cube))
    return together(parts)


@lru_cache(maxsize=64)
def fixed_set(patches: tuple[Patch, ...], count: int, seed: int) -> tuple[Any, Any, float]:
    """The same points every time."""
    return spread(patches, count, np.random.default_rng(seed))


def spread(
    patches: tuple[Patch, ...], count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray | None, float]:
    """Poisson-disk points of several sets together, their normals and a distance that all keep."""
    measures = np.asarray([patch.measure for patch in patches])

    def throw(darts: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray | None]:
        if patches[0].dimension == 0:  # single points: nothing to spread
            numbers = np.asarray(shares(darts, measures))
        else:
            numbers = rng.multinomial(darts, measures / measures.sum())
        parts = [p.scatter(int(n), rng) for p, n in zip(patches, numbers, strict=True) if n]
        points, normals, _ = together(parts).at(rng.permutation(darts))
        return points, normals

    return poisson_disk(throw, patches[0].dimension, float(measures.sum()), count, rng)
