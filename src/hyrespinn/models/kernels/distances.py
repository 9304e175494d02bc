"""Squared distances of points to centres, with trainable shapes.

``r² = |M_j (h − c_j)|²`` with ``M_j`` a scalar, a diagonal or a lower triangular matrix
(equations for isotropic, diagonal and full Mahalanobis distances in the paper). Scales are
stored as logarithms of the inverse width, so they stay positive during training.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jax import Array

from ...derivatives import Taylor, column, square
from ...registry import Registry
from ..layers import Series

# Up to this many coordinates, differences are formed one coordinate at a time, which is exact
# near a centre; beyond, the square is expanded into matrix products, which is much faster: it took
# between a sixth and a half off loss and gradient with the three features of time and a periodic
# coordinate (docs/notes.md).
DIRECT = 2
# Many kernels that stay where they are depend on each other so nearly that rounding counts.
DIRECT_FIXED = 8

Shapes: TypeAlias = tuple[Array, ...]
"""The shape parameters of all centres, which a network holds and trains."""


@dataclass(frozen=True)
class Distance(ABC):
    """A kind of distance. A new one is one class with these methods and ``@register("name")`` above it."""

    @abstractmethod
    def start(self, widths: Array, dimension: int) -> Shapes:
        """The shape parameters of ``widths``, ``(centres,)`` or ``(centres, dimension)``."""

    @abstractmethod
    def squares(self, shapes: Shapes, h: Series, centers: Array, direct: int = DIRECT) -> Series:
        """``r²`` with shape ``(..., centres)``, by differences of up to ``direct`` coordinates."""

    @abstractmethod
    def widths(self, shapes: Shapes, dimension: int) -> Array:
        """The widths ``(centres, dimension)`` along the coordinate axes, for pictures."""

    @abstractmethod
    def count(self, dimension: int) -> int:
        """The number of shape parameters of one centre."""


@dataclass(frozen=True)
class Isotropic(Distance):
    """One width for each centre: ``|h − c_j| / σ_j``."""

    def start(self, widths: Array, dimension: int) -> Shapes:
        logs = jnp.log(widths)
        return (-(logs if logs.ndim == 1 else jnp.mean(logs, axis=1)),)

    def squares(self, shapes: Shapes, h: Series, centers: Array, direct: int = DIRECT) -> Series:
        return _scaled_squares(h, centers, jnp.exp(shapes[0])[:, None], direct)

    def widths(self, shapes: Shapes, dimension: int) -> Array:
        return jnp.repeat(jnp.exp(-shapes[0])[:, None], dimension, axis=1)

    def count(self, dimension: int) -> int:
        return 1


@dataclass(frozen=True)
class Diagonal(Distance):
    """A width for each centre and coordinate (the paper's default)."""

    def start(self, widths: Array, dimension: int) -> Shapes:
        return (_along_axes(-jnp.log(widths), dimension),)

    def squares(self, shapes: Shapes, h: Series, centers: Array, direct: int = DIRECT) -> Series:
        return _scaled_squares(h, centers, jnp.exp(shapes[0]), direct)

    def widths(self, shapes: Shapes, dimension: int) -> Array:
        return jnp.exp(-shapes[0])

    def count(self, dimension: int) -> int:
        return dimension


@dataclass(frozen=True)
class Full(Distance):
    """A lower triangular ``M_j`` with positive diagonal for each centre.

    Its shapes are the logarithms of the diagonals and the entries below them, row by row.
    """

    def start(self, widths: Array, dimension: int) -> Shapes:
        below = jnp.zeros((widths.shape[0], dimension * (dimension - 1) // 2))
        return _along_axes(-jnp.log(widths), dimension), below

    def matrices(self, shapes: Shapes) -> Array:
        """``M_j`` of all centres, ``(centres, dimension, dimension)``."""
        log_diagonal, below = shapes
        dimension = log_diagonal.shape[1]
        rows, columns = jnp.tril_indices(dimension, -1)
        diagonal = jnp.arange(dimension)
        empty = jnp.zeros((*log_diagonal.shape, dimension), log_diagonal.dtype)
        filled = empty.at[:, diagonal, diagonal].set(jnp.exp(log_diagonal))
        return filled.at[:, rows, columns].set(below)

    def squares(self, shapes: Shapes, h: Series, centers: Array, direct: int = DIRECT) -> Series:
        matrices = self.matrices(shapes)
        count, dimension, _ = matrices.shape
        flat = matrices.reshape(count * dimension, dimension).T
        offset = jnp.einsum("jki,ji->jk", matrices, centers).reshape(-1)
        squares = square(h @ flat - offset)

        def total(part: Array) -> Array:
            return part.reshape(*part.shape[:-1], count, dimension).sum(-1)

        return squares.map(total) if isinstance(squares, Taylor) else total(squares)

    def widths(self, shapes: Shapes, dimension: int) -> Array:
        matrices = self.matrices(shapes)
        return 1 / jnp.sqrt(jnp.einsum("jki,jki->ji", matrices, matrices))

    def count(self, dimension: int) -> int:
        return dimension * (dimension + 1) // 2


DISTANCES = Registry("distance", Distance)
DISTANCES.register("isotropic", Isotropic)
DISTANCES.register("diagonal", Diagonal)
DISTANCES.register("full", Full)


def _along_axes(values: Array, dimension: int) -> Array:
    """``(centres, dimension)`` values, given those or one for each centre."""
    return values if values.ndim == 2 else jnp.repeat(values[:, None], dimension, axis=1)


def _scaled_squares(h: Series, centers: Array, inverse: Array, direct: int) -> Series:
    """``Σ_i (inverse_ji (h_i − c_ji))²``."""
    dimension = centers.shape[1]
    inverse = jnp.broadcast_to(inverse, centers.shape)
    if dimension <= direct:
        terms = [square((column(h, i) - centers[:, i]) * inverse[:, i]) for i in range(dimension)]
        return sum(terms[1:], start=terms[0])
    weights = inverse**2
    squares, offsets = square(h) @ weights.T, jnp.sum(weights * centers**2, axis=1)
    expanded = squares - h @ (2 * weights * centers).T + offsets
    return _above_rounding(expanded, squares, offsets)


def _above_rounding(s: Series, squares: Series, offsets: Array) -> Series:
    """Keep an expanded square above the rounding error of its terms, where a root is noise."""
    largest = (squares.value if isinstance(squares, Taylor) else squares) + offsets
    floor = 4 * jnp.finfo(s.dtype).eps * jax.lax.stop_gradient(largest)
    if isinstance(s, Taylor):
        return s.like({**s.parts, s.zero: jnp.maximum(s.value, floor)})
    return jnp.maximum(s, floor)
