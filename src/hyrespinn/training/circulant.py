"""A preconditioner for kernels on a lattice, by the symbol of the linearised equation.

Where all of space is periodic, moving every kernel by one place moves what they make by one place.
An equation with coefficients that do not depend on space keeps that: on waves over the lattice its
Jacobian is a small matrix for each wave vector, which couples time levels and fields alone. The
linearised equation has coefficients that do depend on space, ``∂r/∂u``, ``∂r/∂u_x`` and so on; with
their means in place of them, the triangular factors of those small matrices make all columns of the
Jacobian nearly orthonormal (T. Chan's optimal circulant preconditioner, in blocks).
"""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import solve_triangular

from ..errors import UserError
from ..losses.context import Context
from ..losses.jacobian import weighted_rows
from ..losses.objective import Objective, SampleSet
from ..models.collocation import KernelExpansionNetwork
from ..models.kernels.lattice import LatticeKernels
from ..models.linear_part import lattice_places
from ..models.model import Model
from ..optim.gauss_newton_cg import linear_maps
from ..optim.optimiser import Preconditioner

DAMPING = 1e-11
"""Of the small matrices, relative to the lengths of their columns."""
HELD = 0.1
"""How far other parameters may move in one step, in units in which the kernels' are one."""


def check_lattice(objective: Objective, theta: Array) -> None:
    """Say what is missing for kernels and points on lattices that fit each other."""
    model = eqx.filter_eval_shape(objective.assemble, theta)
    kernels = _lattice_of(model)
    points = objective.lattice
    if kernels is None or points is None:
        raise UserError(
            "GaussNewtonCG needs kernels and points on lattices: a KernelExpansion on a "
            "Lattice, and a lattice of points."
        )
    if not all(points.periodic[1:]) or not objective.problem.domain.has_time:
        raise UserError(
            "GaussNewtonCG is for equations with time that are periodic along all "
            "coordinates of space, with the periodicity built in."
        )
    others = [term.name for term in objective.terms[1:] if not term.is_start]
    if others:
        raise UserError(
            "GaussNewtonCG knows no conditions but those at the initial time; there is "
            f"also {', '.join(others)}."
        )
    if any(n % k for n, k in zip(points.shape[1:], kernels.shape[1:], strict=True)):
        raise UserError(
            "Along space the number of points must be a multiple of that of kernels; they are "
            f"{list(points.shape)} and {list(kernels.shape)}."
        )
    equations, conditions = len(objective.terms[0].names), len(objective.terms) - 1
    finer = math.prod(n // k for n, k in zip(points.shape[1:], kernels.shape[1:], strict=True))
    rows = finer * (points.shape[0] * equations + conditions)
    columns = kernels.shape[0] * kernels.coefficients.shape[1]
    if columns > rows:
        raise UserError(
            f"There are {columns} coefficients at each place of the lattice and only {rows} equations "
            "to find them with. Take more points along time or fewer kernels, and an initial condition "
            "for every field; or the method 'network', which has no lattices."
        )


def _lattice_of(model: Model) -> LatticeKernels | None:
    return model.lattice if isinstance(model, KernelExpansionNetwork) else None


def circulant_preconditioner(
    objective: Objective, theta: Array, samples: SampleSet, context: Context
) -> Preconditioner:
    """``P`` for the weighted rows at ``theta``; see :func:`check_lattice` for what it needs."""
    kernels = _lattice_of(objective.assemble(theta))
    assert kernels is not None  # as check_lattice has seen
    levels, *space = kernels.shape
    places = lattice_places(objective.assemble, theta)
    outputs = places.shape[1]
    others = np.setdiff1d(np.arange(theta.size), places)
    factors = _inverse_factors(
        _symbol(objective, theta, samples, context, places.reshape(levels, -1, outputs)[:, 0]),
        tuple(space),
    )
    scale = HELD / _longest_column(objective, theta, samples, context, others)
    axes = tuple(range(1, 1 + len(space)))

    def applied(vector: Array, matrices: Array) -> Array:
        waves = vector[places].reshape(levels, *space, outputs)
        waves = jnp.moveaxis(jnp.fft.rfftn(waves, axes=axes, norm="ortho"), 0, -2)
        half = waves.shape[:-2]
        mixed = jnp.einsum("kij,kj->ki", matrices, waves.reshape(-1, levels * outputs))
        waves = jnp.moveaxis(mixed.reshape(*half, levels, outputs), -2, 0)
        moved = jnp.fft.irfftn(waves, s=space, axes=axes, norm="ortho")
        return (vector * scale).at[places].set(moved.reshape(places.shape))

    adjoint = jnp.conj(jnp.swapaxes(factors, 1, 2))
    return Preconditioner(lambda z: applied(z, factors), lambda y: applied(y, adjoint))


def _symbol(
    objective: Objective, theta: Array, samples: SampleSet, context: Context, origin: np.ndarray
) -> Array:
    """What one kernel of each level and output, at the origin of space, does to the rows.

    The equation has mean coefficients there. ``(levels · outputs, rows at a place, *space)``.
    """
    lattice = objective.lattice
    assert lattice is not None
    interior, *conditions = objective.terms
    slopes = _mean_slopes(objective, theta, samples, context)

    def rows(theta: Array) -> Array:
        solution = objective.solution(theta, context)
        values = objective.lattice_values(solution, samples)
        vectors = {name: _combined(slopes[name], values) for name in interior.names}
        for term in conditions:
            vectors |= term.residuals(solution, samples[term.name])
        times = {name: lattice.shape[0] if name in slopes else 1 for name in vectors}
        scaled = [
            (jnp.sqrt(context.weights[n] / v.size) * v).reshape(times[n], *lattice.shape[1:])
            for n, v in vectors.items()
        ]
        return jnp.concatenate(scaled)

    shape = jax.eval_shape(rows, theta)
    _, push, _ = linear_maps(lambda t: rows(t).reshape(-1), theta)
    units = jnp.zeros((origin.size, theta.size), theta.dtype)
    units = units.at[np.arange(origin.size), origin.reshape(-1)].set(1)
    return jax.lax.map(push, units).reshape(origin.size, *shape.shape)


def _mean_slopes(
    objective: Objective, theta: Array, samples: SampleSet, context: Context
) -> dict[str, dict[tuple[int, ...], Array]]:
    """``∂r/∂(∂^α u_f)`` of every residual, its mean over space, ``(points, fields)``."""
    lattice = objective.lattice
    assert lattice is not None
    points = samples[objective.terms[0].name].points
    values = objective.lattice_values(objective.solution(theta, context), samples)
    vectors, pull = jax.vjp(
        lambda v: objective.statement.residuals_with(context.parameters)(v, points), values
    )

    def mean(slope: Array) -> Array:
        over = tuple(range(1, len(lattice.shape)))
        grid = slope.reshape(*lattice.shape, -1)
        return jnp.broadcast_to(jnp.mean(grid, over, keepdims=True), grid.shape).reshape(
            slope.shape
        )

    found = {}
    for name in vectors:
        ones = {n: (jnp.ones_like if n == name else jnp.zeros_like)(v) for n, v in vectors.items()}
        found[name] = jax.tree.map(mean, pull(ones)[0])
    return found


def _combined(slopes: dict[tuple[int, ...], Array], values: dict[tuple[int, ...], Array]) -> Array:
    return sum(
        (jnp.sum(slopes[index] * values[index], axis=1) for index in values),
        start=jnp.zeros(()),
    )


def _inverse_factors(responses: Array, space: tuple[int, ...]) -> Array:
    """``R⁻¹`` of the small matrix of every wave vector, for half of them: the rest is conjugate.

    Where there are more points than kernels, waves of the points that look alike on the kernels'
    lattice belong to one matrix.
    """
    columns, rows, *points = responses.shape
    ratios = [n // k for n, k in zip(points, space, strict=True)]
    axes = tuple(range(2, 2 + len(space)))
    waves = jnp.fft.fftn(responses, axes=axes) / math.sqrt(math.prod(ratios))
    # Wave a·k + j of the points is wave j of the kernels.
    split = [n for ratio, k in zip(ratios, space, strict=True) for n in (ratio, k)]
    waves = waves.reshape(columns, rows, *split)
    aliases = [2 + 2 * i for i in range(len(space))]
    kernels = [3 + 2 * i for i in range(len(space))]
    matrices = jnp.transpose(waves, (*kernels, 1, *aliases, 0))
    half = space[-1] // 2 + 1
    matrices = matrices.reshape(*space, -1, columns)
    matrices = jnp.take(matrices, np.arange(half), axis=len(space) - 1).reshape(
        -1, matrices.shape[-2], columns
    )
    lengths = jnp.linalg.norm(matrices, axis=1)
    lengths = jnp.where(lengths > 0, lengths, 1)
    below = (DAMPING * lengths)[:, :, None] * jnp.eye(columns, dtype=matrices.dtype)
    upper = jnp.linalg.qr(jnp.concatenate([matrices, below], axis=1), mode="r")
    # Rows with a positive diagonal: then conjugate matrices have conjugate factors.
    diagonal = jnp.diagonal(upper, axis1=1, axis2=2)
    upper = upper * (jnp.abs(diagonal) / diagonal)[:, :, None]
    identity = jnp.broadcast_to(jnp.eye(columns, dtype=upper.dtype), upper.shape)
    return solve_triangular(upper, identity)


def _longest_column(
    objective: Objective, theta: Array, samples: SampleSet, context: Context, chosen: np.ndarray
) -> Array:
    """About the length of the longest column of the Jacobian among these parameters.

    The mean square of ``Jᵀs`` over random signs ``s`` is the squared length of each column.
    """
    if not chosen.size:
        return jnp.ones((), theta.dtype)
    vector, _, transposed = linear_maps(
        lambda t: weighted_rows(objective, t, samples, context), theta
    )
    signs = jax.random.rademacher(jax.random.key(0), (4, vector.size), vector.dtype)
    squares = jax.lax.map(lambda s: transposed(s)[chosen] ** 2, signs)
    return jnp.sqrt(jnp.max(jnp.mean(squares, axis=0)))
