"""The terms of a loss with their weights, each as rows that are differentiated point by point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from .blocks import summed_over_blocks
from .context import Context
from .drawing import SampleSet
from .objective import Objective
from .terms import Samples, Term


def pieces_of(
    objective: Objective, theta: Array, samples: SampleSet, context: Context
) -> list[Piece]:
    """The pieces of a loss on some points, in the order of its terms."""
    return [Piece(objective, term, theta, samples, context) for term in objective.terms]


def penalty_rows(objective: Objective, theta: Array) -> Array:
    """The root of the model's penalty, or nothing; its slope is taken as 0 where it is 0."""
    penalty = objective.penalty(theta)
    if penalty is None:
        return jnp.zeros(0, theta.dtype)
    value = jnp.asarray(penalty, theta.dtype)
    positive = value > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, value, 1)), 0)[None]


class Piece:
    """One term of the loss: how many rows it has, and how they are differentiated."""

    def __init__(
        self,
        objective: Objective,
        term: Term,
        theta: Array,
        samples: SampleSet,
        context: Context,
    ):
        self.theta, self.samples = theta, samples[term.name]
        self.points = self.samples.points.shape[0]

        def vectors(theta: Array, samples: Samples) -> dict[str, Array]:
            solution = objective.solution(theta, context)
            return term.residuals(solution, samples, context.parameters)

        self.vectors: Callable[[Array, Samples], dict[str, Array]] = vectors
        sizes = {n: v.size for n, v in jax.eval_shape(vectors, theta, self.samples).items()}
        self.size = sum(sizes.values())
        self.pointwise = all(size % self.points == 0 for size in sizes.values())
        self.one_each = all(size == self.points for size in sizes.values())
        self.scales = {n: jnp.sqrt(context.weights[n] / size) for n, size in sizes.items()}
        self.causal: Array | None = None
        if objective.causality and term is objective.terms[0]:
            found = vectors(theta, self.samples) if context.causal is None else {}
            chunks = objective.chunk_weights(found, context)
            ones = jnp.ones(self.points, theta.dtype)
            self.causal = objective.causality.scaled(ones, chunks)

    def weighted(self, theta: Array, samples: Samples) -> Array:
        vectors = self.vectors(theta, samples)
        scaled = [self.scales[n].astype(v.dtype) * v for n, v in vectors.items()]
        return jnp.concatenate(scaled)

    def jacobian(self, chosen: Array, factors: Array) -> tuple[Array, Array]:
        """Rows and their gradients of some points, each point by itself."""
        several = jax.tree.map(lambda a: a[chosen], self.samples)

        def one(samples: Any, factor: Array) -> tuple[Array, Array]:
            alone = jax.tree.map(lambda a: a[None], samples)
            rows, pull = jax.vjp(lambda t: self.weighted(t, alone), self.theta)
            (jacobian,) = jax.vmap(pull)(factor * jnp.eye(rows.size, dtype=rows.dtype))
            return factor * rows, jacobian

        rows, jacobian = jax.vmap(one)(several, factors)
        return rows.reshape(-1), jacobian.reshape(-1, self.theta.size)

    def pulled(self, vector: Array) -> Array:
        """The transposed Jacobian of all rows times a vector, in the order of ``weighted``."""
        if not self.one_each:
            (found,) = jax.vjp(lambda t: self.weighted(t, self.samples), self.theta)[1](vector)
            return found
        columns = vector.reshape(-1, self.points).T
        if self.causal is not None:
            columns = self.causal[:, None] * columns

        def product(theta: Array, block: Any) -> Array:
            samples, columns = block
            return jnp.vdot(self.weighted(theta, samples), columns.T.reshape(-1))

        total, _ = summed_over_blocks(jax.grad(product), (self.samples, columns))
        return total(self.theta)
