"""How the presets fit network and training to a problem.

Every rule goes by what can be read off the problem itself, and was measured: ``docs/training.md``
has the figures, ``benchmarks/rules.py`` makes them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..nn import HyResPINNConfig
from ..problems.problem import Problem, anatomy
from ..training.windows import WindowStart
from .config import TrainConfig


@dataclass(frozen=True)
class March:
    """How an equation goes through time: its windows, the mean share of the preset's SSBroyden steps
    that each of them gets, how much more of them the early ones get (the late ones, if negative),
    and how a window begins."""

    windows: int
    share: float
    taper: float
    start: WindowStart


MARCHES = {3: March(2, 0.65, -1.0, "warm"), 4: March(20, 0.34, 0.5, "continued")}
"""Windows of time by the order of the equation in space; one where it is lower.

Waves of the third order keep an error as it is, and become steeper: the late window is the hard one.
The fourth order comes with growth of what is small: the early windows decide. Its windows are short,
and the next is like the last: the curvature of one serves the next, where two long ones differ.
"""
SOAP_STEPS = 300
"""Steps of SOAP that take about as long as the thousand of Adam."""
HARMONICS = 4
"""Harmonics of a periodic coordinate for an equation that makes many waves."""


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


def fitted_model(model: HyResPINNConfig, traits: Traits) -> HyResPINNConfig:
    """Without time the solution is smooth inside: smooth kernels that reach far, and some more of
    them; fewer layers in the plane.

    With time it may have fronts: compact kernels that reach the nearest centres, the default. An
    equation of the fourth order or more makes many waves along a periodic coordinate: harmonics of
    it in place of random Fourier features, and a network that is not nearly linear at first.
    """
    if traits.time:
        if traits.order < max(MARCHES):
            return model
        return replace(model, harmonics=HARMONICS, fourier=0, phi_alpha=0.2, phi_beta=0.5)
    return replace(
        model,
        kernel="gaussian",
        width_quantile=0.3,
        depth=max(1, min(model.depth, traits.dimension - 1)),
        centers=4 * model.centers // 3,
    )


def fitted_training(train: TrainConfig, traits: Traits) -> TrainConfig:
    """Without time SOAP makes a better first stage than Adam; in the plane half the points do, in
    space half the steps.

    Where the boundary or the initial time is a surface, it gets four times the points of a line.

    An equation of the third order or more in space is marched through windows of time: such waves
    move the faster the shorter they are, so that all of time at once is out of reach of a small
    network. Each window begins with the network of the one before, and half the points do; where it
    goes on with the curvature too, rounds are twice as long.
    """
    if traits.dimension > 2:
        train = replace(
            train,
            initial_points=4 * train.initial_points,
            boundary_points=4 * train.boundary_points,
        )
    if not traits.time:
        train = replace(train, adam_rule="soap", adam_steps=SOAP_STEPS)
        if traits.dimension > 2:
            return replace(train, ssbroyden_steps=train.ssbroyden_steps // 2)
        return replace(train, points=train.points // 2)
    march = march_of(traits)
    if march is None:
        return train
    return replace(
        train,
        windows=march.windows,
        window_start=march.start,
        window_taper=march.taper,
        points=train.points // 2,
        round_steps=(2 if march.start == "continued" else 1) * train.round_steps,
        adam_steps=train.adam_steps // march.windows,
        ssbroyden_steps=round(march.share * train.ssbroyden_steps),
    )
