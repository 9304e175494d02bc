"""Points in the unit cube, drawn inside compiled code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float
from scipy.stats import qmc

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
    return _shifted(key, np.outer(np.arange(count), alpha) % 1, dtype)


def uniform(
    key: Array, count: int, dimension: int, dtype: jnp.dtype
) -> Float[Array, "{count} {dimension}"]:
    """Independent uniform points."""
    return jax.random.uniform(key, (count, dimension), dtype)


def sobol(
    key: Array, count: int, dimension: int, dtype: jnp.dtype
) -> Float[Array, "{count} {dimension}"]:
    """The first points of a scrambled Sobol sequence, with a random shift."""
    return _shifted(key, sobol_points(count, dimension, np.random.default_rng(0)), dtype)


def latin(
    key: Array, count: int, dimension: int, dtype: jnp.dtype
) -> Float[Array, "{count} {dimension}"]:
    """A Latin hypercube: along each axis, every one of ``count`` slices holds one point."""
    order, within = jax.random.split(key)
    slices = jax.vmap(lambda k: jax.random.permutation(k, count))(
        jax.random.split(order, dimension)
    )
    return (slices.T.astype(dtype) + uniform(within, count, dimension, dtype)) / count


def _shifted(key: Array, points: np.ndarray, dtype: jnp.dtype) -> Array:
    """Points moved by one random vector, modulo one; they were made on the host in full precision."""
    shift = jax.random.uniform(key, points.shape[1:], dtype)
    return (jnp.asarray(points, dtype) + shift) % 1


def sobol_points(
    count: int, dimension: int, rng: np.random.Generator
) -> Float[np.ndarray, "{count} {dimension}"]:
    """The first ``count`` points of a scrambled Sobol sequence."""
    powers = int(np.ceil(np.log2(max(count, 2))))
    return qmc.Sobol(dimension, rng=rng).random_base2(powers)[:count]


@dataclass(frozen=True)
class PoissonDisk:
    """A fixed set of well-spread points: every draw is the same set in another order."""

    seed: int = 0


UnitSampler = Callable[[Array, int, int, jnp.dtype], Array]
Sampler = UnitSampler | PoissonDisk
SAMPLERS: dict[str, Sampler] = {
    "kronecker": kronecker,
    "uniform": uniform,
    "sobol": sobol,
    "latin": latin,
    "poisson": PoissonDisk(),
}


def sampler_named(name: str) -> Sampler:
    if name not in SAMPLERS:
        raise unknown("sampler", name, SAMPLERS)
    return SAMPLERS[name]
