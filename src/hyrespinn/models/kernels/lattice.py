"""Kernels with their centres on a lattice: a Gaussian is a product of one factor a coordinate.

The sum over all kernels is then a chain of small matrix products, one for each coordinate, and on
points that form a grid themselves it costs next to nothing: ten thousand kernels in place of
hundreds, at the same price.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...derivatives import Taylor, reciprocal
from ..checks import at_least, positive, refused
from ..embeddings import Embedding
from ..inputs import Inputs
from ..layers import Layer, Series
from ..parameters import Fixed
from .distances import Diagonal, Shapes
from .kernel import Gaussian

CHUNK = 4096
"""Scattered points are summed over so many at a time: the partial sums stay in the cache."""

Factor: TypeAlias = tuple[Array, Shapes]
"""The places ``(n, features)`` and shapes of the kernels along one coordinate."""


@dataclass(frozen=True)
class Lattice:
    """Gaussians at all places of a lattice in a box; nothing but coefficients is trained.

    Args:
        counts: The number of kernels along each coordinate, time first.
        overlap: The width of a kernel along a coordinate, in spacings along it.
        time_width: The width along time, in half durations (0: ``overlap`` spacings).
        partition_of_unity: The factors along the first coordinate, which is time where there is
            time, are divided by their sum, so that a few kernels make a constant exactly.
    """

    counts: tuple[int, ...] = (8, 64)
    overlap: float = 1.3
    time_width: float = 1.6
    partition_of_unity: bool = False

    def __post_init__(self) -> None:
        whole = all(isinstance(n, int) and n > 0 for n in self.counts)
        if not self.counts or not whole:
            raise refused(
                self,
                "counts is a whole number of kernels for each coordinate, such as (6, 256), not "
                f"{self.counts}.",
            )
        positive(self, overlap=self.overlap)
        at_least(self, 0, time_width=self.time_width)

    @property
    def number(self) -> int:
        """The number of kernels."""
        return math.prod(self.counts)

    def layer(
        self, embedding: Embedding, inputs: Inputs, rng: np.random.Generator
    ) -> LatticeKernels:
        """The kernels, with coefficients of zero for each field; nothing is random."""
        if len(self.counts) != len(inputs.bounds):
            raise refused(
                self,
                f"counts has {len(self.counts)} numbers, and the problem {len(inputs.bounds)} "
                "coordinates, time among them; give one for each.",
            )
        axes = lattice_axes(inputs.bounds, inputs.periodic, self.counts, inputs.has_time)
        along = (self.overlap * embedding.extents() / np.asarray(self.counts)).tolist()
        if inputs.has_time and self.time_width:
            along[0] = self.time_width
        return LatticeKernels(axes, embedding, along, inputs.outputs, self.partition_of_unity)


class LatticeKernels(Layer):
    """``F(h) = Σ_ij… w_ij… Π_a ψ(r_a(h_a, c_a))`` with one Gaussian factor for each coordinate.

    ``factors`` hold the places and widths of the kernels along each coordinate, in embedded
    features; the coefficients are ``(n_1·…·n_d, outputs)``, the last coordinate fastest. Features
    must be those of an :class:`~hyrespinn.models.embeddings.Embedding`, each of which depends on
    one coordinate alone.

    Points have shape ``(n, features)``; those with one axis for each coordinate, ``(n_1, …, n_d,
    features)``, are a grid: feature ``a`` changes along axis ``a`` alone.
    """

    factors: tuple[Fixed[Factor], ...]
    coefficients: Array
    columns: tuple[tuple[int, int], ...] = eqx.field(static=True)
    partition_of_unity: bool = eqx.field(static=True)

    def __init__(
        self, axes: Sequence[np.ndarray], embedding: Embedding, widths: Sequence[float],
        outputs: int, partition_of_unity: bool = False,
    ):  # fmt: skip
        """``axes`` are the places along each coordinate, ``widths`` those of the scaled ones.

        The coefficients begin with zero: random ones of so many narrow kernels make a function that
        changes sign from place to place, and derivatives beyond all measure.
        """
        self.columns, self.partition_of_unity = embedding.columns(), partition_of_unity
        features = embedding.widths(widths)
        factors = []
        for a, (axis, (begin, end)) in enumerate(zip(axes, self.columns, strict=True)):
            points = np.zeros((len(axis), len(axes)))
            points[:, a] = axis
            places = embedding.places(points)[:, begin:end]
            along = jnp.tile(jnp.asarray(features[begin:end]), (len(axis), 1))
            factors.append(Fixed((places, Diagonal().start(along, end - begin))))
        self.factors = tuple(factors)
        self.coefficients = jnp.zeros((int(np.prod(self.shape)), outputs))

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of kernels along each coordinate."""
        return tuple(factor.array[0].shape[0] for factor in self.factors)

    def linear_leaves(self) -> tuple[Array, ...]:
        return (self.coefficients,)

    def __call__(self, h: Series) -> Series:
        if isinstance(h, Taylor) and h.operators:
            raise NotImplementedError("a factor has derivatives along its own coordinate alone")
        dimension = len(self.columns)
        on_grid = dimension > 1 and len(h.shape) == dimension + 1
        if not on_grid and len(h.shape) != 2:
            return _reshaped(self(_reshaped(h, (-1,))), h.shape[:-1])
        weights = self.coefficients.reshape(*self.shape, -1)
        summed = _on_grid if on_grid else _scattered
        factors = [self._factor(a, self._along(h, a, on_grid)) for a in range(dimension)]

        def derivative(index: tuple[int, ...]) -> Array:
            """By the product rule: each factor has derivatives along its own coordinate alone."""
            matrices = [_along_itself(factors[a], a, n, dimension) for a, n in enumerate(index)]
            return summed(matrices, weights)

        if not isinstance(h, Taylor):
            return derivative((0,) * dimension)
        return h.like({index: derivative(index) for index in h.indices})

    def _along(self, h: Series, a: int, on_grid: bool) -> Series:
        """The features of one coordinate at its places: ``(n_a, features)``."""
        chosen = slice(*self.columns[a])
        place = tuple(slice(None) if b == a or not on_grid else 0 for b in range(len(self.columns)))

        def along(part: Array) -> Array:
            return part[place][..., chosen] if on_grid else part[..., chosen]

        if not isinstance(h, Taylor):
            return along(h)
        # Only what is differentiated along this coordinate can be other than zero.
        own = {k: h[k] for k in h.indices if all(n == 0 for b, n in enumerate(k) if b != a)}
        return Taylor({k: along(part) for k, part in own.items()}, tuple(own))

    def _factor(self, a: int, features: Series) -> Series:
        places, shapes = self.factors[a].value
        factor = Gaussian()(Diagonal().squares(shapes, features, places))
        if a or not self.partition_of_unity:
            return factor
        return factor * reciprocal(factor @ jnp.ones((len(places), 1), places.dtype))


def _along_itself(factor: Series, a: int, n: int, dimension: int) -> Array:
    """The ``n``-th derivative of the factor of coordinate ``a`` along it."""
    if not isinstance(factor, Taylor):
        return factor
    return factor[tuple(n if b == a else 0 for b in range(dimension))]


def _reshaped(h: Series, leading: tuple[int, ...]) -> Series:
    """An array or a series with other axes before that of the features."""
    if not isinstance(h, Taylor):
        return h.reshape(*leading, h.shape[-1])
    return h.like({k: h[k].reshape(*leading, h.shape[-1]) for k in h.parts})


def lattice_axes(
    bounds: Sequence[tuple[float, float]],
    periodic: Sequence[bool],
    counts: Sequence[int],
    has_time: bool,
) -> list[np.ndarray]:
    """The places of kernels along each coordinate: evenly spaced, along time as Chebyshev's points.

    >>> axes = lattice_axes([(0.0, 2.0), (-1.0, 1.0)], [False, True], [3, 4], has_time=True)
    >>> [axis.round(12).tolist() for axis in axes]
    [[0.0, 1.0, 2.0], [-1.0, -0.5, 0.0, 0.5]]
    """
    axes = []
    for a, ((lower, upper), is_periodic, count) in enumerate(
        zip(bounds, periodic, counts, strict=True)
    ):
        unit = np.linspace(0, 1, count, endpoint=not is_periodic) if count > 1 else np.full(1, 0.5)
        if has_time and a == 0:
            unit = 0.5 - 0.5 * np.cos(np.pi * unit)  # sharper where the window begins and ends
        axes.append(lower + (upper - lower) * unit)
    return axes


def _on_grid(matrices: Sequence[Array], weights: Array) -> Array:
    """``Σ_ij… A_xi B_yj … w_ij…`` for all combinations of rows, one coordinate after the other."""
    for a, matrix in enumerate(matrices):
        weights = jnp.moveaxis(jnp.tensordot(matrix, weights, axes=(1, a)), 0, a)
    return weights


def _scattered(matrices: Sequence[Array], weights: Array) -> Array:
    """``Σ_ij… A_ni B_nj … w_ij…`` row by row, the longest coordinate first."""
    order = sorted(range(len(matrices)), key=lambda a: -weights.shape[a])
    arranged = jnp.transpose(weights, (*order, weights.ndim - 1))

    def summed(rows: list[Array]) -> Array:
        """For one point: a vector for each coordinate."""
        partial = arranged
        for row in rows:
            partial = jnp.tensordot(row, partial, axes=(0, 0))
        return partial

    rows = [matrices[a] for a in order]
    return jax.lax.map(summed, rows, batch_size=CHUNK)
