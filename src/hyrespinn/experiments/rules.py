"""How the presets fit network and training to a problem.

Every rule goes by what can be read off the problem itself, and was measured: ``docs/training.md``
has the figures, ``benchmarks/rules.py`` makes them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..nn import HyResPINNConfig
from ..problems.problem import Problem, anatomy
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
GAUSS_NEWTON_STEPS = 30


@dataclass(frozen=True)
class Traits:
    """What the rules look at: whether there is time, the order of the equation in space, and the
    number of coordinates, time among them."""

    time: bool
    order: int
    dimension: int


def traits_of(problem: Problem) -> Traits:
    """
    >>> import hyrespinn as hp
    >>> traits_of(hp.problems.KortewegDeVries())
    Traits(time=True, order=3, dimension=2)
    """
    time = problem.domain.has_time
    requested = anatomy(problem).requested
    order = max(sum(index[1:] if time else index) for index in requested)
    return Traits(time, order, problem.domain.dimension)


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
    widely, along time flat over all of a window.
    """
    if not nearly_linear(traits):
        return model
    march = march_of(traits)
    factor = (march.centers if march else 1.0) * (2.0 if traits.dimension > 2 else 1.0)
    return replace(
        model,
        width=fields,
        depth=1,
        deep=8,
        fourier=0,
        kernel="gaussian",
        centers=round(factor * effort ** (traits.dimension - 1) * CENTERS),
        overlap=2.1 if march else 3.0,
        time_width=4.0 if march else 0.0,
        train_centers=False,
        train_shapes=False,
        gain=60.0,
        phi_beta=0.5,
    )


def fitted_training(train: TrainConfig, traits: Traits, centers: int, effort: float) -> TrainConfig:
    """With time, and at most the second order in space: Adam, then SSBroyden, on all of the time.

    Otherwise Gauss–Newton, on some two and a half times as many points as there are centres; what
    it solves for is overdetermined then. The points are evenly spread: there is one round of them.
    In space there are more of them, and of those on the boundary, which also count for more.

    Where the boundary or the initial time is a surface, it gets four times the points of a line.
    """
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
    if march is None and traits.dimension > 2:
        return replace(
            train,
            points=round(3.4 * centers),
            boundary_points=round(1.5 * centers),
            weight_boundary=10 * train.weight_boundary,
        )
    if march is None:
        return train
    return replace(
        train,
        windows=round(effort * march.windows),
        initial_points=max(train.initial_points, centers // 3),
        weight_initial=1.0,
    )
