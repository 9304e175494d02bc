"""Points in the unit cube, drawn inside compiled code."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jax import Array
from jaxtyping import Float

from ..registry import Registry, register


@dataclass(frozen=True)
class Sampler:
    """How points are drawn; a new one is a subclass of :class:`UnitSampler` with ``@register``."""


SAMPLERS = Registry("sampler", Sampler)
"""Samplers by name."""


@dataclass(frozen=True)
class UnitSampler(Sampler, ABC):
    """Draws points of the unit cube, which are then mapped to a part of a domain."""

    @abstractmethod
    def __call__(
        self, key: Array, count: int, dimension: int, dtype: jnp.dtype
    ) -> Float[Array, "{count} {dimension}"]:
        """``count`` points; called inside compiled code."""


@register("kronecker")
@dataclass(frozen=True)
class Kronecker(UnitSampler):
    """A low-discrepancy sequence with a random shift: ``frac(shift + i·α)``.

    ``α_k = g⁻ᵏ`` with ``g`` the root of ``g^(d+1) = g + 1``, the generalised golden ratio. Each
    point is uniform, and together they cover the cube far more evenly than independent points.
    """

    def __call__(
        self, key: Array, count: int, dimension: int, dtype: jnp.dtype
    ) -> Float[Array, "{count} {dimension}"]:
        g = 2.0
        for _ in range(60):
            g = (1 + g) ** (1 / (dimension + 1))
        alpha = (1 / g) ** np.arange(1, dimension + 1)
        return _shifted(key, np.outer(np.arange(count), alpha) % 1, dtype)


@register("uniform")
@dataclass(frozen=True)
class Uniform(UnitSampler):
    """Independent uniform points."""

    def __call__(
        self, key: Array, count: int, dimension: int, dtype: jnp.dtype
    ) -> Float[Array, "{count} {dimension}"]:
        return jax.random.uniform(key, (count, dimension), dtype)


@register("sobol")
@dataclass(frozen=True)
class Sobol(UnitSampler):
    """The first points of a scrambled Sobol sequence, with a random shift."""

    def __call__(
        self, key: Array, count: int, dimension: int, dtype: jnp.dtype
    ) -> Float[Array, "{count} {dimension}"]:
        return _shifted(key, sobol_points(count, dimension, np.random.default_rng(0)), dtype)


@register("latin")
@dataclass(frozen=True)
class Latin(UnitSampler):
    """A Latin hypercube: along each axis, every one of ``count`` slices holds one point."""

    def __call__(
        self, key: Array, count: int, dimension: int, dtype: jnp.dtype
    ) -> Float[Array, "{count} {dimension}"]:
        order, within = jax.random.split(key)
        slices = jax.vmap(lambda k: jax.random.permutation(k, count))(
            jax.random.split(order, dimension)
        )
        return (
            slices.T.astype(dtype) + jax.random.uniform(within, (count, dimension), dtype)
        ) / count


def _shifted(key: Array, points: np.ndarray, dtype: jnp.dtype) -> Array:
    """Points moved by one random vector, modulo one; they were made on the host in full precision."""
    return _moved(key, jnp.asarray(points, dtype))


@partial(jax.jit, inline=True)
def _moved(key: Array, points: Array) -> Array:
    return (points + jax.random.uniform(key, points.shape[1:], points.dtype)) % 1


def sobol_points(
    count: int, dimension: int, rng: np.random.Generator
) -> Float[np.ndarray, "{count} {dimension}"]:
    """The first ``count`` points of a scrambled Sobol sequence."""
    powers = int(np.ceil(np.log2(max(count, 2))))
    return scipy.stats.qmc.Sobol(dimension, rng=rng).random_base2(powers)[:count]


@register("poisson")
@dataclass(frozen=True)
class PoissonDisk(Sampler):
    """A fixed set of well-spread points: every draw is the same set in another order.

    Args:
        seed: Of the set.
    """

    seed: int = 0


kronecker, uniform, sobol, latin = Kronecker(), Uniform(), Sobol(), Latin()


def sampler_named(name: str) -> Sampler:
    return SAMPLERS[name]()
