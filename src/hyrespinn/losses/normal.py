"""The normal equations of a loss, ``JᵀJ`` and ``Jᵀr``, chunk by chunk.

No more of the Jacobian is ever held than that of a chunk of points: fifty thousand points take as much
memory as two thousand. A chunk is kept as ``Jᵀ``, whose products with itself are twice as fast on a
processor as those of ``J``, and only the lower half of them is made.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from ..algebra import Columns, NormalEquations, gram
from .context import Context
from .drawing import SampleSet
from .objective import Objective
from .pieces import Piece, penalty_rows, pieces_of

CHUNK = 2048
"""Rows of the Jacobian that are held at once."""


def normal_equations(
    objective: Objective,
    theta: Float[Array, " n"],
    samples: SampleSet,
    context: Context,
    columns: Columns | None = None,
    *,
    chunk: int = CHUNK,
) -> NormalEquations:
    """The lower half of ``JᵀJ``, and ``Jᵀr``, of the weighted rows; with ``columns`` those of ``JΩ``."""
    size = theta.size if columns is None else columns.size
    zero = jnp.zeros((), theta.dtype)
    sums = NormalEquations(zero, jnp.zeros(size, theta.dtype), jnp.zeros((size, size), theta.dtype))
    for piece in pieces_of(objective, theta, samples, context):
        sums = _with(sums, piece, columns, chunk)
    penalty = penalty_rows(objective, theta)
    if penalty.size:
        slope = jax.jacrev(lambda t: penalty_rows(objective, t))(theta)
        sums = _added(sums, penalty, slope.T, columns)
    return sums


def _with(
    sums: NormalEquations, piece: Piece, columns: Columns | None, chunk: int
) -> NormalEquations:
    """The sums with the rows of one term."""
    if not piece.pointwise:
        rows = piece.weighted(piece.theta, piece.samples)
        jacobian = jax.jacrev(piece.weighted)(piece.theta, piece.samples)
        return _added(sums, rows, jacobian.T, columns)
    per_point = piece.size // piece.points
    turns = max(1, math.ceil(piece.points * per_point / chunk))
    length = math.ceil(piece.points / turns)
    factors = jnp.ones(piece.points, piece.theta.dtype) if piece.causal is None else piece.causal

    def body(turn: Array, sums: NormalEquations) -> NormalEquations:
        # The last chunk ends with the last point; what it repeats counts once.
        first = jnp.minimum(turn * length, piece.points - length)
        inside = first + jnp.arange(length)
        counted = jnp.where(inside >= turn * length, factors[inside], 0)
        rows, jacobian = piece.jacobian(inside, counted)
        return _added(sums, rows, jacobian.T, columns)

    return jax.lax.fori_loop(0, turns, body, sums)


def _added(
    sums: NormalEquations,
    rows: Float[Array, " m"],
    transposed: Float[Array, "n m"],
    columns: Columns | None,
) -> NormalEquations:
    if columns is not None:
        transposed = columns.of(transposed)
    return NormalEquations(
        sums.value + rows @ rows,
        sums.gradient + transposed @ rows,
        sums.matrix + gram(transposed),
    )
