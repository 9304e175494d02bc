"""Causal weights: a moment of time counts once the moments before it are solved (Wang et al.)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from ..errors import UserError

PASSED = 0.99


@dataclass(frozen=True)
class Causality:
    """``w_i = exp(−ε Σ_{k<i} L_k)`` over ``chunks`` intervals of time with equally many points.

    ``tolerances`` are the values of ε, one after the other: the next one comes once all weights
    have passed 0.99. No chunks: no causal weights.
    """

    chunks: int = 0
    tolerances: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        if self.chunks < 0:
            raise UserError(
                f"The number of causal chunks cannot be negative, and is {self.chunks}."
            )
        if not self.tolerances or not all(t > 0 for t in self.tolerances):
            raise UserError(
                "The causal tolerances must be one or more positive numbers, such as [0.1, 1, 10], "
                f"not {list(self.tolerances)}."
            )

    def __bool__(self) -> bool:
        return self.chunks > 0

    def _member(self, count: int) -> np.ndarray:
        """The chunk of each of ``count`` points in the order of time; few points: one a chunk."""
        chunks = min(self.chunks, count)
        ends = np.linspace(0, count, chunks + 1).astype(int)
        return np.repeat(np.arange(chunks), np.diff(ends))

    def means(self, vector: Float[Array, " n"]) -> Float[Array, " chunks"]:
        """The mean square of each chunk of a vector that is in the order of time."""
        member = self._member(vector.shape[0])
        counts = np.bincount(member)
        if len(set(counts)) == 1:
            return jnp.mean(vector.reshape(len(counts), -1) ** 2, axis=1)
        sums = jax.ops.segment_sum(vector**2, member, len(counts), indices_are_sorted=True)
        return sums / jnp.asarray(counts, vector.dtype)

    def scaled(
        self, vector: Float[Array, " n"], weights: Float[Array, " chunks"]
    ) -> Float[Array, " n"]:
        """The vector whose squares carry the weights of their chunks."""
        return vector * jnp.sqrt(weights)[self._member(vector.shape[0])]

    def weights(
        self, means: Mapping[str, Float[Array, " chunks"]], level: Array
    ) -> Float[Array, " chunks"]:
        """The weights of the chunks; of several equations the smaller one holds."""
        some = next(iter(means.values()))
        tolerance = jnp.asarray(self.tolerances, some.dtype)[level]
        before = [jnp.exp(-tolerance * (jnp.cumsum(m) - m)) for m in means.values()]
        smallest = before[0]
        for other in before[1:]:
            smallest = jnp.minimum(smallest, other)
        return jax.lax.stop_gradient(smallest)

    def next_level(self, weights: Array, level: Array) -> Array:
        """One tolerance further where all weights have passed."""
        passed = jnp.min(weights) > PASSED
        return jnp.minimum(level + passed.astype(level.dtype), len(self.tolerances) - 1)
