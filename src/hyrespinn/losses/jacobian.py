"""The residuals as one weighted vector whose square is the loss, and its Jacobian.

A row is ``√(weight/n)·r``, with its causal weight where there is one; a model's own penalty is
one more row, its root. The Jacobian is filled block by block, each point by reverse mode, so that
nothing much larger than itself is ever held. A sketch of it has fewer rows: each is a sum, with
random signs, of the rows of several points (CountSketch, Clarkson and Woodruff 2013).
"""

from __future__ import annotations

import math
from itertools import accumulate
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from .context import Context
from .drawing import SampleSet
from .objective import Objective
from .pieces import Piece, penalty_rows, pieces_of

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
    return jnp.concatenate([*parts, penalty_rows(objective, theta)])


def pulled(
    objective: Objective, theta: Array, samples: SampleSet, context: Context, vector: Array
) -> Float[Array, " n"]:
    """The transposed Jacobian of :func:`weighted_rows` times a vector."""
    _, pull = jax.vjp(lambda t: penalty_rows(objective, t), theta)
    pieces = pieces_of(objective, theta, samples, context)
    ends = list(accumulate(piece.size for piece in pieces))
    *parts, rest = jnp.split(vector, ends)
    (found,) = pull(rest)
    return sum((p.pulled(part) for p, part in zip(pieces, parts, strict=True)), start=found)


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
    pieces = pieces_of(objective, theta, samples, context)
    total = sum(piece.size for piece in pieces)
    shares = [_share(piece, sketch, total) for piece in pieces]
    penalty = penalty_rows(objective, theta)
    size = sum(shares) + penalty.size
    rows, jacobian = jnp.zeros(size, theta.dtype), jnp.zeros((size, theta.size), theta.dtype)
    state = Linearised(rows, jacobian)
    begin = 0
    for i, (piece, share) in enumerate(zip(pieces, shares, strict=True)):
        drawn = None if key is None or share == piece.size else jax.random.fold_in(key, i)
        state = _filled(state, piece, begin, share, block, drawn)
        begin += share
    if penalty.size:
        slope = jax.jacrev(lambda t: penalty_rows(objective, t))(theta)
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


def _share(piece: Piece, sketch: int | None, total: int) -> int:
    """The rows of the sketch that go to this term: whole points, in proportion, at least one."""
    if sketch is None or sketch >= total or not piece.pointwise:
        return piece.size
    per_point = piece.size // piece.points
    wanted = max(1, math.floor(sketch * piece.size / total / per_point))
    return per_point * min(wanted, piece.points)


def _filled(
    state: Linearised, piece: Piece, begin: int, share: int, block: int, key: Array | None
) -> Linearised:
    """The state with the rows of this term written from ``begin`` on."""
    if not piece.pointwise:
        rows = piece.weighted(piece.theta, piece.samples)
        jacobian = jax.jacrev(piece.weighted)(piece.theta, piece.samples)
        return _added(state, begin, rows, jacobian)
    per_point = piece.size // piece.points
    buckets = share // per_point
    order, signs = _order(piece, buckets, key)
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
        rows, jacobian = piece.jacobian(chosen, factors)
        return _added(state, begin + first * per_point, rows, jacobian)

    return jax.lax.fori_loop(0, groups * blocks, body, state)


def _order(piece: Piece, buckets: int, key: Array | None) -> tuple[Array, Array]:
    """The points in the order in which buckets take them, one each in turn, and their signs."""
    factors = jnp.ones(piece.points, piece.theta.dtype) if piece.causal is None else piece.causal
    order = jnp.arange(piece.points)
    if key is not None:
        first, second = jax.random.split(key)
        order = jax.random.permutation(first, piece.points)
        factors = factors[order] * jax.random.rademacher(second, (piece.points,), factors.dtype)
    missing = -piece.points % buckets
    return jnp.pad(order, (0, missing)), jnp.pad(factors, (0, missing))
