"""A few directions in which damped least-squares problems are solved, for every damping and radius.

The directions are ``(JᵀJ + λI)⁻ᵏ Jᵀr``, with a few poles λ around the last damping, and the last step (a
rational Krylov space, Ruhe 1984): some Cholesky factorisations in place of a singular value decomposition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import cho_solve
from jaxtyping import Float

from ..algebra import NormalEquations, Triangle

POLES = (1.0, 0.1, 5.0)
"""In units of the last damping: most steps want less of it than the one before."""
POWERS = 3
"""Directions from each pole."""
SMALLEST_DAMPING = 1e-14
"""Relative to the trace of ``JᵀJ``, whose rounding errors are as large below it."""
SMALLEST_SHARE = 1e-28
"""Relative to the largest singular value squared, where directions have all their digits."""
BISECTIONS = 60


@dataclass(frozen=True)
class Space:
    """Orthonormal directions in which ``JᵀJ`` is diagonal: a few of them, or all.

    ``curvature`` has its entries and ``slope`` those of ``Jᵀr``; ``solve`` multiplies by the inverse of
    ``JᵀJ + λI`` for the last damping.
    """

    directions: Float[Array, "n k"]
    curvature: Float[Array, " k"]
    slope: Float[Array, " k"]
    floor: Array  # the smallest damping
    solve: Callable[[Float[Array, " n"]], Float[Array, " n"]]

    def damping(self, radius: Array) -> Array:
        """``λ`` whose step is as long as the radius; the smallest one where no step is."""

        def halved(_: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = ends
            middle = 0.5 * (low + high)
            longer = self.length(jnp.exp(middle)) > radius
            return jnp.where(longer, middle, low), jnp.where(longer, high, middle)

        highest = jnp.linalg.norm(self.slope) / radius  # with it a step is never longer
        low, high = jnp.log(self.floor), jnp.log(jnp.maximum(highest, 2 * self.floor))
        _, found = jax.lax.fori_loop(0, BISECTIONS, halved, (low, high))
        return jnp.exp(found)

    def length(self, damping: Array) -> Array:
        return jnp.linalg.norm(self.slope / (self.curvature + damping))

    def step(self, damping: Array) -> Float[Array, " n"]:
        return -self.directions @ (self.slope / (self.curvature + damping))

    def predicted(self, damping: Array) -> Array:
        """``‖r‖² − ‖r + Jδ‖²``, a sum of positive terms."""
        damped = self.curvature + damping
        return jnp.sum(self.slope**2 * (self.curvature + 2 * damping) / damped**2)


def space_of(normal: NormalEquations, damping: Array, last: Float[Array, " n"]) -> Space:
    """The directions of a few poles around ``damping``, and the ``last`` step."""
    floor = SMALLEST_DAMPING * jnp.trace(normal.matrix)
    floor = jnp.maximum(floor, jnp.finfo(floor.dtype).tiny)
    n = normal.gradient.size
    factors = [_factor(normal.matrix, jnp.maximum(pole * damping, floor)) for pole in POLES]
    vectors = [last / _length(last)]
    for factor in factors:
        vector = normal.gradient
        for _ in range(POWERS):
            vector = cho_solve((factor, True), vector)
            vector = vector / _length(vector)
            vectors.append(vector)
    several = jnp.stack(vectors[-n:], axis=1)
    # A factor that is not positive definite, to rounding, leaves the gradient in place of its own.
    instead = normal.gradient / _length(normal.gradient)
    several = jnp.where(jnp.all(jnp.isfinite(several), axis=0), several, instead[:, None])
    basis, _ = jnp.linalg.qr(several)
    small = basis.T @ normal.times(basis)
    curvature, turned = jnp.linalg.eigh(0.5 * (small + small.T))
    slope = turned.T @ (basis.T @ normal.gradient)
    return Space(
        basis @ turned,
        jnp.maximum(curvature, 0),
        slope,
        floor,
        lambda v: cho_solve((factors[0], True), v),
    )


def whole_space(triangle: Triangle, damping: Array) -> Space:
    """All directions, by a singular value decomposition: those that the rows hardly notice too."""
    left, values, right = jnp.linalg.svd(triangle.matrix)
    curvature, directions = values**2, right.T
    floor = jnp.maximum(SMALLEST_SHARE * curvature[0], jnp.finfo(values.dtype).tiny)
    at = jnp.maximum(damping, floor)
    return Space(
        directions, curvature, values * (triangle.rows @ left), floor,
        lambda v: directions @ ((right @ v) / (curvature + at)),
    )  # fmt: skip


def _factor(matrix: Float[Array, "n n"], shift: Array) -> Float[Array, "n n"]:
    places = jnp.arange(matrix.shape[0])
    return jnp.linalg.cholesky(matrix.at[places, places].add(shift), symmetrize_input=False)


def _length(vector: Array) -> Array:
    size = jnp.linalg.norm(vector)
    return jnp.where(size > 0, size, 1)
