"""The least-squares problem of a loss: its normal equations, or its triangle, chunk by chunk.

No more of the Jacobian is ever held than that of a chunk of points: fifty thousand points take as much
memory as two thousand. A chunk is kept as ``Jᵀ``, whose products with itself are twice as fast on a
processor as those of ``J``, and only the lower half of them is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from ..algebra import Columns, NormalEquations, Triangle, gram
from .context import Context
from .drawing import SampleSet
from .objective import Objective
from .pieces import Piece, penalty_rows, pieces_of

CHUNK = 2048
"""Rows of the Jacobian that are held at once."""


Sums = TypeVar("Sums")
Add = Callable[[Sums, Float[Array, " m"], Float[Array, "n m"]], Sums]
"""What becomes of sums with some rows more, and ``Jᵀ`` of those."""


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
    empty = NormalEquations(
        zero, jnp.zeros(size, theta.dtype), jnp.zeros((size, size), theta.dtype)
    )

    def add(
        sums: NormalEquations, rows: Float[Array, " m"], transposed: Float[Array, "n m"]
    ) -> NormalEquations:
        transposed = transposed if columns is None else columns.of(transposed)
        return NormalEquations(
            sums.value + rows @ rows,
            sums.gradient + transposed @ rows,
            sums.matrix + gram(transposed),
        )

    return _summed(objective, theta, samples, context, empty, add, chunk)


def triangle(
    objective: Objective,
    theta: Float[Array, " n"],
    samples: SampleSet,
    context: Context,
    columns: Columns | None = None,
    *,
    chunk: int = CHUNK,
) -> Triangle:
    """The triangle of the weighted rows and their Jacobian, or of ``JΩ``, by orthogonal
    transformations: twice the work of the normal equations, and none of their loss of digits."""
    size = theta.size if columns is None else columns.size

    def add(sums: Triangle, rows: Float[Array, " m"], transposed: Float[Array, "n m"]) -> Triangle:
        transposed = transposed if columns is None else columns.of(transposed)
        return sums.with_rows(rows, transposed.T)

    # A chunk of fewer rows than the triangle has is mostly the triangle again.
    length = max(chunk, 2 * size)
    return _summed(
        objective, theta, samples, context, Triangle.empty(size, theta.dtype), add, length
    )


def _summed(
    objective: Objective,
    theta: Float[Array, " n"],
    samples: SampleSet,
    context: Context,
    sums: Sums,
    add: Add[Sums],
    chunk: int,
) -> Sums:
    """``sums`` with all rows added, chunk by chunk."""
    for piece in pieces_of(objective, theta, samples, context):
        sums = _with(sums, piece, add, chunk)
    penalty = penalty_rows(objective, theta)
    if penalty.size:
        slope = jax.jacrev(lambda t: penalty_rows(objective, t))(theta)
        sums = add(sums, penalty, slope.T)
    return sums


def _with(sums: Sums, piece: Piece, add: Add[Sums], chunk: int) -> Sums:
    """The sums with the rows of one term."""
    if not piece.pointwise:
        rows = piece.weighted(piece.theta, piece.samples)
        jacobian = jax.jacrev(piece.weighted)(piece.theta, piece.samples)
        return add(sums, rows, jacobian.T)
    per_point = piece.size // piece.points
    turns = max(1, math.ceil(piece.points * per_point / chunk))
    length = math.ceil(piece.points / turns)
    factors = jnp.ones(piece.points, piece.theta.dtype) if piece.causal is None else piece.causal

    def body(turn: Array, sums: Sums) -> Sums:
        # The last chunk ends with the last point; what it repeats counts once.
        first = jnp.minimum(turn * length, piece.points - length)
        inside = first + jnp.arange(length)
        counted = jnp.where(inside >= turn * length, factors[inside], 0)
        rows, jacobian = piece.jacobian(inside, counted)
        return add(sums, rows, jacobian.T)

    return jax.lax.fori_loop(0, turns, body, sums)
