"""The method ``network``: the paper's hybrid network, or a baseline, with everything trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..discretise import (
    Discretisation,
    Drawn,
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
from ..optim import Adam, Optimiser, SSBroyden
from ..problems.statement import Statement
from ..registry import register
from .method import Effort, Method

BASE = HyResPINN(kernels=Moving(count=12), deep=Deep(fourier=Fourier(features=24, scale=2.0)))
"""Its number of parameters is that of all models."""
SMOKE_BASE = HyResPINN(
    width=16, kernels=Moving(count=16), deep=Deep(fourier=Fourier(features=16, scale=2.0))
)


@dataclass(frozen=True)
class Shape:
    """A model's specification where there is time, and where there is none."""

    time: ModelSpec
    steady: ModelSpec

    def of(self, statement: Statement) -> ModelSpec:
        return self.time if statement.has_time else self.steady


# Every model had four trials of the same length on one problem with time and on one without
# (benchmarks/model_tuning.py); these are the best of them. docs/benchmarks.md has all.
SHAPES: Mapping[str, Shape] = {
    # With time one more layer in place of the Fourier features was as good within a tenth; but
    # Fourier features were better on Allen–Cahn (periodic), with both seeds (docs/training.md).
    "hyrespinn": Shape(
        BASE,
        replace(
            BASE,
            kernels=Moving(count=16, kernel=Gaussian(), quantile=0.3),
            deep=Deep(depth=1, fourier=Fourier(features=24, scale=2.0)),
        ),
    ),
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


@register("network")
@dataclass(frozen=True)
class Network(Method):
    """Adam, then SSBroyden, on all of the time: the same for every model and problem.

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
        if self.model in SHAPES:
            return sized_as(SHAPES[self.model].of(statement), BASE, statement)
        return sized_as(MODELS[self.model](), BASE, statement)

    def discretise(self, statement: Statement, effort: Effort) -> Discretisation:
        smoke = effort.name == "smoke"
        surfaces = 4 if statement.domain.dimension > 2 else 1  # where lines would do in a plane
        points = Drawn(1024 if smoke else 4096, 256 * surfaces, 256 * surfaces)
        stages: tuple[Optimiser, ...] = (Adam(steps=1000), SSBroyden(13_000, round_growth=0.05))
        target = 1e-13
        if smoke:
            stages = Adam(steps=300), SSBroyden(150, round_steps=75, round_growth=0.05)
        elif effort.scale > 1:
            stages = Adam(steps=1000), SSBroyden(26_000, round_growth=0.05)
            points, target = replace(points, interior=6144), 1e-16
        return Discretisation(
            self._model(statement, smoke),
            points,
            Lifted(),
            Weights(initial=10.0),
            Whole(),
            stages,
            Stopping(relative_loss=target),
        )
