"""The estimated error of a run: which way it is found, part by part, and what it says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..losses.context import Context
from ..losses.objective import Objective
from ..models.collocation import KernelExpansionNetwork
from ..problems.boundary import BoundaryTreatment
from ..problems.reflection import ReflectedProblem
from ..problems.statement import Statement
from .defect import Defects, Found
from .part import Part
from .spaces import Choice, Grid, Scatter, Space
from .splines import SplineSpace
from .waves import Sizes, Waves

FINER, HIGHER = 1.5, 2
"""How many times as many waves as kernels along space, and how many more polynomials along time."""
PLACES = {1: 512, 2: 64, 3: 24}
"""Waves along each coordinate of space for what was not trained on a lattice."""
SLABS, LEVELS = 40, 10
"""For what was trained on all of the time at once: stretches of time, and polynomials in each."""
RENEWED = 10
"""Slabs of the same length share the small matrices for so long."""
SPLINES = 2.0
"""Cells for each parameter of a field."""
STABLE = 1e7
"""Derivatives of the highest order on the finest cells, against those on the whole domain: beyond it
rounding takes over."""
MOST_DIMENSIONS, MOST_GAUSSIANS = 3, 2000
"""Of splines, and of what is taken in their place above."""
SPEED = 4e9
"""Operations of a banded factorisation in a second, or fewer than any computer of today has."""


class Piece(NamedTuple):
    """The parameters of a solution from one time to another; all of the problem without times."""

    theta: Array
    context: Context
    time: tuple[float, float] | None


@dataclass(frozen=True)
class Estimate:
    """What is known of the error of a solution without a reference.

    Args:
        errors: The relative error of each field, over the size of the solution without it.
        parts: The same for every window, or stretch of time.
        worst: The coordinates where the error is largest.
        left: The share of the residual that the richer space does not explain.
        sensitivity: How large a change of the solution the equations hardly notice, for the residual
            that they have: near one the solution is not determined by them.
    """

    errors: dict[str, float]
    parts: tuple[dict[str, float], ...]
    worst: dict[str, float]
    left: float
    sensitivity: float

    @property
    def largest(self) -> float:
        return max(self.errors.values())

    @property
    def unique(self) -> bool:
        return self.sensitivity < 4e-3

    def as_json(self) -> dict[str, float | None]:
        """The errors; ``None`` where they have no bound, which JSON does not have, or mean nothing
        because there is no unique solution."""
        known = self.unique
        return {k: v if known and math.isfinite(v) else None for k, v in self.errors.items()}


def estimate_error(
    trained: Objective,
    reported: Objective,
    boundary: BoundaryTreatment,
    pieces: Sequence[Piece],
    seconds: float,
) -> Estimate:
    """The error of a solution, in about so many seconds.

    Args:
        trained: What was trained; between reflecting walls on twice the length.
        reported: The problem as it was stated.
        boundary: How its boundary was treated.
        pieces: The solution.
        seconds: How long it may take, as far as that can be chosen.
    """
    statement = trained.statement
    with jax.enable_x64(True):
        doubled = [p._replace(theta=jnp.asarray(p.theta, jnp.float64)) for p in pieces]
        if statement.is_periodic and statement.is_started and len(statement.domain.space) in PLACES:
            return _by_waves(trained, doubled)
        return _by_splines(reported, boundary, doubled, seconds)


# Waves.


def _by_waves(objective: Objective, pieces: Sequence[Piece]) -> Estimate:
    statement = objective.statement
    kernels = None
    model = objective.assemble(pieces[0].theta)
    if isinstance(model, KernelExpansionNetwork):
        kernels = model.lattice
    levels, counts = LEVELS, (PLACES[len(statement.domain.space)],) * len(statement.domain.space)
    if kernels is not None:
        levels = kernels.shape[0] + HIGHER
        counts = tuple(2 * math.ceil(FINER * n / 2) for n in kernels.shape[1:])
    problem = statement.problem
    reflections = problem.reflections if isinstance(problem, ReflectedProblem) else ()
    waves = Waves(objective, levels, counts, reflections, on_grid=kernels is not None)
    slabs, lengths = _slabs(statement, pieces)

    @jax.jit
    def run(slabs: Part, renew: Array) -> Sizes:
        def body(
            carry: tuple[Array, Array], x: tuple[Part, Array]
        ) -> tuple[tuple[Array, Array], Sizes]:
            starts, factors, sizes = waves.step(*carry, *x)
            return (starts, factors), sizes

        return jax.lax.scan(body, waves.begin(), (slabs, renew))[1]

    sizes = run(slabs, jnp.asarray(_renewals(lengths)))
    error, solution = np.asarray(sizes.error), np.asarray(sizes.solution)
    worst = np.asarray(sizes.worst)[int(np.argmax(np.sum(error, axis=1)))]
    return _gathered(statement, error, solution, lengths, worst, 0.0, 0.0)


def _renewals(lengths: np.ndarray) -> np.ndarray:
    """Where the small matrices are made anew: for another length, and now and then."""
    renew = np.zeros(len(lengths), bool)
    last = 0
    for k, length in enumerate(lengths):
        if k == 0 or k - last >= RENEWED or not math.isclose(length, lengths[last], rel_tol=1e-9):
            renew[k], last = True, k
    return renew


def _slabs(statement: Statement, pieces: Sequence[Piece]) -> tuple[Part, np.ndarray]:
    """One for each window; all of the time is cut into equal ones."""
    if pieces[0].time is None:
        begin, end = statement.domain.bounds[0]
        ends = np.linspace(begin, end, SLABS + 1)
        times = list(pairwise(ends.tolist()))
        several = [pieces[0]] * SLABS
    else:
        several = list(pieces)
        times = [p.time for p in pieces if p.time is not None]
    starts = np.array([a for a, _ in times])
    lengths = np.array([b - a for a, b in times])
    theta = jnp.stack([p.theta for p in several])
    context: Context = jax.tree.map(lambda *a: jnp.stack(a), *[p.context for p in several])
    first = jnp.arange(len(several)) == 0

    def before(a: Array) -> Array:
        return jnp.concatenate([a[:1], a[:-1]])

    slab = Part(
        jnp.asarray(starts), jnp.asarray(lengths), first,
        theta, context, before(theta), jax.tree.map(before, context),
    )  # fmt: skip
    return slab, lengths


# Splines.


def _by_splines(
    objective: Objective, boundary: BoundaryTreatment, pieces: Sequence[Piece], seconds: float
) -> Estimate:
    statement = objective.statement
    parts, lengths = _parts(statement, pieces)
    grid = choose_grid(statement, boundary, pieces[0].theta.size, seconds / len(parts))
    defects = Defects(objective, boundary, grid)
    found: list[Found] = []
    before: tuple[Space, np.ndarray] | None = None
    for k, part in enumerate(parts):
        found.append(defects.find(part, before, jax.random.key(20_001 + k)))
        before = defects.space(part), found[-1].coefficients
    error = np.array([f.error for f in found])
    solution = np.array([f.solution for f in found])
    worst = found[int(np.argmax(error.sum(axis=1)))].worst
    size = math.sqrt(float(np.mean(solution.sum(axis=1)))) or 1.0
    weak = [f for f in found if f.weakest < 1e-4 * f.natural]
    sensitivity = max((f.residual / max(f.weakest, 1e-300) / size for f in weak), default=0.0)
    if weak and not np.any(solution):
        sensitivity = math.inf
    left = max(f.left for f in found)
    return _gathered(statement, error, solution, lengths, worst, left, sensitivity)


def _parts(statement: Statement, pieces: Sequence[Piece]) -> tuple[list[Part], np.ndarray]:
    if statement.has_time:
        if pieces[0].time is None:
            pieces = [pieces[0]._replace(time=statement.domain.bounds[0])]
        times = [p.time for p in pieces if p.time is not None]
    else:
        times = [(0.0, 1.0)]
    parts = []
    for k, (piece, (begin, end)) in enumerate(zip(pieces, times, strict=True)):
        last = pieces[max(k - 1, 0)]
        parts.append(
            Part(
                jnp.asarray(float(begin)), jnp.asarray(float(end - begin)), jnp.asarray(k == 0),
                piece.theta, piece.context, last.theta, last.context,
            )
        )  # fmt: skip
    return parts, np.array([end - begin for begin, end in times])


def choose_grid(
    statement: Statement, boundary: BoundaryTreatment, parameters: int, seconds: float
) -> Choice:
    """The finest cells that are needed, stable, and quick enough."""
    domain, fields = statement.domain, len(statement.fields)
    if domain.dimension > MOST_DIMENSIONS:
        unknowns = min(parameters, round((SPEED * seconds / 4) ** (1 / 3)), MOST_GAUSSIANS)
        return Scatter(max(64, unknowns // fields), domain.dimension)
    space = len(domain.space)
    degree = max(statement.order + 1, 5 if space < 3 else 4)
    extents = np.array([b - a for a, b in domain.bounds])
    if statement.has_time:
        extents[0] = max(extents[1:])  # a part of time is as long as space
    share = domain.volume / math.prod(b - a for a, b in domain.bounds)
    wanted = SPLINES * parameters / fields / share
    if len(extents) == 1:
        wanted = max(wanted, 128)
    most = STABLE ** (1 / max(statement.space_order, 2))
    embedded = boundary.embedded(statement)
    periodic = tuple(name in embedded for name in domain.coordinates)
    while True:
        width = (math.prod(extents) / wanted) ** (1 / len(extents))
        cells = tuple(int(min(max(4, round(e / width)), most)) for e in extents)
        trial = SplineSpace(domain.bounds, cells, degree, periodic, fields)
        if trial.size * trial.bandwidth**2 <= SPEED * seconds or max(cells) <= 4:
            return Grid(trial.cells, degree)
        wanted *= 0.8


# Both.


def _gathered(
    statement: Statement,
    error: np.ndarray,
    solution: np.ndarray,
    lengths: np.ndarray,
    worst: np.ndarray,
    left: float,
    sensitivity: float,
) -> Estimate:
    """Mean squares by part and field as relative errors."""
    names = statement.fields
    every = lengths[:, None]
    total = _relative(np.sum(error * every, axis=0), np.sum(solution * every, axis=0))
    parts = [_relative(e, s) for e, s in zip(error, solution, strict=True)]
    return Estimate(
        dict(zip(names, total, strict=True)),
        tuple(dict(zip(names, part, strict=True)) for part in parts),
        dict(zip(statement.domain.coordinates, map(float, worst), strict=True)),
        left,
        sensitivity,
    )


def _relative(error: np.ndarray, solution: np.ndarray) -> list[float]:
    """Roots of ratios; what is nothing has no error where there is none."""
    ratios = []
    for e, s in zip(error, solution, strict=True):
        if e == 0:
            ratios.append(0.0)
        else:
            ratios.append(math.sqrt(float(e / s)) if s > 0 else math.inf)
    return [r if not math.isnan(r) else math.inf for r in ratios]
