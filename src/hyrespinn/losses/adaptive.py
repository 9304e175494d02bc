"""Points where the residual is large: the residual-adaptive distribution."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

ITERATIONS = 20
"""Of Newton's method for the probabilities of points; it needs five or so."""


@dataclass(frozen=True)
class Adaptivity:
    """Points are chosen from ``pool`` times as many, with densities ``|r|^power / mean + floor``.

    With ``even_loss`` residuals there have factors that make up for their density, so that their mean
    square is, on average, that over the whole domain: points where residuals are large find what lies
    between the others, and the loss does not count it twice.
    """

    pool: int
    power: float
    floor: float
    even_loss: bool = False

    def density(self, size: Float[Array, " n"]) -> Float[Array, " n"]:
        """How much each candidate attracts points, by the residuals' norms."""
        density = size**self.power
        # Where the residual is not finite, the floor alone decides.
        density = jnp.where(jnp.isfinite(density), density, 0)
        tiny = jnp.finfo(density.dtype).tiny
        return density / jnp.maximum(jnp.mean(density), tiny) + self.floor

    def choose(self, key: Array, density: Float[Array, " n"], count: int) -> Int[Array, " count"]:
        """``count`` places, with these densities, without replacement.

        >>> chosen = Adaptivity(8, 1.0, 0.0).choose(
        ...     jax.random.key(0), jnp.array([0.0, 3.0, 0.0, 1.0]), 2
        ... )
        >>> sorted(chosen.tolist())
        [1, 3]
        """
        # Gumbel noise and the largest: sampling without replacement.
        score = jnp.log(density) + jax.random.gumbel(key, density.shape, density.dtype)
        return jax.lax.top_k(score, count)[1]

    def factors(self, density: Float[Array, " n"], count: int) -> Float[Array, " n"]:
        """What residuals at the candidates are multiplied by, if they are chosen.

        The ``count`` largest of ``log d + Gumbel`` are those above a threshold, which each candidate is
        with a probability of ``1 − exp(−c d)``; ``c`` follows from their number. The factor is the root of
        ``count`` over all candidates, over that probability (Horvitz and Thompson 1952).

        >>> even = Adaptivity(8, 1.0, 1.0).factors(jnp.ones(8), 2)
        >>> bool(jnp.allclose(even, 1.0))
        True
        """
        share = count / density.size

        def improved(_: Array, rate: Array) -> Array:
            left = jnp.exp(-rate * density)
            slope = jnp.mean(density * left)
            return jnp.maximum(rate - (jnp.mean(1 - left) - share) / slope, 0.5 * rate)

        # From below, as the mean of a concave function: it never goes too far.
        rate = jax.lax.fori_loop(0, ITERATIONS, improved, share / jnp.mean(density))
        return jnp.sqrt(share / -jnp.expm1(-rate * density))
