"""Gauss–Newton with conjugate gradients as a stage of training, for kernels on a lattice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ..losses.jacobian import weighted_rows
from ..losses.objective import Objective
from ..optim import gauss_newton_cg as gn
from .stages import RoundStage, StageState
from .symbol import check_lattice, fourier_preconditioner


class LeastSquares(NamedTuple):
    """The rows whose squares are the loss, what makes their Jacobian easy, and when it is enough."""

    rows: gn.Rows
    precondition: Callable[[], gn.Preconditioner]
    enough: Array


@dataclass(frozen=True)
class GaussNewtonCgStage(RoundStage):
    """Gauss–Newton with conjugate gradients, on points that stay the same; it has one round."""

    rule: gn.Rule

    @property
    def name(self) -> str:
        return "gauss-newton-cg"

    @property
    def rounds(self) -> int:
        return 1

    def blank(self, theta: Array) -> gn.GaussNewtonCgState:
        return gn.blank(theta)

    def check(self, objective: Objective, theta: Array) -> None:
        check_lattice(objective, theta)

    def advance(
        self,
        function: LeastSquares,
        optimiser: gn.GaussNewtonCgState,
        unfinished: Callable[[Any], Array],
    ) -> gn.GaussNewtonCgState:
        precondition = function.precondition()

        def step(state: gn.GaussNewtonCgState) -> gn.GaussNewtonCgState:
            return gn.step(function.rows, precondition, state, self.rule, function.enough)

        return jax.lax.while_loop(unfinished, step, optimiser)

    def renewed(
        self, function: LeastSquares, optimiser: gn.GaussNewtonCgState
    ) -> gn.GaussNewtonCgState:
        return gn.renewed(function.rows, optimiser)

    def forgotten(self, optimiser: gn.GaussNewtonCgState) -> gn.GaussNewtonCgState:
        return optimiser._replace(failed=jnp.asarray(False))

    def function(self, objective: Objective, state: StageState) -> LeastSquares:
        theta, samples, context = state.optimiser.theta, state.samples, state.context

        def rows(theta: Array) -> Array:
            return weighted_rows(objective, theta, samples, context)

        zero = rows(jnp.zeros_like(theta))
        return LeastSquares(
            rows,
            lambda: fourier_preconditioner(objective, theta, samples, context),
            self.rule.target * jnp.vdot(zero, zero),
        )
