"""The method ``network``: the paper's hybrid network, or a baseline, with everything trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..discretise import (
    Discretisation,
    Drawn,
    Fixed,
    Lifted,
    Stopping,
    Weights,
    Whole,
)
from ..models import (
    MODELS,
    PINN,
    Deep,
    ExpertPINN,
    Fourier,
    Frequencies,
    HyResPINN,
    ModelSpec,
    Moving,
    PirateNet,
    ResPINN,
    StackedPINN,
    match_parameters,
)
from ..models.kernels import Gaussian
from ..models.matching import Sized
from ..optim import Optimiser, SSBroyden, TrustRegion
from ..problems.statement import Statement
from ..registry import register
from .method import Effort, Method


@dataclass(frozen=True)
class Shape:
    """A model's specification where there is time, and where there is none."""

    time: ModelSpec
    steady: ModelSpec

    def of(self, statement: Statement) -> ModelSpec:
        return self.time if statement.has_time else self.steady


HYRESPINN = Shape(
    HyResPINN(
        width=16, kernels=Moving(count=24), deep=Deep(fourier=Fourier(features=24, scale=2.0))
    ),
    HyResPINN(
        kernels=Moving(count=16, kernel=Gaussian(), quantile=0.3),
        deep=Deep(depth=1, fourier=Fourier(features=24, scale=2.0)),
    ),
)
"""Its number of parameters, in a window where there is time, is that of all models."""
SMOKE_BASE = HyResPINN(
    width=12, kernels=Moving(count=16), deep=Deep(fourier=Fourier(features=16, scale=2.0))
)

# Each baseline had four trials of the same length on one problem with time and on one without
# (benchmarks/model_tuning.py); these are the best of them. docs/benchmarks.md has all.
SHAPES: Mapping[str, Shape] = {
    "hyrespinn": HYRESPINN,
    "pinn": Shape(PINN(depth=4), PINN(depth=4)),
    "respinn": Shape(ResPINN(depth=5), ResPINN(depth=3)),
    "expertpinn": Shape(
        ExpertPINN(depth=2, fourier=Fourier(scale=2.0)),
        ExpertPINN(depth=1, fourier=Fourier(scale=2.0)),
    ),
    "stackedpinn": Shape(StackedPINN(levels=1, depth=4), StackedPINN(levels=1, depth=3)),
    "piratenet": Shape(PirateNet(), PirateNet(fourier=Frequencies(scale=3.0))),
}


def sized_as(spec: ModelSpec, base: ModelSpec, statement: Statement) -> ModelSpec:
    """The specification with as many parameters as another; one without a width keeps its size."""
    if spec == base or not isinstance(spec, Sized):
        return spec
    inputs = Lifted().inputs(statement)
    return match_parameters(spec, base.count(inputs), inputs)


def marching_of(statement: Statement) -> Whole | Fixed:
    """Windows that begin with a hundredth of the time, where a random network has the least to learn.

    A window must be short enough for a network of some 1,500 parameters: the shorter the more
    dimensions of space there are, and for equations of the fourth order, which are stiff and often
    chaotic. What is missed early spoils all that comes after, so that early windows have more steps.
    """
    if not statement.has_time:
        return Whole()
    count = 20 if statement.space_order > 3 else 4 if statement.domain.dimension < 3 else 10
    return Fixed(count, growth=1.0, first=count / 100, taper=0.5, start="warm")


@dataclass(frozen=True)
class Steps:
    """How many, and how long a round of points is.

    Of the trust region ``few`` on a third of the points, as long as the network is far from a solution, and
    then ``all``; without time SSBroyden goes on from there, ``after`` steps that cost a gradient each.
    """

    few: int
    all: int
    round: int
    after: int

    def stages(self, points: int, has_time: bool) -> tuple[Optimiser, ...]:
        found: tuple[Optimiser, ...] = (
            TrustRegion(self.few, self.round, points=points // 3, most_rounds=ROUNDS),
            TrustRegion(self.all, self.round, most_rounds=ROUNDS),
        )
        if has_time or not self.after:
            return found
        return *found, SSBroyden(self.after, LONG_ROUND, begin="gauss-newton")


ROUNDS, LONG_ROUND = 10, 1000
"""Rounds of points in the trust region at most; the steps of a round after it."""
SMOKE_STEPS, FAST_STEPS, ACCURATE_STEPS = (
    Steps(10, 10, 10, 0),
    Steps(40, 60, 20, 14_000),
    Steps(60, 240, 30, 40_000),
)


@register("network")
@dataclass(frozen=True)
class Network(Method):
    """A trust region from a random start, in windows of time: the same for every model and problem.

    Args:
        model: The name of a model, or its specification. Those by name have about as many parameters,
            in a shape that was found in the same number of trials.
    """

    model: str | ModelSpec = "hyrespinn"

    def with_model(self, model: str | ModelSpec) -> Network:
        if isinstance(model, str):
            MODELS[model]  # says which there are
        return replace(self, model=model)

    def _model(self, statement: Statement, smoke: bool) -> ModelSpec:
        if isinstance(self.model, ModelSpec):
            return self.model
        if smoke:
            chosen = SMOKE_BASE if self.model == "hyrespinn" else MODELS[self.model]()
            return sized_as(chosen, SMOKE_BASE, statement)
        shape = SHAPES.get(self.model)
        chosen = MODELS[self.model]() if shape is None else shape.of(statement)
        return sized_as(chosen, HYRESPINN.of(statement), statement)

    def discretise(self, statement: Statement, effort: Effort) -> Discretisation:
        smoke = effort.name == "smoke"
        dimension, has_time = statement.domain.dimension, statement.has_time
        surfaces = 4 if dimension > 2 else 1  # where lines would do in a plane
        points = Drawn(6144, 512 if dimension < 3 else 1024, 256 * surfaces)
        steps, target = FAST_STEPS, 1e-13 if has_time else 1e-16
        if smoke:
            points, steps = Drawn(1024, 128, 128 * surfaces), SMOKE_STEPS
        elif effort.scale > 1:
            steps, target = ACCURATE_STEPS, 1e-3 * target
        return Discretisation(
            self._model(statement, smoke),
            points,
            Lifted(),
            Weights(initial=10.0),
            marching_of(statement),
            steps.stages(points.interior, has_time),
            Stopping(relative_loss=target),
        )
