"""How the presets fit network and training to a problem.

Every rule goes by what can be read off the problem itself, and was measured: ``docs/training.md``
has the figures, ``benchmarks/rules.py`` makes them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ..nn import HyResPINNConfig
from ..problems.problem import Problem
from ..problems.statement import state
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
GAIN = 2000.0
"""How many times smaller what enters the tanh is than the fields. Kernels must make ``atanh`` of what is
wanted, and with it waves three times as short, of the size of the square of what enters: few
scattered kernels cannot make them, so that they must not matter."""
RIM, RIM_IN_SPACE = 3.0, 2.0
"""The rim around a domain, in spacings of the kernels: beyond it they hardly reach inside. In three
dimensions it has many of them, which are missed inside."""
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
    statement = state(problem)
    started = statement.is_started
    return Traits(
        statement.has_time,
        statement.space_order,
        statement.domain.dimension,
        started and statement.is_periodic,
        statement.time_order,
        started and statement.extends_smoothly,
        statement.bandwidth,
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


def fitted_model(
    model: HyResPINNConfig, traits: Traits, fields: int, effort: float
) -> HyResPINNConfig:
    """With time, and at most the second order in space, the solution may have fronts: compact kernels
    that move and change their widths, the default.

    Otherwise many kernels stay where they are, one feature a field is made of them, and the head's
    gain makes the network nearly linear in their coefficients. Kernels are Gaussians that overlap
    widely, along time flat over all of a window. Where space is periodic they stand on a lattice, and
    there are many more of them; along a line their factors along time add up to one. (In a plane that
    has not been measured: the error of space is far larger there.)
    """
    if on_lattice(traits):
        return replace(
            _linear(model, fields),
            lattice=lattice_of(traits, effort),
            overlap=1.3,
            time_width=1.6,
            adds_up=traits.dimension == 2,
        )
    if not nearly_linear(traits):
        return model
    march = march_of(traits)
    factor = (march.centers if march else 1.0) * (2.0 if traits.dimension > 2 else 1.0)
    scattered = replace(
        _linear(model, fields),
        centers=round(factor * effort ** (traits.dimension - 1) * CENTERS),
        gain=GAIN,
    )
    if march:
        return replace(scattered, overlap=2.1, time_width=4.0)
    return replace(scattered, overlap=2.7, rim=RIM if traits.dimension < 3 else RIM_IN_SPACE)


def _linear(model: HyResPINNConfig, fields: int) -> HyResPINNConfig:
    """A network that is nearly linear in the coefficients of kernels that stay where they are."""
    return replace(
        model,
        width=fields,
        depth=1,
        deep=8,
        fourier=0,
        kernel="gaussian",
        train_centers=False,
        train_shapes=False,
        gain=60.0,
        phi_beta=0.5,
    )


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
