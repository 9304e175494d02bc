"""Conjugate gradients for linear least squares with a matrix that is known by its products alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

Product = Callable[[Array], Array]


class Found(NamedTuple):
    """``solution`` leaves ``residual = right − A·solution`` after some ``iterations``."""

    solution: Float[Array, " n"]
    residual: Float[Array, " m"]
    iterations: Array


def least_squares(
    times: Product, transposed: Product, right: Float[Array, " m"], tolerance: float, most: int
) -> Found:
    """``min ‖A x − b‖`` from ``x = 0`` (CGLS, Hestenes and Stiefel 1952).

    It ends where the gradient ``Aᵀ(b − A x)`` has fallen to ``tolerance`` times what it was, or after
    ``most`` iterations. The iterates minimise the residual over growing spaces, and of all
    solutions the shortest is approached.

    >>> A = jnp.array([[2.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> found = least_squares(lambda x: A @ x, lambda y: A.T @ y, jnp.array([2.0, 1.0, 3.0]), 1e-6, 9)
    >>> found.solution.round(6).tolist(), int(found.iterations)
    ([1.0, 2.0], 2)
    """
    gradient = transposed(right)
    size = jnp.vdot(gradient, gradient)
    enough = tolerance**2 * size
    State = tuple[Array, Array, Array, Array, Array]

    def unfinished(state: State) -> Array:
        _, _, _, size, count = state
        return (count < most) & (size > enough)

    def step(state: State) -> State:
        x, residual, direction, size, count = state
        image = times(direction)
        length = size / jnp.vdot(image, image)
        residual = residual - length * image
        gradient = transposed(residual)
        new = jnp.vdot(gradient, gradient)
        return x + length * direction, residual, gradient + new / size * direction, new, count + 1

    begin = jnp.zeros_like(gradient), right, gradient, size, jnp.asarray(0)
    x, residual, _, _, count = jax.lax.while_loop(unfinished, step, begin)
    return Found(x, residual, count)
