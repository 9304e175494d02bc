"""The method ``paper``: sizes, schedules, points, windows and weights of the paper's experiments.

What the paper gives is taken from it. Where it is silent, the values are those with which the
experiments that it says it follows were published (the expert's guide and PirateNet); where both
are silent, ``docs/differences.md`` says what was chosen. Each line changes one base.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeVar

from ..discretise import (
    Causal,
    Discretisation,
    Drawn,
    Fixed,
    GradientNorm,
    Lifted,
    Weights,
    Whole,
)
from ..errors import UserError
from ..geometry.sampling import PoissonDisk, Uniform
from ..models import (
    PINN,
    Deep,
    ExpertPINN,
    Fourier,
    Gates,
    HyResPINN,
    ModelSpec,
    Moving,
    PirateNet,
    ResPINN,
    SigmoidGate,
    StackedPINN,
    match_parameters,
)
from ..models.spec import Layered
from ..optim import Adam
from ..problems.statement import Statement
from ..registry import register
from .method import Effort, Method


@dataclass(frozen=True)
class Training:
    """How a problem is trained."""

    adam: Adam
    points: Drawn
    weights: Weights
    marching: Whole | Fixed = Whole()

    def on(
        self, points: int, *, initial: int | None = None, boundary: int | None = None
    ) -> Training:
        """The same with a batch of so many points, perhaps more of them where conditions hold."""
        drawn = replace(
            self.points,
            interior=points,
            initial=initial or self.points.initial,
            boundary=boundary or self.points.boundary,
        )
        return replace(self, adam=replace(self.adam, batch=points), points=drawn)

    def weighted(self, causal: Causal | None = None, initial: float | None = None) -> Training:
        """The same with other causal weights, or another weight of the initial conditions."""
        weights = self.weights
        return replace(
            self,
            weights=replace(
                weights,
                causal=causal or weights.causal,
                initial=weights.initial if initial is None else initial,
            ),
        )

    def lasting(self, steps: int, decay_steps: int) -> Training:
        return replace(self, adam=replace(self.adam, steps=steps, decay_steps=decay_steps))

    def shortened(self, share: float) -> Training:
        """A share of the steps, and all that is counted in steps in proportion."""
        if share == 1:
            return self

        def fewer(steps: int, least: int = 1) -> int:
            return max(least, round(share * steps))

        adam, weights = self.adam, self.weights
        balance, causal = weights.balance, weights.causal
        return replace(
            self,
            adam=replace(
                adam,
                steps=fewer(adam.steps),
                warmup=fewer(adam.warmup),
                decay_steps=fewer(adam.decay_steps),
            ),
            weights=replace(
                weights,
                balance=balance and replace(balance, every=fewer(balance.every, 10)),
                causal=causal and replace(causal, every=fewer(causal.every, 10)),
            ),
        )


# Section 5: Adam, the rate rising to 1e-3 over 5,000 steps, then × 0.9 every so often; weights by
# gradient norms; causal weights in time; 1,024 fresh points a step for Allen–Cahn (Dirichlet).
BASE = Training(
    Adam(100_000, batch=1024, rate=1e-3, warmup=5000, decay_steps=2000),
    Drawn(1024, 512, sampler=Uniform(), adaptive=None),
    Weights(initial=1.0, boundary=1.0, balance=GradientNorm(), causal=Causal()),
)
KDV = BASE.on(4096).lasting(200_000, 2000).weighted(Causal(16, (0.1,)))
STEADY = replace(BASE, weights=replace(BASE.weights, causal=None))
DARCY = replace(STEADY, points=replace(BASE.points, sampler=PoissonDisk())).on(4096, boundary=512)
THICK_DARCY = DARCY.on(8192, boundary=2048)

TRAINING: Mapping[str, Training] = {
    "allen-cahn-dirichlet": BASE,
    "allen-cahn-periodic": BASE.on(8192).lasting(300_000, 5000),
    "korteweg-de-vries": KDV,
    "kuramoto-sivashinsky": replace(KDV, marching=Fixed(10, overshoot=0.04)).weighted(
        initial=1000.0
    ),
    "grey-scott": replace(
        KDV.on(4096, initial=200**2).lasting(100_000, 2000), marching=Fixed(10, overshoot=0.1)
    ).weighted(Causal()),
    "darcy-2d-dirichlet": DARCY,
    "darcy-2d-neumann": DARCY,
    "darcy-3d-dirichlet": THICK_DARCY,
    "darcy-3d-neumann": THICK_DARCY,
    "darcy-five-strip": DARCY,
}
"""Training by problem; any other problem is trained as ``BASE`` says, or ``STEADY`` without time."""


@dataclass(frozen=True)
class Sizes:
    """Settings of a group of problems by model, and the parameter counts of the paper's tables."""

    settings: dict[str, ModelSpec]
    counts: dict[str, int]


# With the two encodings of a modified MLP in the deep branch, one block, 64 neurons and 64 centres
# have 17,667 parameters: the count that the paper prints.
HYRES = HyResPINN(
    width=64,
    kernels=Moving(count=64, quantile=0.5),
    deep=Deep(depth=3, gated=True),
    gates=Gates(SigmoidGate(tau=0.1), penalty=1e-4),
)
PENALTY = 1e-4  # of a StackedPINN's α⁴, as for the gates of a HyResPINN

SMALL = Sizes(
    {
        "hyrespinn": HYRES,
        "pinn": PINN(width=64, depth=5),
        "respinn": ResPINN(width=64, depth=5),
        "expertpinn": ExpertPINN(width=58, depth=3),
        "stackedpinn": StackedPINN(width=52, depth=3, levels=2, penalty=PENALTY),
        "piratenet": PirateNet(width=58, blocks=1),
    },
    {"hyrespinn": 17_667, "pinn": 17_025, "respinn": 17_157, "expertpinn": 17_793,
     "stackedpinn": 17_359, "piratenet": 17_926},
)  # fmt: skip

# The counts of the two tables fit 15 layers of 32 neurons (Darcy), and 11 layers of 256 neurons
# behind 256 Fourier features (the large problems); the other depths are comparable.
RING = Sizes(
    {
        "hyrespinn": replace(HYRES, blocks=3),
        "pinn": PINN(width=32, depth=15),
        "respinn": ResPINN(width=32, depth=13),
        "expertpinn": ExpertPINN(width=36, depth=9),
        "stackedpinn": StackedPINN(width=40, depth=3, levels=2, penalty=PENALTY),
        "piratenet": PirateNet(width=36, blocks=3),
    },
    {"hyrespinn": 14_248, "pinn": 14_913, "respinn": 12_737, "expertpinn": 15_298,
     "stackedpinn": 13_642, "piratenet": 15_302},
)  # fmt: skip
THICK_RING = Sizes(
    RING.settings,
    {"hyrespinn": 14_344, "pinn": 14_945, "respinn": 12_753, "expertpinn": 15_266,
     "stackedpinn": 13_834, "piratenet": 15_270},
)  # fmt: skip
LARGE = Sizes(
    {
        "hyrespinn": replace(HYRES, blocks=3, deep=Deep(depth=3, gated=True, fourier=Fourier())),
        "pinn": PINN(width=256, depth=11, fourier=Fourier()),
        "respinn": ResPINN(width=256, depth=12, fourier=Fourier()),
        "expertpinn": ExpertPINN(width=256, depth=9),
        "stackedpinn": StackedPINN(
            width=256, depth=4, levels=2, fourier=Fourier(), penalty=PENALTY
        ),
        "piratenet": PirateNet(width=256, blocks=3),
    },
    {"hyrespinn": 759_686, "pinn": 724_353, "respinn": 790_145, "expertpinn": 727_170,
     "stackedpinn": 793_738, "piratenet": 727_171},
)  # fmt: skip

SIZES: dict[str, Sizes] = {
    "allen-cahn-dirichlet": SMALL,
    "darcy-2d-dirichlet": RING,
    "darcy-2d-neumann": RING,
    "darcy-five-strip": RING,
    "darcy-3d-dirichlet": THICK_RING,
    "darcy-3d-neumann": THICK_RING,
    "allen-cahn-periodic": LARGE,
    "korteweg-de-vries": LARGE,
    "kuramoto-sivashinsky": LARGE,
    "grey-scott": LARGE,
}
"""Sizes by problem; any other problem is small."""

FOURIER_SCALE = {"allen-cahn-periodic": 2.0}
FACTOR_MEAN = {"kuramoto-sivashinsky": 0.5, "grey-scott": 0.5}

SMALL_COUNT = 20_000
"""Parameters of all models, where the sizes are not the paper's own."""


def paper_model(model: str, statement: Statement, *, own_size: bool) -> ModelSpec:
    """The specification of a model for a problem, with the paper's number of parameters, or at most
    ``SMALL_COUNT`` of them."""
    name = statement.problem.name
    sizes = SIZES.get(name, SMALL)
    if model not in sizes.settings:
        raise UserError(
            f"The paper has no {model}; the method paper knows {', '.join(sizes.settings)}. Take "
            "--method network for a model of your own."
        )
    scaled = _with_scales(
        sizes.settings[model], FOURIER_SCALE.get(name, 1.0), FACTOR_MEAN.get(name, 1.0)
    )
    count = sizes.counts[model] if own_size else min(sizes.counts[model], SMALL_COUNT)
    return match_parameters(scaled, count, Lifted().inputs(statement))


def _with_scales(spec: ModelSpec, scale: float, mean: float) -> ModelSpec:
    """With these scales of the Fourier features and of the factorised weights, where there are any."""
    if isinstance(spec, HyResPINN):
        return replace(spec, deep=spec.deep and _scaled(spec.deep, scale, mean))
    return _scaled(spec, scale, mean) if isinstance(spec, Layered) else spec


L = TypeVar("L", Deep, Layered)


def _scaled(part: L, scale: float, mean: float) -> L:
    if part.fourier:
        part = replace(part, fourier=replace(part.fourier, scale=scale))
    if part.factorisation:
        part = replace(part, factorisation=replace(part.factorisation, mean=mean))
    return part


def training_of(model: str, statement: Statement) -> Training:
    """The training of a model on a problem."""
    name = statement.problem.name
    chosen = TRAINING.get(name, BASE if statement.has_time else STEADY)
    if name == "kuramoto-sivashinsky" and model == "expertpinn":
        return chosen.weighted(Causal(16))
    return chosen


def initial_fit(model: str, statement: Statement) -> Literal["none", "initial", "equation"]:
    """PirateNet's last layer is fitted before training, and so is HyResPINN's on the problems on
    which it follows PirateNet's set-up."""
    large = SIZES.get(statement.problem.name) is LARGE
    if model != "piratenet" and not (model == "hyrespinn" and large):
        return "none"
    return "initial" if statement.has_time else "equation"


@register("paper")
@dataclass(frozen=True)
class Paper(Method):
    """The paper's recipe: Adam on fresh points, balanced and causal weights, windows where it has them.

    The preset ``full`` has the paper's own length and sizes, for a machine that has the hours or days;
    ``small`` a tenth of the steps and networks of at most 20,000 parameters; the others are shorter
    still, to look at.

    Args:
        model: The name of the model, or its specification.
    """

    model: str | ModelSpec = "hyrespinn"

    efforts: ClassVar[Mapping[str, Effort]] = {
        "smoke": Effort("smoke", 0.001),
        "fast": Effort("fast", 0.01),
        "accurate": Effort("accurate", 0.05),
        "small": Effort("small", 0.1),
        "full": Effort("full", 1.0),
    }

    def with_model(self, model: str | ModelSpec) -> Paper:
        return replace(self, model=model)

    def discretise(self, statement: Statement, effort: Effort) -> Discretisation:
        model = self.model
        name = model if isinstance(model, str) else "hyrespinn"
        training = training_of(name, statement).shortened(effort.scale)
        own_size = effort.scale == 1
        return Discretisation(
            paper_model(model, statement, own_size=own_size) if isinstance(model, str) else model,
            training.points,
            Lifted(),
            training.weights,
            training.marching,
            (training.adam,),
            initial_fit=initial_fit(name, statement) if isinstance(model, str) else "none",
        )
