"""How residual vectors count: by their weights, and by the causality of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import Array

from .balance import Balance
from .causal import Causality
from .context import Context, Window
from .terms import Term

Vectors = dict[str, Array]


@dataclass(frozen=True)
class Weighting:
    """The weights of all vectors at first, and how they follow the training."""

    terms: Sequence[Term]
    balance: Balance
    causality: Causality
    dtype: Any

    @property
    def early(self) -> tuple[str, ...]:
        """The vectors that have causal weights: those of the equation."""
        return self.terms[0].names

    def first(self, window: Window | None, time: tuple[float, float]) -> dict[str, Array]:
        """The weights at the beginning of a training.

        A window takes its own length as the unit of time, as its network does: in a shorter one the
        same residual, or the same speed at its beginning, does less to the solution until it ends.
        Weights that are balanced find their own proportions.
        """
        unit: Any = 1.0
        if window is not None and not self.balance:
            unit = window.length / (time[1] - time[0])
        return {
            name: jnp.asarray(unit ** (2 * term.time_order) * term.weight, self.dtype)
            for term in self.terms
            for name in term.names
        }

    def chunk_weights(self, vectors: Vectors, context: Context) -> Array:
        """The causal weights of the chunks of time."""
        if context.causal is not None:
            return context.causal
        means = {name: self.causality.means(vectors[name]) for name in self.early}
        return self.causality.weights(means, context.level)

    def counted(self, vectors: Vectors, context: Context) -> Vectors:
        """The vectors as the loss counts them: with their causal weights."""
        if not self.causality:
            return vectors
        chunks = self.chunk_weights(vectors, context)
        early = {name: self.causality.scaled(vectors[name], chunks) for name in self.early}
        return {**vectors, **early}

    def total(self, vectors: Vectors, context: Context) -> Array:
        """The weighted sum of mean squares."""
        total = jnp.zeros((), self.dtype)
        for name, vector in vectors.items():
            total = total + context.weights[name] * jnp.mean(vector**2)
        return total

    def rebalanced(
        self, vectors: Callable[[Array], Vectors], theta: Array, context: Context, key: Array
    ) -> Context:
        """The context with weights and causal tolerance brought up to date at ``theta``."""
        level = context.level
        if self.causality:
            level = self.causality.next_level(self.chunk_weights(vectors(theta), context), level)
        if not self.balance:
            return context._replace(level=level)
        weights = self.balance.update(
            context.weights, lambda theta: self.counted(vectors(theta), context), theta, key
        )
        return context._replace(weights=weights, level=level)

    def columns(self, vectors: Vectors, context: Context) -> dict[str, Array]:
        """The weights that change, and the smallest causal one."""
        columns: dict[str, Array] = {}
        if self.balance:
            columns |= {f"weight_{name}": weight for name, weight in context.weights.items()}
        if self.causality:
            columns["causal"] = jnp.min(self.chunk_weights(vectors, context))
        return columns
