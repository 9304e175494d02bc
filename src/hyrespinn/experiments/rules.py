"""How the presets fit network and training to a problem.

Every rule goes by what can be read off the problem itself, and was measured: ``docs/training.md``
has the figures, ``benchmarks/rules.py`` makes them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ..geometry import Box
from ..models import HyResPINN, KernelExpansion, Lattice, Scattered
from ..problems.conditions import Initial, Periodic, embedded
from ..problems.continuation import goes_on_smoothly
from ..problems.mirror import mirrored
from ..problems.problem import Problem, anatomy, field_of, space_order
from ..problems.waves import finest_wave, keeps_its_waves
from .config import TrainConfig


@dataclass(frozen=True)
class March:
    """How an equation goes through time: its windows, and how many times as many centres as the
    effort says each of them has."""

    windows: int
    centers: float


MARCHES = {3: March(20, 1.0), 4: March(50, 1.5)}
"""Windows of time by the order of the equation in space, for an effort of one.

Such waves move the faster the shorter they are: all of time at once is out of reach of a small
network. The fourth order comes with growth of what is small, so that early windows must be exact.
"""
CENTERS = 1024
"""Kernels of a network that is nearly linear in their coefficients, for an effort of one."""
EXTERIOR, EXTERIOR_IN_SPACE = 3.0, 2.0
"""How far centres stand outside of a domain, in spacings: beyond it they hardly reach inside. In three
dimensions there are many of them, which are missed inside."""
GAUSS_NEWTON_STEPS = 30
WEIGHT_PER_ORDER = 100.0
"""How many times as much a condition on the boundary counts for every order that it is below the
equation (``losses.terms.Weights``), without time: waves about as long as half the unit count alike in
both. Gauss–Newton solves for all weights alike; SSBroyden needs many more steps with such large ones."""
LATTICE = {1: 1024, 2: 72, 3: 24}
"""Kernels on a lattice along each coordinate of space, by the number of these coordinates."""
COARSER = {3: 0.3125, 4: 0.25}
"""Along one coordinate equations of a higher order in space have so many of them: what is short
changes the faster, the higher the order, and short waves are damped or carried away."""
FEWEST, PER_WAVE = 64, 6
"""Along one coordinate: the fewest kernels, and how many of them the finest wave needs, where that is
known. Six of them repeat a wave to within 2e-10, by the next wave that looks the same to them."""
LEVELS = {1: 8, 2: 10}
"""Kernels along time by the order of the equation in time."""
LATTICE_WINDOWS = {1: 200, 2: 50}
"""Of the second order an error in the speed with which a window begins counts for more, the shorter
the window is."""
LATTICE_STEPS = 12


@dataclass(frozen=True)
class Traits:
    """What the rules look at: whether there is time, the order of the equation in space, the number
    of coordinates, time among them, whether all of space is periodic, the order in time, whether
    walls mirror the solution so that it is periodic on twice the length, and the number of the finest
    wave that a solution on a line has, where that is known (else 0)."""

    time: bool
    order: int
    dimension: int
    periodic: bool = False
    time_order: int = 0
    mirrored: bool = False
    finest: int = 0


def traits_of(problem: Problem) -> Traits:
    """
    >>> import hyrespinn as hp
    >>> traits_of(hp.problems.KortewegDeVries())
    Traits(time=True, order=3, dimension=2, periodic=True, time_order=1, mirrored=False, finest=0)
    """
    time = problem.domain.has_time
    requested = anatomy(problem).requested
    order = space_order(problem, requested)
    time_order = max(index[0] for index in requested) if time else 0
    dimension = problem.domain.dimension
    started = time and _starts_all(problem, time_order)
    periodic = started and _is_periodic(problem)
    walls = started and goes_on_smoothly(problem)
    finest = 0
    if (periodic or walls) and dimension == 2 and keeps_its_waves(problem):
        finest = finest_wave(mirrored(problem) if walls else problem)
    return Traits(time, order, dimension, periodic, time_order, walls, finest)


def _is_periodic(problem: Problem) -> bool:
    """Whether a box in space is periodic along all of its sides, and nothing but a start is given."""
    conditions = problem.conditions()
    around = {c.axis for c in conditions if isinstance(c, Periodic) and embedded(c, True)}
    return (
        isinstance(problem.domain, Box)
        and around == set(problem.domain.space)
        and all(isinstance(c, Initial | Periodic) for c in conditions)
    )


def _starts_all(problem: Problem, time_order: int) -> bool:
    """Whether every field has as many initial conditions as the equation's order in time, and an
    equation: on a lattice there is nothing else to find its coefficients with."""
    starts = [field_of(problem, c) for c in problem.conditions() if isinstance(c, Initial)]
    equations = len(anatomy(problem).residual_names)
    return equations == len(problem.fields) and all(
        starts.count(field) == time_order for field in problem.fields
    )


def on_lattice(traits: Traits) -> bool:
    """Whether a problem gets kernels on a lattice: with time, and periodic in up to three dimensions,
    or between walls in one. (In more of them the images would be three quarters of all kernels.)"""
    space = traits.dimension - 1
    around = traits.periodic and space in LATTICE
    return traits.time and (around or (traits.mirrored and space == 1))


def lattice_of(traits: Traits, effort: float) -> tuple[int, ...]:
    """The kernels along each coordinate, time first.

    Up to the second order a solution may have a kink, as that of Allen and Cahn has at first: the
    error falls with the square of the number of kernels, so that more effort goes there along a
    line. What is smooth needs little more; what goes on smoothly behind walls has most of its error
    from time, and more effort gives it more levels.

    >>> lattice_of(Traits(time=True, order=4, dimension=2, periodic=True), 1.0)
    (8, 256)
    """
    space = traits.dimension - 1
    kinks = space == 1 and traits.order < min(COARSER) and not traits.mirrored
    finer = effort**2 if kinks else effort**0.5
    share = 1.0
    if space == 1 and traits.order >= min(COARSER):
        share = COARSER.get(traits.order, COARSER[max(COARSER)])
    along = 8 * round(finer * share * LATTICE[space] / 8)
    if traits.finest:
        along = min(along, max(FEWEST, 8 * math.ceil(finer * PER_WAVE * traits.finest / 8)))
    levels = _by_order(LEVELS, traits.time_order) + (2 if _more_levels(traits, effort) else 0)
    return levels, *(space * (along,))


def lattice_windows(traits: Traits, effort: float) -> int:
    """With more levels of time in them windows may be longer."""
    windows = effort * _by_order(LATTICE_WINDOWS, traits.time_order)
    return round(windows / 2 if _more_levels(traits, effort) else windows)


def _more_levels(traits: Traits, effort: float) -> bool:
    return traits.mirrored and effort > 1


def _by_order(table: dict[int, int], order: int) -> int:
    return table[min(max(order, 1), max(table))]


def march_of(traits: Traits) -> March | None:
    """The windows of an equation, or none; those of the highest order serve all above it."""
    if not traits.time or traits.order < min(MARCHES):
        return None
    return MARCHES.get(traits.order, MARCHES[max(MARCHES)])


def nearly_linear(traits: Traits) -> bool:
    """Whether a problem gets many fixed kernels and Gauss–Newton.

    Without time, and in short windows of it, a step of Gauss–Newton finds the way from nothing to the
    solution, and that is smooth enough for evenly spread kernels.
    """
    return not traits.time or march_of(traits) is not None


def fitted_model(model: HyResPINN, traits: Traits, effort: float) -> HyResPINN | KernelExpansion:
    """With time, and at most the second order in space, the solution may have fronts: compact kernels
    that move and change their widths, the default.

    Otherwise many kernels stay where they are. They are Gaussians that overlap widely, along time
    flat over all of a window. Where space is periodic they stand on a lattice, and there are many
    more of them; along a line their factors along time are a partition of unity. (In a plane that
    has not been measured: the error of space is far larger there.)
    """
    if on_lattice(traits):
        unity = traits.dimension == 2
        return KernelExpansion(Lattice(lattice_of(traits, effort), partition_of_unity=unity))
    if not nearly_linear(traits):
        return model
    march = march_of(traits)
    factor = (march.centers if march else 1.0) * (2.0 if traits.dimension > 2 else 1.0)
    count = round(factor * effort ** (traits.dimension - 1) * CENTERS)
    if march:
        return KernelExpansion(Scattered(count, overlap=2.1, time_width=4.0, exterior=0.0))
    exterior = EXTERIOR if traits.dimension < 3 else EXTERIOR_IN_SPACE
    return KernelExpansion(Scattered(count, overlap=2.7, exterior=exterior))


def fitted_training(train: TrainConfig, traits: Traits, centers: int, effort: float) -> TrainConfig:
    """With time, and at most the second order in space: Adam, then SSBroyden, on all of the time.

    Otherwise Gauss–Newton, on some two and a half times as many points as there are centres; what
    it solves for is overdetermined then. The points are evenly spread: there is one round of them.
    In space there are more of them, and of those on the boundary.

    Where the boundary or the initial time is a surface, it gets four times the points of a line.

    Kernels on a lattice have as many equations as there are kernels, on a lattice too, in many short
    windows, the first of them shortest: most starts are far from where the equation leads at once.
    """
    if on_lattice(traits):
        levels, *space = lattice_of(traits, effort)
        return replace(
            train,
            stages=(f"gauss-newton-cg:{LATTICE_STEPS}",),
            lattice=(levels - traits.time_order, *space),
            pool=1,
            relative_target=0.0,
            windows=lattice_windows(traits, effort),
            window_growth=0.25,
            window_start="warm",
            weight_initial=1.0,
            mirror=not traits.periodic,
        )
    if traits.dimension > 2:
        train = replace(
            train,
            initial_points=4 * train.initial_points,
            boundary_points=4 * train.boundary_points,
        )
    if not nearly_linear(traits):
        return train
    train = replace(
        train,
        stages=(f"gauss-newton:{GAUSS_NEWTON_STEPS}",),
        points=round(2.4 * centers),
        pool=1,
        relative_target=0.0,
    )
    march = march_of(traits)
    if march is None:
        train = replace(train, weight_per_order=WEIGHT_PER_ORDER)
        if traits.dimension > 2:
            train = replace(
                train, points=round(3.4 * centers), boundary_points=round(1.5 * centers)
            )
        return train
    return replace(
        train,
        windows=round(effort * march.windows),
        initial_points=max(train.initial_points, centers // 3),
        weight_initial=1.0,
    )
