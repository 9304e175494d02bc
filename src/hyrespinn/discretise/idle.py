"""Which settings have no effect, and why: they are not shown, and refused where they are set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ..geometry.sampling import PoissonDisk
from ..models import KernelExpansion, ModelSpec
from ..optim import LevenbergMarquardt, Optimiser, OptimiserState, TrustRegion
from ..problems.boundary import BoundaryTreatment, Lifted, Penalty
from ..problems.statement import Statement
from .marching import Fixed, Marching
from .points import Drawn, Grid
from .weights import Weights

Stages = Sequence[Optimiser[OptimiserState]]
Reasons = Iterator[tuple[str, str]]

OF_TIME = ("points.initial", "weights.initial", "weights.causal", "marching",
           "model.kernels.time_width", "model.kernels.time_levels")  # fmt: skip
OF_BOUNDARY = ("points.boundary", "weights.boundary", "weights.per_order")


def idle_keys(
    statement: Statement,
    boundary: BoundaryTreatment,
    model: ModelSpec,
    points: Drawn | Grid,
    weights: Weights,
    marching: Marching,
    stages: Stages,
) -> dict[str, str]:
    """The keys that would change nothing, each with the reason; the first reason counts."""
    found: dict[str, str] = {}
    for reasons in (
        _of_the_statement(statement),
        _of_the_boundary(statement, boundary),
        _of_the_model(model, any(boundary.inputs(statement).periodic)),
        _of_the_points(points, stages),
        _of_the_weights(weights),
        _of_the_marching(marching),
        _of_the_stages(stages, model, boundary, statement),
    ):
        for key, why in reasons:
            found.setdefault(key, why)
    return found


def _of_the_statement(statement: Statement) -> Reasons:
    if not statement.has_time:
        for key in OF_TIME:
            yield key, f"{statement.problem.name} has no time"


def _of_the_boundary(statement: Statement, boundary: BoundaryTreatment) -> Reasons:
    left = [
        statement.conditions[place]
        for place in boundary.impose(statement).left
        if statement.conditions[place].start(statement) is None
    ]
    if not left:
        for key in OF_BOUNDARY:
            yield key, "no condition on the boundary is left to the loss"
    orders = [order for c in left if (order := c.order(statement)) is not None]
    if all(statement.space_order - order <= 1 for order in orders):
        yield "weights.per_order", "all conditions are one order below the equation"
    if not statement.reflections and not _builds_in(statement):
        yield "boundary", "there is nothing that could be built into the solution"


def _builds_in(statement: Statement) -> bool:
    """Whether it matters that conditions are built in."""
    one, other = Lifted(), Penalty()
    return (
        one.impose(statement).left != other.impose(statement).left
        or one.inputs(statement).periodic != other.inputs(statement).periodic
    )


def _of_the_model(model: ModelSpec, is_periodic: bool) -> Reasons:
    if not model.is_chain:
        yield "in_turn", "the model is one network, and no chain of them"
    if not is_periodic:
        yield "model.harmonics", "no coordinate is periodic"
    if isinstance(model, KernelExpansion) and not model.kernels.time_width:
        yield "model.kernels.time_levels", "kernels are as wide along time as along space"


def _of_the_points(points: Drawn | Grid, stages: Stages) -> Reasons:
    if not isinstance(points, Drawn):
        return
    if isinstance(points.sampler, PoissonDisk):
        yield "points.adaptive", "the sampler has one fixed set of points"
    if all(stage.fresh_points for stage in stages):
        yield "points.adaptive", "every step has new points"


def _of_the_weights(weights: Weights) -> Reasons:
    causal = weights.causal
    if causal is not None and weights.balance is not None:
        yield "weights.causal.every", "weights.balance.every says when weights are updated"
    if causal is not None and len(causal.tolerances) == 1:
        yield "weights.causal.every", "there is one causal tolerance"


def _of_the_marching(marching: Marching) -> Reasons:
    if isinstance(marching, Fixed) and not marching.growth:
        yield "marching.first", "without marching.growth all windows are equal"


def _of_the_stages(
    stages: Stages, model: ModelSpec, boundary: BoundaryTreatment, statement: Statement
) -> Reasons:
    seen: Counter[str] = Counter()
    for stage in stages:
        if isinstance(stage, LevenbergMarquardt):
            kind, key, above = "lm", "sketch", stage.sketch_above
        elif isinstance(stage, TrustRegion):
            kind, key, above = "trust-region", "columns", stage.columns_above
        else:
            continue
        seen[kind] += 1  # a second one of a kind is addressed by its number
        address = kind if seen[kind] == 1 else f"{kind}-{seen[kind]}"
        count = model.count(boundary.inputs(statement))
        if count <= above:
            why = f"the model has {count} parameters, and sketches begin above {above}"
            yield f"stages.{address}.{key}", why
