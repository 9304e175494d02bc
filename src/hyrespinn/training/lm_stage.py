"""Levenberg–Marquardt as a stage of training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
from jax import Array

from ..losses.context import Context
from ..losses.jacobian import linearised, weighted_rows
from ..losses.objective import Objective, SampleSet
from ..optim import levenberg_marquardt as lm
from .stages import RoundStage, StageState


class LeastSquares(NamedTuple):
    """A loss, and the rows whose squares it adds up."""

    value: lm.Value
    linearise: lm.Linearise


def least_squares(
    objective: Objective,
    samples: SampleSet,
    context: Context,
    key: Array,
    sketch: int | None,
) -> LeastSquares:
    """The loss on some points as least squares; with ``sketch``, curvature from so many rows."""

    def rows(theta: Array) -> Array:
        return weighted_rows(objective, theta, samples, context)

    def whole(theta: Array, step: Array) -> lm.Local:
        found = linearised(objective, theta, samples, context)
        return lm.exact(found.rows, found.jacobian)

    def sketched(theta: Array, step: Array) -> lm.Local:
        drawn = jax.random.fold_in(key, step)
        found = linearised(objective, theta, samples, context, sketch=sketch, key=drawn)
        vector, pull = jax.vjp(rows, theta)
        # Jv as the derivative of u ↦ Jᵀu: some layers have rules for reverse mode alone.
        gradient, push = jax.vjp(lambda u: pull(u)[0], vector)
        return lm.Local(vector, found.jacobian, gradient, jax.vmap(lambda v: push(v)[0]), True)

    def value(theta: Array) -> Array:
        return objective.value(theta, samples, context)

    return LeastSquares(value, whole if sketch is None else sketched)


@dataclass(frozen=True)
class LmStage(RoundStage):
    """Levenberg–Marquardt with the exact Jacobian, or a sketch of it for large networks.

    A network of more than ``sketch_above`` parameters takes its curvature from ``sketch`` rows,
    new ones every step; gradient, accepted loss and predicted decrease are those of all points.
    """

    rule: lm.Rule
    sketch: int
    sketch_above: int

    @property
    def name(self) -> str:
        return "lm"

    def blank(self, theta: Array) -> lm.LmState:
        return lm.blank(theta, self.rule)

    def advance(
        self, function: LeastSquares, optimiser: lm.LmState, unfinished: Callable[[Any], Array]
    ) -> lm.LmState:
        def step(state: lm.LmState) -> lm.LmState:
            return lm.step(function.linearise, function.value, state, self.rule)

        return jax.lax.while_loop(unfinished, step, optimiser)

    def renewed(self, function: LeastSquares, optimiser: lm.LmState) -> lm.LmState:
        return lm.renewed(function.value, optimiser)

    def forgotten(self, optimiser: lm.LmState) -> lm.LmState:
        return lm.forgotten(optimiser, self.rule)

    def function(self, objective: Objective, state: StageState) -> LeastSquares:
        """The rows themselves, not only their squares."""
        large = state.optimiser.theta.size > self.sketch_above
        key = jax.random.fold_in(state.key, 2)
        sketch = self.sketch if large else None
        return least_squares(objective, state.samples, state.context, key, sketch)
