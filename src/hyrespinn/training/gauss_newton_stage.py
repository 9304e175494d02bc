"""Gauss–Newton as a stage of training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from ..losses.jacobian import linearised
from ..losses.objective import Objective
from ..models.linear_part import linear_mask
from ..optim import gauss_newton as gn
from .stages import RoundStage, StageState


class Rows(NamedTuple):
    """A loss, and the rows whose squares it adds up."""

    value: gn.Value
    linearise: gn.Linearise
    linear: np.ndarray


@dataclass(frozen=True)
class GaussNewtonStage(RoundStage):
    """Gauss–Newton by QR, for models that are linear in their parameters, or nearly so.

    Where a step no longer lowers the loss, the next round of points begins; after ``most_rounds`` of
    them it has converged.
    """

    rule: gn.Rule
    most_rounds: int

    @property
    def name(self) -> str:
        return "gauss-newton"

    @property
    def rounds(self) -> int:
        return self.most_rounds

    def blank(self, theta: Array) -> gn.GaussNewtonState:
        return gn.blank(theta, self.rule)

    def advance(
        self, function: Rows, optimiser: gn.GaussNewtonState, unfinished: Callable[[Any], Array]
    ) -> gn.GaussNewtonState:
        def step(state: gn.GaussNewtonState) -> gn.GaussNewtonState:
            return gn.step(function.linearise, function.value, state, self.rule, function.linear)

        return jax.lax.while_loop(unfinished, step, optimiser)

    def renewed(self, function: Rows, optimiser: gn.GaussNewtonState) -> gn.GaussNewtonState:
        return gn.renewed(function.value, optimiser)

    def forgotten(self, optimiser: gn.GaussNewtonState) -> gn.GaussNewtonState:
        return gn.forgotten(optimiser, self.rule)

    def function(self, objective: Objective, state: StageState) -> Rows:
        """The rows themselves, not only their squares."""

        def linearise(theta: Array) -> tuple[Array, Array]:
            found = linearised(objective, theta, state.samples, state.context)
            return found.rows, found.jacobian

        def value(theta: Array) -> Array:
            return objective.value(theta, state.samples, state.context)

        linear = linear_mask(objective.assemble, state.optimiser.theta)
        return Rows(value, linearise, linear)
