"""Collocation with kernels on a lattice and Gauss–Newton by conjugate gradients, in short windows."""

from __future__ import annotations

import math

from ..discretise import Discretisation, Fixed, Grid, Lifted, Reflected, Weights
from ..models import KernelExpansion, Lattice
from ..optim import GaussNewtonCG
from ..problems.statement import Statement
from .method import Effort, Suits, WhyNot

ALONG = {1: 1024, 2: 72, 3: 24}
"""Kernels along each coordinate of space, by the number of these coordinates."""
COARSER = {3: 0.3125, 4: 0.25}
"""Along one coordinate equations of a higher order in space have so many of them: what is short
changes the faster, the higher the order, and short waves are damped or carried away."""
FEWEST, PER_WAVE = 64, 6
"""Along one coordinate: the fewest kernels, and how many of them the finest wave needs, where the
bandwidth is known. Six of them repeat a wave to within 2e-10, by the next wave that looks the same to
them."""
LEVELS = {1: 8, 2: 10}
"""Kernels along time by the order of the equation in time."""
WINDOWS = {1: 200, 2: 50}
"""Of the second order an error in the speed with which a window begins counts for more, the shorter
the window is."""
STEPS = 12


def suits(statement: Statement) -> Suits | WhyNot:
    """With time, and periodic in up to three dimensions, or between reflecting walls in one. (In more
    of them the images would be three quarters of all kernels.)"""
    missing = statement.why_not_started()
    if missing is not None:
        return WhyNot(f"no lattice: {missing}")
    space = len(statement.domain.space)
    if statement.is_periodic and space in ALONG:
        return Suits("periodic in space with all starts given, for kernels on a lattice")
    if space == 1 and statement.extends_smoothly:
        return Suits("walls that reflect the solution smoothly, for kernels on a lattice")
    walls = statement.why_not_smooth() if space == 1 else f"walls in {space} dimensions"
    return WhyNot(f"no lattice: {statement.why_not_periodic()}, and no reflection: {walls}")


def counts_of(statement: Statement, effort: float) -> tuple[int, ...]:
    """The kernels along each coordinate, time first.

    Up to the second order a solution may have a kink, as that of Allen and Cahn has at first: the
    error falls with the square of the number of kernels, so that more effort goes there along a
    line. What is smooth needs little more; what extends smoothly behind walls has most of its error
    from time, and more effort gives it more levels.

    >>> import hyrespinn as hp
    >>> counts_of(hp.problems.state(hp.problems.KuramotoSivashinsky()), 1.0)
    (8, 256)
    """
    space = len(statement.domain.space)
    kinks = space == 1 and statement.space_order < min(COARSER) and statement.is_periodic
    finer = effort**2 if kinks else effort**0.5
    share = 1.0
    if space == 1 and statement.space_order >= min(COARSER):
        share = COARSER.get(statement.space_order, COARSER[max(COARSER)])
    along = max(8, 8 * round(finer * share * ALONG[space] / 8))
    if statement.bandwidth:
        along = min(along, max(FEWEST, 8 * math.ceil(finer * PER_WAVE * statement.bandwidth / 8)))
    levels = _by_order(LEVELS, statement.time_order) + (2 if _more_levels(statement, effort) else 0)
    return levels, *(space * (along,))


def windows_of(statement: Statement, effort: float) -> int:
    """With more levels of time in them windows may be longer."""
    windows = effort * _by_order(WINDOWS, statement.time_order)
    return max(1, round(windows / 2 if _more_levels(statement, effort) else windows))


def _more_levels(statement: Statement, effort: float) -> bool:
    return not statement.is_periodic and effort > 1


def _by_order(table: dict[int, int], order: int) -> int:
    return table[min(max(order, 1), max(table))]


def discretise(statement: Statement, effort: Effort) -> Discretisation:
    """As many equations as there are kernels, in many short windows, the first of them shortest: most
    starts are far from where the equation leads at once.

    Along a line the factors along time are a partition of unity. (In a plane that has not been
    measured: the error of space is far larger there.)
    """
    levels, *space = counts_of(statement, effort.scale)
    unity = len(space) == 1
    kernels = Lattice((levels, *space), partition_of_unity=unity)
    return Discretisation(
        KernelExpansion(kernels),
        Grid((levels - statement.time_order, *space)),
        Lifted() if statement.is_periodic else Reflected(),
        Weights(initial=1.0),
        Fixed(windows_of(statement, effort.scale), growth=0.25, start="warm"),
        (GaussNewtonCG(steps=STEPS),),
    )
