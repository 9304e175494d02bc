"""A sum over points with its gradient, by pairs of blocks.

The two blocks of a pair do not depend on each other, so that each has a core of its own; all of the
points at once would share out single operations, most of which are too short for that. A block's
values, derivatives and adjoints stay in the cache between the forward and the backward pass.
``benchmarks/blocks.py`` compares sizes.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

LARGEST = 2048
"""Points in a block at most."""
SMALLEST = 256
"""Points in a block at least: with fewer, a second copy of the program costs more than it brings."""


def pair_count(points: int) -> int:
    """Into how many pairs of equal blocks so many points are cut; 0 where they are not.

    >>> pair_count(8192), pair_count(4096), pair_count(1500), pair_count(2003), pair_count(64)
    (2, 1, 1, 0, 0)
    """
    if points < 2 * SMALLEST:
        return 0
    fewest = -(-points // (2 * LARGEST))
    return next((n for n in range(fewest, 4 * fewest) if points % (2 * n) == 0), 0)


def blockwise_value_and_grad(
    value: Callable[[Array, Array], Array], points: Float[Array, "n d"]
) -> Callable[[Array], tuple[Array, Array]]:
    """The mean over equal blocks of ``value(theta, block)``, and its gradient."""
    count = pair_count(points.shape[0])
    gradient = jax.value_and_grad(value)
    if count == 0:
        return lambda theta: gradient(theta, points)
    pairs = points.reshape(count, 2, -1, points.shape[1])

    def both(theta: Array, pair: Array) -> tuple[Array, Array]:
        one, two = gradient(theta, pair[0]), gradient(theta, pair[1])
        return one[0] + two[0], one[1] + two[1]

    def mean(theta: Array) -> tuple[Array, Array]:
        def add(sums: tuple[Array, Array], pair: Array) -> tuple[tuple[Array, Array], None]:
            found = both(theta, pair)
            return (sums[0] + found[0], sums[1] + found[1]), None

        if count == 1:
            value, slope = both(theta, pairs[0])
        else:
            zero = jnp.zeros((), theta.dtype), jnp.zeros_like(theta)
            value, slope = jax.lax.scan(add, zero, pairs)[0]
        return value / (2 * count), slope / (2 * count)

    return mean
