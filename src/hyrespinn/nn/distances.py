"""Squared distances of points to centres, with trainable shapes.

``r² = |M_j (h − c_j)|²`` with ``M_j`` a scalar, a diagonal or a lower triangular matrix
(equations for isotropic, diagonal and full Mahalanobis distances in the paper). Scales are
stored as logarithms of the inverse width, so they stay positive during training.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..derivatives import Taylor, column, square

# Up to this many coordinates, differences are formed one coordinate at a time, which is exact
# near a centre; beyond, the square is expanded into matrix products, which is much faster: it took
# between a sixth and a half off loss and gradient with the three features of time and a periodic
# coordinate (results/NOTES.md).
DIRECT = 2
# Many kernels that stay where they are depend on each other so nearly that rounding counts.
DIRECT_FIXED = 8


class Distance(eqx.Module):
    """``__call__(h, centres)`` gives ``r²`` with shape ``(..., centres)``, by differences of up to
    ``direct`` coordinates.

    Made of widths: one for each centre, or ``(centres, dimension)`` along the coordinate axes.
    """

    @abstractmethod
    def __call__(self, h: Any, centers: Array, direct: int = DIRECT) -> Any: ...

    @abstractmethod
    def widths(self, dimension: int) -> Array:
        """The widths ``(centres, dimension)`` along the coordinate axes, for pictures."""

    @staticmethod
    @abstractmethod
    def count(dimension: int) -> int:
        """The number of shape parameters of one centre."""


class Isotropic(Distance):
    """One width for each centre: ``|h − c_j| / σ_j``."""

    log_inverse: Array

    def __init__(self, widths: Array, dimension: int):
        logs = jnp.log(widths)
        self.log_inverse = -(logs if logs.ndim == 1 else jnp.mean(logs, axis=1))

    def __call__(self, h: Any, centers: Array, direct: int = DIRECT) -> Any:
        return _scaled_squares(h, centers, jnp.exp(self.log_inverse)[:, None], direct)

    def widths(self, dimension: int) -> Array:
        return jnp.repeat(jnp.exp(-self.log_inverse)[:, None], dimension, axis=1)

    @staticmethod
    def count(dimension: int) -> int:
        return 1


class Diagonal(Distance):
    """A width for each centre and coordinate (the paper's default)."""

    log_inverse: Array

    def __init__(self, widths: Array, dimension: int):
        self.log_inverse = _along_axes(-jnp.log(widths), dimension)

    def __call__(self, h: Any, centers: Array, direct: int = DIRECT) -> Any:
        return _scaled_squares(h, centers, jnp.exp(self.log_inverse), direct)

    def widths(self, dimension: int) -> Array:
        return jnp.exp(-self.log_inverse)

    @staticmethod
    def count(dimension: int) -> int:
        return dimension


class Full(Distance):
    """A lower triangular ``M_j`` with positive diagonal for each centre."""

    log_diagonal: Array
    below: Array  # strictly lower entries, row by row

    def __init__(self, widths: Array, dimension: int):
        self.log_diagonal = _along_axes(-jnp.log(widths), dimension)
        self.below = jnp.zeros((widths.shape[0], dimension * (dimension - 1) // 2))

    @property
    def matrices(self) -> Array:
        dimension = self.log_diagonal.shape[1]
        rows, columns = jnp.tril_indices(dimension, -1)
        diagonal = jnp.arange(dimension)
        empty = jnp.zeros((*self.log_diagonal.shape, dimension), self.log_diagonal.dtype)
        filled = empty.at[:, diagonal, diagonal].set(jnp.exp(self.log_diagonal))
        return filled.at[:, rows, columns].set(self.below)

    def __call__(self, h: Any, centers: Array, direct: int = DIRECT) -> Any:
        matrices = self.matrices
        count, dimension, _ = matrices.shape
        flat = matrices.reshape(count * dimension, dimension).T
        offset = jnp.einsum("jki,ji->jk", matrices, centers).reshape(-1)
        squares = square(h @ flat - offset)

        def total(part: Array) -> Array:
            return part.reshape(*part.shape[:-1], count, dimension).sum(-1)

        return squares.map(total) if isinstance(squares, Taylor) else total(squares)

    def widths(self, dimension: int) -> Array:
        matrices = self.matrices
        return 1 / jnp.sqrt(jnp.einsum("jki,jki->ji", matrices, matrices))

    @staticmethod
    def count(dimension: int) -> int:
        return dimension * (dimension + 1) // 2


def _along_axes(values: Array, dimension: int) -> Array:
    """``(centres, dimension)`` values, given those or one for each centre."""
    return values if values.ndim == 2 else jnp.repeat(values[:, None], dimension, axis=1)


def _scaled_squares(h: Any, centers: Array, inverse: Array, direct: int) -> Any:
    """``Σ_i (inverse_ji (h_i − c_ji))²``."""
    dimension = centers.shape[1]
    inverse = jnp.broadcast_to(inverse, centers.shape)
    if dimension <= direct:
        total: Any = 0.0
        for i in range(dimension):
            coordinate = column(h, i)
            total = total + square((coordinate - centers[:, i]) * inverse[:, i])
        return total
    weights = inverse**2
    squares, offsets = square(h) @ weights.T, jnp.sum(weights * centers**2, axis=1)
    expanded = squares - h @ (2 * weights * centers).T + offsets
    return _above_rounding(expanded, squares, offsets)


def _above_rounding(s: Any, squares: Any, offsets: Array) -> Any:
    """Keep an expanded square above the rounding error of its terms, where a root is noise."""
    if isinstance(s, Taylor):
        value = _above_rounding(s.value, squares.value, offsets)
        return s.like({**s.parts, s.zero: value})
    floor = 4 * jnp.finfo(s.dtype).eps * jax.lax.stop_gradient(squares + offsets)
    return jnp.maximum(s, floor)


DISTANCES: dict[str, type[Any]] = {
    "isotropic": Isotropic,
    "diagonal": Diagonal,
    "full": Full,
}
