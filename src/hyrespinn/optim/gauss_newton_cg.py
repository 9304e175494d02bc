"""Gauss–Newton without a matrix, for networks with tens of thousands of parameters.

Each step solves ``min ‖r + J P z‖`` for ``δ = P z`` by conjugate gradients, which need nothing but
products with ``J`` and ``Jᵀ``. What makes them few is the preconditioner ``P``: for columns of
``J P`` that are nearly orthonormal some tens of them do, however many parameters there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from ..errors import UserError
from .conjugate_gradients import least_squares
from .optimiser import Optimiser, OptimiserState, Preconditioner, Product, System

Rows = Callable[[Array], Array]
"""Parameters to the vector whose squared norm is the loss."""


@dataclass(frozen=True)
class Rule:
    """How far conjugate gradients go (see :func:`least_squares`), and when the search ends.

    A step is tried with the lengths ``shares``, until one gives a lower loss. The search ends where
    none does, where the linear model promises, or a whole step brings, a decrease of less than the
    share ``progress`` of the loss (rounding is all that is left then), or where the loss is at most
    ``target``, relative to that of a network that is zero.
    """

    tolerance: float = 0.03
    iterations: int = 200
    shares: tuple[float, ...] = (1.0, 0.5, 0.25, 0.1, 0.03)
    progress: float = 0.5
    target: float = 1e-18


class GaussNewtonCgState(NamedTuple):
    theta: Array
    value: Array
    steps: Array
    evaluations: Array  # of the rows or of a product with their Jacobian
    failed: Array  # the search has ended
    origin: Array  # the parameters of which the preconditioner is


def blank(theta: Float[Array, " n"]) -> GaussNewtonCgState:
    """The state at ``theta`` with nothing evaluated yet."""
    zero, count = jnp.zeros((), theta.dtype), jnp.asarray(0)
    return GaussNewtonCgState(theta, zero, count, count, jnp.asarray(False), theta)


def renewed(rows: Rows, state: GaussNewtonCgState) -> GaussNewtonCgState:
    """The same point under a loss that may be new."""
    return state._replace(
        value=_squared(rows(state.theta)),
        evaluations=state.evaluations + 1,
        failed=jnp.asarray(False),
    )


def linear_maps(rows: Rows, theta: Float[Array, " n"]) -> tuple[Array, Product, Product]:
    """The rows at a point, and the products with their Jacobian and with its transpose."""
    vector, pull = jax.vjp(rows, theta)

    def transposed(cotangent: Array) -> Array:
        return pull(cotangent)[0]

    # J v as the transpose of u ↦ Jᵀu: some layers have rules for reverse mode alone.
    push = jax.linear_transpose(transposed, vector)
    return vector, lambda tangent: push(tangent)[0], transposed


def step(
    rows: Rows, precondition: Preconditioner, state: GaussNewtonCgState, rule: Rule, enough: Array
) -> GaussNewtonCgState:
    """One linearisation and one step; ``enough`` is the loss at which the search ends."""
    vector, times, transposed = linear_maps(rows, state.theta)
    found = least_squares(
        lambda z: times(precondition.times(z)),
        lambda r: precondition.transposed(transposed(r)),
        -vector,
        rule.tolerance,
        rule.iterations,
    )
    direction = precondition.times(found.solution)
    shares = jnp.asarray(rule.shares, direction.dtype)

    def higher(trial: tuple[Array, Array]) -> Array:
        count, reached = trial
        return (count < len(rule.shares)) & ~(reached < state.value)

    def shorter(trial: tuple[Array, Array]) -> tuple[Array, Array]:
        count, _ = trial
        return count + 1, _squared(rows(state.theta + shares[count] * direction))

    nothing = jnp.asarray(0), jnp.asarray(jnp.inf, state.value.dtype)
    count, reached = jax.lax.while_loop(higher, shorter, nothing)
    lower = reached < state.value
    promised = state.value - _squared(found.residual)
    left = (1 - rule.progress) * state.value
    theta = jnp.where(lower, state.theta + shares[count - 1] * direction, state.theta)
    # A direction that is not finite is a failure of its own, not an end.
    same = jnp.where(jnp.all(jnp.isfinite(direction)), state.value, jnp.nan)
    return GaussNewtonCgState(
        theta,
        jnp.where(lower, reached, same),
        state.steps + 1,
        state.evaluations + 2 * found.iterations + count,
        ~lower
        | (promised < rule.progress * state.value)
        | ((count == 1) & (reached > left))
        | (reached <= enough),
        state.origin,
    )


def _squared(vector: Array) -> Array:
    return jnp.vdot(vector, vector)


@dataclass(frozen=True)
class GaussNewtonCG(Optimiser[GaussNewtonCgState]):
    """Gauss–Newton with preconditioned conjugate gradients, on points that stay the same.

    Args:
        tolerance: Conjugate gradients end where the gradient is this share of what it was at
            first.
        iterations: The most of them in a step.
        target: The search ends at this loss, relative to that of a model that is zero everywhere.
    """

    steps: int = 12
    tolerance: float = 0.03
    iterations: int = 200
    target: float = 1e-18

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.tolerance < 1:
            raise UserError(f"tolerance is a share between 0 and 1, not {self.tolerance}.")
        if self.iterations < 1 or self.target < 0:
            raise UserError(
                "GaussNewtonCG needs at least one iteration and no negative target; they are "
                f"{self.iterations} and {self.target}."
            )

    @property
    def look_every(self) -> int:
        return self.steps  # all at once

    @property
    def rounds(self) -> int:
        return 1

    @property
    def when_failed(self) -> str:
        share = f"another step would take off less than {self.rule.progress:.0%} of the loss"
        return f"{share}, or it is as low as {self.target:.0e} times that of zero"

    @property
    def rule(self) -> Rule:
        return Rule(self.tolerance, self.iterations, target=self.target)

    def check(self, system: System, theta: Array) -> None:
        if theta.dtype != jnp.float64:
            raise UserError(
                "GaussNewtonCG needs double precision: in single precision rounding hides what "
                "nearly dependent kernels make together. Use --precision float64."
            )
        system.check_preconditioner(theta)

    def init(self, system: System, theta: Array) -> GaussNewtonCgState:
        return blank(theta)

    def step(self, system: System, state: GaussNewtonCgState) -> GaussNewtonCgState:
        last = state.steps + 1
        return self.advance(system, state, lambda s: s.steps < last)

    def advance(
        self,
        system: System,
        state: GaussNewtonCgState,
        unfinished: Callable[[OptimiserState], Array],
    ) -> GaussNewtonCgState:
        # The preconditioner of the first step of a chunk serves them all, however they are cut.
        is_first = state.steps % self.look_every == 0
        state = state._replace(origin=jnp.where(is_first, state.theta, state.origin))
        precondition = system.precondition(state.origin)
        enough = self.target * _squared(system.rows(jnp.zeros_like(state.theta)))

        def following(state: GaussNewtonCgState) -> GaussNewtonCgState:
            return step(system.rows, precondition, state, self.rule, enough)

        return jax.lax.while_loop(unfinished, following, state)

    def renew(self, system: System, state: GaussNewtonCgState) -> GaussNewtonCgState:
        return renewed(system.rows, state)

    def forget(self, state: GaussNewtonCgState) -> GaussNewtonCgState:
        return state._replace(failed=jnp.asarray(False))
