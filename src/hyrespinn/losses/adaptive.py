"""Points where the residual is large: the residual-adaptive distribution."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int


@dataclass(frozen=True)
class Adaptivity:
    """Points are chosen from ``pool`` times as many, with probabilities ``|r|^power / mean + floor``."""

    pool: int
    power: float
    floor: float

    def choose(self, key: Array, size: Float[Array, " n"], count: int) -> Int[Array, " count"]:
        """``count`` places of ``size``, the residuals' norms, without replacement.

        >>> chosen = Adaptivity(8, 1.0, 0.0).choose(
        ...     jax.random.key(0), jnp.array([0.0, 3.0, 0.0, 1.0]), 2
        ... )
        >>> sorted(chosen.tolist())
        [1, 3]
        """
        density = size**self.power
        # Where the residual is not finite, the floor alone decides.
        density = jnp.where(jnp.isfinite(density), density, 0)
        tiny = jnp.finfo(density.dtype).tiny
        density = density / jnp.maximum(jnp.mean(density), tiny) + self.floor
        # Gumbel noise and the largest: sampling without replacement.
        score = jnp.log(density) + jax.random.gumbel(key, density.shape, density.dtype)
        return jax.lax.top_k(score, count)[1]
