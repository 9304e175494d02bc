"""The residuals as one weighted vector whose square is the loss, and its Jacobian.

A row is ``√(weight/n)·r``, with its causal weight where there is one; a model's own penalty is
one more row, its root. The Jacobian is filled block by block, each point by reverse mode, so that
nothing much larger than itself is ever held. A sketch of it has fewer rows: each is a sum, with
random signs, of the rows of several points (CountSketch, Clarkson and Woodruff 2013).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from .context import Context
from .objective import Objective, SampleSet
from .terms import Samples, Term

BLOCK = 128
"""Points differentiated at once: their gradients stay in the processor's cache."""


class Linearised(NamedTuple):
    """``rows`` and the Jacobian of them, or sketches of both."""

    rows: Float[Array, " m"]
    jacobian: Float[Array, "m n"]


def weighted_rows(
    objective: Objective, theta: Array, samples: SampleSet, context: Context
) -> Float[Array, " m"]:
    """One vector whose squared norm is the loss."""
    vectors = objective.residuals(theta, samples, context)
    counted = objective.counted(vectors, context)
    parts = [
        jnp.sqrt(context.weights[name] / vector.size).astype(vector.dtype) * vector
        for name, vector in counted.items()
    ]
    return jnp.concatenate([*parts, _penalty_rows(objective, theta)])


def _penalty_rows(objective: Objective, theta: Array) -> Array:
    """The root of the model's penalty, or nothing; its slope is taken as 0 where it is 0."""
    penalty = objective.assemble(theta).penalty()
    if penalty is None:
        return jnp.zeros(0, theta.dtype)
    value = jnp.asarray(penalty, theta.dtype)
    positive = value > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, value, 1)), 0)[None]


def linearised(
    objective: Objective,
    theta: Float[Array, " n"],
    samples: SampleSet,
    context: Context,
    *,
    block: int = BLOCK,
    sketch: int | None = None,
    key: Array | None = None,
) -> Linearised:
    """The weighted rows and their Jacobian; with ``sketch``, of about so many rows.

    Rows that come from one point lie together, otherwise they are in the order of the terms. A
    vector with as many rows as points, or a multiple, is taken to have each row depend on its own
    point; any other, such as a mean, is differentiated as a whole.
    """
    pieces = [_Piece(objective, term, theta, samples, context) for term in objective.terms]
    total = sum(piece.size for piece in pieces)
    shares = [piece.share(sketch, total) for piece in pieces]
    penalty = _penalty_rows(objective, theta)
    size = sum(shares) + penalty.size
    rows, jacobian = jnp.zeros(size, theta.dtype), jnp.zeros((size, theta.size), theta.dtype)
    state = Linearised(rows, jacobian)
    begin = 0
    for i, (piece, share) in enumerate(zip(pieces, shares, strict=True)):
        drawn = None if key is None or share == piece.size else jax.random.fold_in(key, i)
        state = piece.fill(state, begin, share, block, drawn)
        begin += share
    if penalty.size:
        slope = jax.jacrev(lambda t: _penalty_rows(objective, t))(theta)
        state = _added(state, begin, penalty, slope)
    return state


def _added(state: Linearised, begin: Array | int, rows: Array, jacobian: Array) -> Linearised:
    """The state with some rows added to those that begin at ``begin``."""
    zero = jnp.zeros((), jnp.asarray(begin).dtype)
    old_rows = jax.lax.dynamic_slice(state.rows, (begin,), rows.shape)
    old = jax.lax.dynamic_slice(state.jacobian, (begin, zero), jacobian.shape)
    return Linearised(
        jax.lax.dynamic_update_slice(state.rows, old_rows + rows, (begin,)),
        jax.lax.dynamic_update_slice(state.jacobian, old + jacobian, (begin, zero)),
    )


class _Piece:
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
            return term.residuals(objective.solution(theta, context), samples)

        self.vectors: Callable[[Array, Samples], dict[str, Array]] = vectors
        sizes = {n: v.size for n, v in jax.eval_shape(vectors, theta, self.samples).items()}
        self.size = sum(sizes.values())
        self.pointwise = all(size % self.points == 0 for size in sizes.values())
        self.scales = {n: jnp.sqrt(context.weights[n] / size) for n, size in sizes.items()}
        self.causal: Array | None = None
        if objective.causality and term is objective.terms[0]:
            found = vectors(theta, self.samples) if context.causal is None else {}
            chunks = objective.chunk_weights(found, context)
            ones = jnp.ones(self.points, theta.dtype)
            self.causal = objective.causality.scaled(ones, chunks)

    def share(self, sketch: int | None, total: int) -> int:
        """The rows of the sketch that go to this term: whole points, in proportion, at least one."""
        if sketch is None or sketch >= total or not self.pointwise:
            return self.size
        per_point = self.size // self.points
        wanted = max(1, math.floor(sketch * self.size / total / per_point))
        return per_point * min(wanted, self.points)

    def _weighted(self, theta: Array, samples: Samples) -> Array:
        vectors = self.vectors(theta, samples)
        scaled = [self.scales[n].astype(v.dtype) * v for n, v in vectors.items()]
        return jnp.concatenate(scaled)

    def fill(
        self, state: Linearised, begin: int, share: int, block: int, key: Array | None
    ) -> Linearised:
        """The state with the rows of this term written from ``begin`` on."""
        if not self.pointwise:
            rows = self._weighted(self.theta, self.samples)
            jacobian = jax.jacrev(self._weighted)(self.theta, self.samples)
            return _added(state, begin, rows, jacobian)
        per_point = self.size // self.points
        buckets = share // per_point
        order, signs = self._order(buckets, key)
        blocks = math.ceil(buckets / block)
        length = math.ceil(buckets / blocks)
        groups = order.shape[0] // buckets

        def body(turn: Array, state: Linearised) -> Linearised:
            group, part = turn // blocks, turn % blocks
            # The last block ends with the last bucket; what it repeats counts once.
            first = jnp.minimum(part * length, buckets - length)
            inside = first + jnp.arange(length)
            place = group * buckets + first
            chosen = jax.lax.dynamic_slice(order, (place,), (length,))
            factors = jax.lax.dynamic_slice(signs, (place,), (length,))
            factors = jnp.where(inside >= part * length, factors, 0)
            rows, jacobian = self._block(chosen, factors)
            return _added(state, begin + first * per_point, rows, jacobian)

        return jax.lax.fori_loop(0, groups * blocks, body, state)

    def _order(self, buckets: int, key: Array | None) -> tuple[Array, Array]:
        """The points in the order in which buckets take them, one each in turn, and their signs."""
        factors = jnp.ones(self.points, self.theta.dtype) if self.causal is None else self.causal
        order = jnp.arange(self.points)
        if key is not None:
            first, second = jax.random.split(key)
            order = jax.random.permutation(first, self.points)
            factors = factors[order] * jax.random.rademacher(second, (self.points,), factors.dtype)
        missing = -self.points % buckets
        return jnp.pad(order, (0, missing)), jnp.pad(factors, (0, missing))

    def _block(self, chosen: Array, factors: Array) -> tuple[Array, Array]:
        """Rows and their gradients of some points, each point by itself."""
        several = jax.tree.map(lambda a: a[chosen], self.samples)

        def one(samples: Any, factor: Array) -> tuple[Array, Array]:
            alone = jax.tree.map(lambda a: a[None], samples)
            rows, pull = jax.vjp(lambda t: self._weighted(t, alone), self.theta)
            (jacobian,) = jax.vmap(pull)(factor * jnp.eye(rows.size, dtype=rows.dtype))
            return factor * rows, jacobian

        rows, jacobian = jax.vmap(one)(several, factors)
        return rows.reshape(-1), jacobian.reshape(-1, self.theta.size)
