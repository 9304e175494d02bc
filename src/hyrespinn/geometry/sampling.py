"""Points in the unit cube, drawn inside compiled code."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from ..errors import unknown


def kronecker(
    key: Array, count: int, dimension: int, dtype: jnp.dtype
) -> Float[Array, "{count} {dimension}"]:
    """A low-discrepancy sequence with a random shift: ``frac(shift + i·α)``.

    ``α_k = g⁻ᵏ`` with ``g`` the root of ``g^(d+1) = g + 1``, the generalised golden ratio. Each
    point is uniform, and together they cover the cube far more evenly than independent points.
    """
    g = 2.0
    for _ in range(60):
        g = (1 + g) ** (1 / (dimension + 1))
    alpha = (1 / g) ** np.arange(1, dimension + 1)
    steps = np.outer(np.arange(count), alpha) % 1  # on the host, in full precision
    shift = jax.random.uniform(key, (dimension,), dtype)
    return (jnp.asarray(steps, dtype) + shift) % 1


def uniform(
    key: Array, count: int, dimension: int, dtype: jnp.dtype
) -> Float[Array, "{count} {dimension}"]:
    """Independent uniform points."""
    return jax.random.uniform(key, (count, dimension), dtype)


Sampler = Callable[[Array, int, int, jnp.dtype], Array]
SAMPLERS: dict[str, Sampler] = {"kronecker": kronecker, "uniform": uniform}


def sampler_named(name: str) -> Sampler:
    if name not in SAMPLERS:
        raise unknown("sampler", name, SAMPLERS)
    return SAMPLERS[name]
