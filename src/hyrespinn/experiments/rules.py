"""How the presets fit network and training to a problem.

Every rule goes by what can be read off the problem itself, and was measured: ``docs/training.md``
has the figures, ``benchmarks/rules.py`` makes them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..nn import HyResPINNConfig
from ..problems.problem import Problem, anatomy
from .config import TrainConfig

WINDOWS = {3: 2, 4: 10}
"""Windows of time by the order of the equation in space; one where it is lower."""
MOST_WINDOWS = WINDOWS[max(WINDOWS)]
LEAST_STEPS = 2000
"""SSBroyden steps that a window needs, however many there are."""
SOAP_STEPS = 300
"""Steps of SOAP that take about as long as the thousand of Adam."""


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


def fitted_model(model: HyResPINNConfig, traits: Traits) -> HyResPINNConfig:
    """Without time the solution is smooth inside: smooth kernels that reach far, and some more of
    them; fewer layers in the plane.

    With time it may have fronts: compact kernels that reach the nearest centres, the default.
    """
    if traits.time:
        return model
    return replace(
        model,
        kernel="gaussian",
        width_quantile=0.3,
        depth=max(1, min(model.depth, traits.dimension - 1)),
        centers=4 * model.centers // 3,
    )


def fitted_training(train: TrainConfig, traits: Traits) -> TrainConfig:
    """Without time SOAP makes a better first stage than Adam, and in the plane half the points do.

    Where the boundary or the initial time is a surface, it gets four times the points of a line.

    An equation of the third order or more in space is marched through windows of time: such waves
    move the faster the shorter they are, so that all of time at once is out of reach of a small
    network. Each window begins with the parameters of the one before.
    """
    if traits.dimension > 2:
        train = replace(
            train,
            initial_points=4 * train.initial_points,
            boundary_points=4 * train.boundary_points,
        )
    if not traits.time:
        points = train.points if traits.dimension > 2 else train.points // 2
        return replace(train, adam_rule="soap", adam_steps=SOAP_STEPS, points=points)
    if traits.order < min(WINDOWS):
        return train
    windows = WINDOWS.get(traits.order, MOST_WINDOWS)
    return replace(
        train,
        windows=windows,
        window_start="warm",
        adam_steps=train.adam_steps // 2,
        ssbroyden_steps=max(LEAST_STEPS, train.ssbroyden_steps // windows),
    )
