"""A sum over points with its gradient, by pairs of blocks.

The two blocks of a pair do not depend on each other, so that each has a core of its own; all of the
points at once would share out single operations, most of which are too short for that. A block's
values, derivatives and adjoints stay in the cache between the forward and the backward pass.
``benchmarks/blocks.py`` compares sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import Array

Block = TypeVar("Block")
Sums = TypeVar("Sums")

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


def summed_over_blocks(
    function: Callable[[Array, Block], Sums], points: Block
) -> tuple[Callable[[Array], Sums], int]:
    """The sum over equal blocks of ``function(theta, block)``, and the number of blocks.

    ``points`` is a tree of arrays with an entry for each point.
    """
    size = jax.tree.leaves(points)[0].shape[0]
    count = pair_count(size)
    if count == 0:
        return lambda theta: function(theta, points), 1
    pairs = jax.tree.map(lambda a: a.reshape(count, 2, -1, *a.shape[1:]), points)

    def both(theta: Array, pair: Block) -> Sums:
        one, two = (function(theta, jax.tree.map(lambda a: a[i], pair)) for i in (0, 1))
        return jax.tree.map(jnp.add, one, two)

    def total(theta: Array) -> Sums:
        first = jax.tree.map(lambda a: a[0], pairs)
        if count == 1:
            return both(theta, first)

        def add(sums: Sums, pair: Block) -> tuple[Sums, None]:
            return jax.tree.map(jnp.add, sums, both(theta, pair)), None

        shapes = jax.eval_shape(both, theta, first)
        zero = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), shapes)
        return jax.lax.scan(add, zero, pairs)[0]

    return total, 2 * count


def blockwise_value_and_grad(
    value: Callable[[Array, Block], Array], points: Block
) -> Callable[[Array], tuple[Array, Array]]:
    """The mean over equal blocks of ``value(theta, block)``, and its gradient."""
    total, count = summed_over_blocks(jax.value_and_grad(value), points)

    def mean(theta: Array) -> tuple[Array, Array]:
        found, slope = total(theta)
        return (found, slope) if count == 1 else (found / count, slope / count)

    return mean
