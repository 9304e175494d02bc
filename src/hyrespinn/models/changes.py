"""How far the parameters of a network have gone in training."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from .parameters import flatten


def median_change(now: object, start: object) -> Float[Array, ""]:
    """The median over all trained parameters of ``|a − b|`` in units of the larger of ``|a|`` and ``|b|``.

    >>> median_change(jnp.array([1.0, 2.0, 0.0]), jnp.array([1.0, 1.0, 0.0])).item()
    0.0
    """
    after, before = flatten(now)[0], flatten(start)[0]
    if not after.size:
        return jnp.zeros(())
    size = jnp.maximum(jnp.abs(after), jnp.abs(before))
    return jnp.median(jnp.abs(after - before) / jnp.where(size > 0, size, 1))


def median_shift(now: Float[Array, "n d"], start: Float[Array, "n d"]) -> Float[Array, ""]:
    """The median way that places have gone, in units of the distance to the next place at the start.

    >>> places = jnp.array([[0.0], [1.0], [3.0]])
    >>> median_shift(places + 0.5, places).item()
    0.5
    """
    ways = jnp.linalg.norm(now - start, axis=1)
    if len(start) == 1:
        return ways[0]
    between = jnp.linalg.norm(start[:, None] - start[None], axis=2)
    spacing = jnp.min(jnp.where(jnp.eye(len(start), dtype=bool), jnp.inf, between), axis=1)
    return jnp.median(ways / jnp.where(spacing > 0, spacing, 1))
