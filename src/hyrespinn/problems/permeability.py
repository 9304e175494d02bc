"""The tensor μ of −∇·(μ∇u) = f: constant or varying, a number or a matrix."""

from __future__ import annotations

import textwrap
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..derivatives import closure, coordinates, lift
from ..errors import UserError
from ..geometry import Domain
from .calls import call
from .fields import Point

Matrix = list[list[Any]]


class Permeability:
    """``at(p)`` is μ at points and ``divergence(p)`` the vector ``Σ_i ∂_i μ_ij``."""

    def __init__(self, mu: Any, domain: Domain):
        self.mu, self.names = mu, domain.space
        self.size = len(domain.space)
        points = domain.cover(64, np.random.default_rng(0))
        with jax.ensure_compile_time_eval():  # may be made while a residual is traced
            matrices = np.asarray(self._stacked(jnp.asarray(points)), dtype=float)
        matrices = matrices.reshape(-1, self.size, self.size)
        scale = np.abs(matrices).max()
        symmetric = np.abs(matrices - matrices.swapaxes(1, 2)).max() <= 1e-6 * scale
        least = np.linalg.eigvalsh(matrices)[:, 0]
        if not symmetric or not least.min() > 0:
            raise UserError(
                "problem.mu must be a positive number or a symmetric positive definite matrix at "
                f"every point; at one it is {matrices[least.argmin()].tolist()}."
            )

    def at(self, p: Point) -> Matrix:
        value = call(self.mu, (p,), "p") if callable(self.mu) else self.mu
        if not self._fits(value):
            text = textwrap.shorten(repr(value), 80, placeholder=" …")
            raise UserError(
                f"problem.mu must be a number or a {self.size}×{self.size} matrix, not {text}; or a "
                "function of the point that returns one of the two."
            )
        if not isinstance(value, (list, tuple)) and jnp.ndim(value) < 2:
            return [[value if i == j else 0.0 for j in range(self.size)] for i in range(self.size)]
        return [list(row) for row in value]

    def _fits(self, value: Any) -> bool:
        """Whether this is a number (an array of one a point, from a function), or rows of them."""
        if isinstance(value, (list, tuple)):
            rows = [row for row in value if isinstance(row, (list, tuple)) or jnp.ndim(row) >= 1]
            return len(rows) == len(value) == self.size and all(len(r) == self.size for r in rows)
        if not isinstance(value, (int, float, np.ndarray, np.generic, jax.Array)):
            return False
        return jnp.ndim(value) < 2 or jnp.shape(value)[:2] == (self.size, self.size)

    def _stacked(self, points: Array) -> Array:
        """All entries of μ side by side, ``(points, size²)``."""
        matrix = self.at(Point(points, self.names))
        columns = [jnp.broadcast_to(jnp.asarray(e), points.shape[:-1]) for r in matrix for e in r]
        return jnp.stack(columns, axis=-1)

    def divergence(self, p: Point) -> list[Any]:
        if not callable(self.mu):
            return [0.0] * self.size
        units = [tuple(int(i == k) for k in range(self.size)) for i in range(self.size)]
        points = jnp.stack([getattr(p, c) for c in self.names], axis=-1)
        series = lift(self._stacked, coordinates(points, closure(units, self.size)))
        return [
            sum(series[units[i]][..., i * self.size + j] for i in range(self.size))
            for j in range(self.size)
        ]


def flux(mu: Permeability, u: Any, p: Point) -> tuple[Any, ...]:
    """``−μ∇u``, one array for each coordinate."""
    slopes = [u.derivative(c) for c in mu.names]
    return tuple(
        -sum(entry * slope for entry, slope in zip(row, slopes, strict=True) if not _is_zero(entry))
        for row in mu.at(p)
    )


def minus_divergence(mu: Permeability, u: Any, p: Point) -> Any:
    """``−∇·(μ∇u) = −Σ μ_ij u_ij − Σ_j (Σ_i ∂_i μ_ij) u_j``."""
    second = [
        entry * u.derivative(mu.names[i] + mu.names[j])
        for i, row in enumerate(mu.at(p))
        for j, entry in enumerate(row)
        if not _is_zero(entry)
    ]
    first = [
        slope * u.derivative(c)
        for c, slope in zip(mu.names, mu.divergence(p), strict=True)
        if not _is_zero(slope)
    ]
    return -sum(second + first)


def _is_zero(entry: Any) -> bool:
    return isinstance(entry, (int, float)) and bool(entry == 0)
