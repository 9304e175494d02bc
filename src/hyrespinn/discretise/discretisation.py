"""What is chosen for a problem: model, points, boundary, weights, windows, optimisers, stops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import jax.numpy as jnp
from jax import Array

from ..errors import UserError
from ..geometry.lattice import Lattice as PointLattice
from ..geometry.sampling import Uniform
from ..losses.balance import Balance
from ..losses.causal import Causality
from ..losses.objective import Objective
from ..losses.terms import Sampling
from ..models import Chain, KernelExpansion, Lattice, Model, ModelSpec
from ..models.inputs import Inputs
from ..optim import GaussNewtonCG, Optimiser, OptimiserState
from ..problems.boundary import BoundaryTreatment, Lifted, Penalty, Reflected
from ..problems.statement import Statement
from ..training.stage import Stage
from ..training.stopping import Stops
from .idle import idle_keys
from .marching import Adaptive, Fixed, Given, Whole
from .points import Drawn, Grid
from .weights import Weights

Assemble = Callable[[Array], Model]


@dataclass(frozen=True)
class Stopping:
    """When to stop before the last step; 0 never stops.

    Args:
        loss: At this loss.
        relative_loss: At this loss, relative to that of a network that is zero everywhere.
        patience: After so many rounds of points without progress.
    """

    loss: float = 0.0
    relative_loss: float = 0.0
    patience: int = 0

    def stops(self, max_seconds: float | None) -> Stops:
        return Stops(max_seconds, self.loss, self.relative_loss, self.patience)


@dataclass(frozen=True)
class Discretisation:
    """All that a method chooses for a problem, and all that ``--set`` can change.

    Args:
        model: The network, or kernel expansion.
        points: Where equation and conditions are asked for.
        boundary: How conditions on the boundary are treated.
        weights: The weights of the terms of the loss.
        marching: All of the time at once, or windows of it.
        stages: The optimisers, one after the other.
        stopping: When to stop before their last step.
        initial_fit: The model's last layer by least squares before training: to the initial
            condition, to the equation, or not at all.
        in_turn: Whether the networks of a chain are trained one after the other.
    """

    model: ModelSpec
    points: Drawn | Grid
    boundary: Penalty | Lifted | Reflected
    weights: Weights
    marching: Whole | Fixed | Given | Adaptive
    stages: tuple[Optimiser, ...]
    stopping: Stopping = Stopping()
    initial_fit: Literal["none", "initial", "equation"] = "none"
    in_turn: bool = False

    @property
    def steps(self) -> int:
        """The steps of all stages."""
        return sum(stage.steps for stage in self.stages)

    def check(self, statement: Statement) -> None:
        """Refuse what does not go together; every such rule is here."""
        reason = next(self._obstacles(statement), None)
        if reason is not None:
            raise UserError(reason)

    def _obstacles(self, statement: Statement) -> Iterator[str]:
        if not self.stages:
            yield "There is no optimiser; name at least one in stages."
        yield from self._lattice_obstacles()
        yield from self._time_obstacles(statement)
        if self.weights.rebalance_every and not any(s.fresh_points for s in self.stages):
            yield (
                "Weights follow the training with optimisers on fresh points alone, such as adam; put "
                "one among the stages, or set weights.balance=none and a single causal tolerance."
            )
        if self.in_turn and self.marching.start == "continued":
            yield (
                "Windows that are continued go on with the last stage alone, which with in_turn "
                "trains one network of the chain; let windows begin 'warm' or 'new'."
            )

    def _lattice_obstacles(self) -> Iterator[str]:
        model, on_grid = self.model, isinstance(self.points, Grid)
        on_lattice = isinstance(model, KernelExpansion) and isinstance(model.kernels, Lattice)
        if on_grid and not on_lattice:
            yield "Points on a grid are for kernels on a lattice; take points=drawn for this model."
        if any(isinstance(s, GaussNewtonCG) for s in self.stages) and not on_grid:
            yield (
                "gauss-newton-cg needs kernels on a lattice and points on a grid; take gauss-newton."
            )
        if on_grid and (self.weights.causal is not None or isinstance(self.marching, Adaptive)):
            yield (
                "Causal weights and adaptive windows need points that are drawn anew; points on a grid "
                "are always the same."
            )

    def _time_obstacles(self, statement: Statement) -> Iterator[str]:
        if statement.has_time:
            return
        name = statement.problem.name
        if not isinstance(self.marching, Whole):
            yield f"{name} has no time to be cut into windows; take marching=whole."
        if self.initial_fit == "initial":
            yield (
                f"initial_fit=initial needs an initial condition, and {name} has no time; take "
                "equation."
            )
        if self.weights.causal is not None:
            yield f"Causal weights go by time, and {name} has none; set weights.causal=none."

    def idle(self, statement: Statement) -> dict[str, str]:
        """The keys that would change nothing for this problem, each with the reason."""
        return idle_keys(
            statement, self.boundary, self.model, self.points, self.weights, self.marching,
            self.stages,
        )  # fmt: skip

    def inputs(self, statement: Statement) -> Inputs:
        """What a network must know of the problem."""
        return self.boundary.inputs(statement)

    @property
    def _drawn(self) -> Drawn:
        """How points that are not on a grid are drawn."""
        return self.points if isinstance(self.points, Drawn) else Drawn(adaptive=None)

    def make_stages(self, model: Model) -> list[Stage]:
        """The stages of training; a chain that is trained in turn has them for each network, with an
        equal share of the steps."""
        every = self.weights.rebalance_every
        stages = [Stage(optimiser, self._drawn.adaptivity, every) for optimiser in self.stages]
        if not self.in_turn:
            return stages
        if not isinstance(model, Chain):
            raise UserError(
                "in_turn is for a model that is a chain of networks, such as stackedpinn; this one is "
                "trained together."
            )
        shared = [stage for stage in stages if stage.steps >= model.parts]
        if not shared:
            raise UserError(
                f"in_turn shares the steps of each stage among {model.parts} networks, and no stage has "
                "as many; give one of them more."
            )
        return [
            replace(stage, optimiser=_shared(stage.optimiser, model.parts), part=part)
            for part in range(1, model.parts + 1)
            for stage in shared
        ]

    def pose(
        self, statement: Statement, assemble: Assemble, precision: str
    ) -> tuple[Objective, Objective]:
        """What is trained, and what errors are measured of: the problem as it was stated.

        Points on a grid cover the image behind reflecting walls too, and train the network by
        itself, which is then odd or even as it should be.
        """
        if not isinstance(self.points, Grid):
            both = self._posed(statement, self.boundary, assemble, precision)
            return both, both
        doubled, boundary = self.boundary.on_lattice(statement)
        periodic = boundary.inputs(doubled).periodic
        lattice = PointLattice(doubled.domain, self.points.counts, periodic)
        trained = self._posed(doubled, boundary, assemble, precision, lattice)
        if doubled is statement:
            return trained, trained
        return trained, self._posed(statement, self.boundary, assemble, precision)

    def pose_afresh(self, statement: Statement, assemble: Assemble, precision: str) -> Objective:
        """What is trained, at uniform points."""
        boundary: BoundaryTreatment = self.boundary
        if isinstance(self.points, Grid):
            statement, boundary = self.boundary.on_lattice(statement)
        elsewhere = replace(self, points=replace(self._drawn, sampler=Uniform()))
        return elsewhere._posed(statement, boundary, assemble, precision)

    def _posed(
        self,
        statement: Statement,
        boundary: BoundaryTreatment,
        assemble: Assemble,
        precision: str,
        lattice: PointLattice | None = None,
    ) -> Objective:
        points, weights = self._drawn, self.weights
        return Objective(
            statement,
            assemble,
            boundary,
            sampling=Sampling(points.counts, points.sampler, jnp.dtype(precision), lattice),
            weights=weights.terms,
            balance=Balance() if weights.balance is None else weights.balance.balance,
            causality=Causality() if weights.causal is None else weights.causal.causality,
        )


def _shared(optimiser: Optimiser[OptimiserState], parts: int) -> Optimiser[OptimiserState]:
    """The optimiser with an equal share of its steps."""
    return replace(optimiser, steps=optimiser.steps // parts)
