"""A sum over points with its gradient, block by block.

A block's values, derivatives and adjoints stay in the processor's cache between the forward and the
backward pass; all points at once go through main memory at every layer. With much smaller blocks
the second core has nothing to do. ``benchmarks/blocks.py`` compares sizes.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

LARGEST = 1024
"""Points in a block at most."""


def block_count(points: int) -> int:
    """Into how many equal blocks so many points are cut; 1 where no number near fits.

    >>> block_count(4096), block_count(1500), block_count(1000), block_count(2003)
    (4, 2, 1, 1)
    """
    fewest = -(-points // LARGEST)
    return next((n for n in range(fewest, 4 * fewest) if points % n == 0), 1)


def blockwise_value_and_grad(
    value: Callable[[Array, Array], Array], points: Float[Array, "n d"]
) -> Callable[[Array], tuple[Array, Array]]:
    """The mean over equal blocks of ``value(theta, block)``, and its gradient."""
    count = block_count(points.shape[0])
    gradient = jax.value_and_grad(value)
    if count == 1:
        return lambda theta: gradient(theta, points)
    blocks = points.reshape(count, -1, points.shape[1])

    def mean(theta: Array) -> tuple[Array, Array]:
        def add(sums: tuple[Array, Array], block: Array) -> tuple[tuple[Array, Array], None]:
            found = gradient(theta, block)
            return (sums[0] + found[0], sums[1] + found[1]), None

        zero = jnp.zeros((), theta.dtype), jnp.zeros_like(theta)
        value, slope = jax.lax.scan(add, zero, blocks)[0]
        return value / count, slope / count

    return mean
