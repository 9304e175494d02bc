"""Collocation with scattered kernels and Gauss–Newton: without time, and in short windows of it."""

from __future__ import annotations

from dataclasses import dataclass

from ..discretise import Discretisation, Drawn, Fixed, Lifted, Penalty, Weights, Whole
from ..models import KernelExpansion, Scattered
from ..optim import GaussNewton
from ..problems.statement import Statement
from .method import Effort, Suits, WhyNot

CENTRES = 1024
"""Kernels for an effort of one."""
HIGHEST_ON_A_LINE = 2.5
"""Rounding grows with the number of kernels on a line to the power of the equation's order: above this
order there are fewer, so that it stays what it is there."""
EXTERIOR = {1: 6.0, 2: 3.0, 3: 2.0}
"""How far centres stand outside of a domain, in spacings, by its dimension: further out they hardly reach
inside, and the higher the dimension the more of them there are, which are missed inside."""
LIFTED = 3
"""The highest dimension in which values at the boundary are built in: their blend has a term for every
face, edge and corner, and derivatives of all of them."""
WEIGHT_PER_ORDER = 100.0
"""How many times as much a condition on the boundary counts for every order that it is below the
equation, without time: waves about as long as half the unit count alike in both. Gauss–Newton solves
for all weights alike."""
STEPS = 30


@dataclass(frozen=True)
class March:
    """Windows for an effort of one, and how many times as many centres each of them has."""

    windows: int
    centres: float


MARCHES = {3: March(20, 1.0), 4: March(50, 1.5)}
"""By the order of the equation in space. Such waves move the faster the shorter they are; the fourth
order comes with growth of what is small, so that early windows must be exact."""


def march_of(statement: Statement) -> March | None:
    """The windows of an equation, or none; those of the highest order serve all above it."""
    if not statement.has_time or statement.space_order < min(MARCHES):
        return None
    return MARCHES.get(statement.space_order, MARCHES[max(MARCHES)])


def suits(statement: Statement) -> Suits | WhyNot:
    """Without time, and in short windows of it, a step of Gauss–Newton finds the way from nothing to
    the solution, and that is smooth enough for evenly spread kernels."""
    if not statement.has_time:
        return Suits("a steady equation, for scattered kernels and Gauss–Newton")
    if march_of(statement) is not None:
        return Suits("an equation of a high order in space, for scattered kernels in short windows")
    return WhyNot("with time and at most two derivatives in space solutions may have fronts")


def discretise(statement: Statement, effort: Effort) -> Discretisation:
    """Some two and a half times as many evenly spread points as centres, in one round."""
    march = march_of(statement)
    in_space = statement.domain.dimension > 2
    centres = _centres(statement, effort, march)
    surface = 1024 if in_space else 256
    stages = (GaussNewton(steps=STEPS, progress=0.5 if effort.scale <= 1 else 0.1),)
    if march is not None:
        kernels = Scattered(centres, overlap=2.1, time_width=4.0, exterior=0.0)
        points = Drawn(round(2.4 * centres), max(surface, centres // 3), surface, adaptive=None)
        windows = Fixed(max(1, round(effort.scale * march.windows)))
        weights = Weights(initial=1.0)
        return Discretisation(KernelExpansion(kernels), points, Lifted(), weights, windows, stages)
    exterior = EXTERIOR.get(statement.domain.dimension, min(EXTERIOR.values()))
    kernels = Scattered(centres, overlap=2.7, exterior=exterior)
    if in_space:
        points = Drawn(round(3.4 * centres), surface, round(1.5 * centres), adaptive=None)
    else:
        points = Drawn(round(2.4 * centres), surface, surface, adaptive=None)
    weights = Weights(initial=10.0, per_order=WEIGHT_PER_ORDER)
    boundary = Lifted() if statement.domain.dimension <= LIFTED else Penalty()
    return Discretisation(KernelExpansion(kernels), points, boundary, weights, Whole(), stages)


def _centres(statement: Statement, effort: Effort, march: March | None) -> int:
    dimension = statement.domain.dimension
    if dimension == 1:
        share = min(1.0, HIGHEST_ON_A_LINE / max(1, statement.order))
        return round((effort.scale * CENTRES) ** share)
    factor = (march.centres if march else 1.0) * (2.0 if dimension > 2 else 1.0)
    return round(factor * effort.scale ** (dimension - 1) * CENTRES)
