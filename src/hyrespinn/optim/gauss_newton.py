"""Gauss–Newton for a loss that is the squared norm of a vector of rows, by orthogonal factors.

Each step solves ``min ‖r + Jδ‖² + μ²‖Dδ‖²`` with ``D`` the lengths of the columns of ``J``, by QR of
``[J D⁻¹, r]``: the normal equations would lose half of the digits, and with them the small
combinations of nearly dependent features that make a fine solution. The damping ``μ`` is tiny for
a network that is nearly linear in its parameters. Where a step gives no lower loss, ``μ`` grows, and
the factor of the smaller ``μ`` serves the larger one: only its square is factorised again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import solve_triangular
from jaxtyping import Bool, Float

from ..errors import UserError
from .optimiser import RoundOptimiser, System

Linearise = Callable[[Array], tuple[Array, Array]]
"""Parameters to the rows there and their Jacobian."""
Value = Callable[[Array], Array]


@dataclass(frozen=True)
class Rule:
    """How the damping is chosen, relative to columns of length one.

    A step is tried with the lengths ``shares``, from the whole of it on. One that gives a lower loss
    divides the damping by ``easier`` where the decrease was at least ``good`` times the predicted
    one; where no length gives one, the damping is multiplied by ``harder``, up to ``tries`` times.
    The search ends where the linear model itself promises a decrease of less than the share
    ``progress`` of the loss, however far the step went. Parameters in which the rows
    are far from linear have at least the damping ``stiffness``, relative to the longest column: they
    move little, and those that hardly matter not at all.
    """

    damping: float = 1e-12
    smallest: float = 1e-13
    largest: float = 1e2
    easier: float = 1e3
    harder: float = 1e3
    good: float = 0.5
    shares: tuple[float, ...] = (1.0, 0.3, 0.1)
    tries: int = 6
    progress: float = 0.5
    stiffness: float = 1e-2


class GaussNewtonState(NamedTuple):
    """A point with its loss, and how far the linear model was trusted there."""

    theta: Array
    value: Array
    decrease: Array  # of the value in the last step; 0 where there was none
    damping: Array
    steps: Array
    evaluations: Array
    failed: Array  # the last step gave nothing worth going on for


def blank(theta: Float[Array, " n"], rule: Rule) -> GaussNewtonState:
    """The state at ``theta`` with nothing evaluated yet."""
    zero = jnp.zeros((), theta.dtype)
    damping = jnp.asarray(rule.damping, theta.dtype)
    count = jnp.asarray(0)
    return GaussNewtonState(theta, zero, zero, damping, count, count, jnp.asarray(False))


def renewed(value: Value, state: GaussNewtonState) -> GaussNewtonState:
    """The same point and damping under a loss that may be new."""
    found = value(state.theta)
    return state._replace(
        value=found,
        decrease=jnp.zeros_like(found),
        evaluations=state.evaluations + 1,
        failed=jnp.asarray(False),
    )


def forgotten(state: GaussNewtonState, rule: Rule) -> GaussNewtonState:
    """The same point with a larger damping than any so far."""
    damping = jnp.clip(1e3 * state.damping, 1e-4, rule.largest).astype(state.theta.dtype)
    return state._replace(damping=damping, failed=jnp.asarray(False))


class Triangle(NamedTuple):
    """``RᵀR = AᵀA + μ²I`` and ``Rᵀc = −Aᵀr``, for the scaled Jacobian ``A``."""

    upper: Float[Array, "n n"]
    right: Float[Array, " n"]

    def step(self) -> Float[Array, " n"]:
        return solve_triangular(self.upper, self.right)


def triangle(
    matrix: Float[Array, "m n"], right: Float[Array, " m"], extra: Float[Array, " n"]
) -> Triangle:
    """The factor of ``[A; diag(extra)]``, with the right-hand side ``[b; 0]`` taken along."""
    n = matrix.shape[1]
    below = extra[:, None] * jnp.eye(n, n + 1, dtype=matrix.dtype)
    stacked = jnp.concatenate([jnp.concatenate([matrix, right[:, None]], axis=1), below])
    upper = jnp.linalg.qr(stacked, mode="r")
    return Triangle(upper[:n, :n], upper[:n, n])


class Trial(NamedTuple):
    """What the dampings and step lengths tried so far have given."""

    triangle: Triangle
    damping: Array
    direction: Array
    change: Array
    value: Array
    tries: Array  # of dampings
    evaluations: Array


def step(
    linearise: Linearise,
    value: Value,
    state: GaussNewtonState,
    rule: Rule,
    nearly_linear: Bool[np.ndarray, " n"] | None = None,
) -> GaussNewtonState:
    """One linearisation, and dampings from small to large until one gives a lower loss.

    ``nearly_linear`` says which parameters may move freely, all of them by default.
    """
    rows, jacobian = linearise(state.theta)
    lengths = jnp.linalg.norm(jacobian, axis=0)
    scales = jnp.where(lengths > 0, lengths, 1)
    matrix = jacobian / scales
    stiff = rule.stiffness * jnp.max(scales) / scales
    at_least = (
        jnp.zeros_like(stiff) if nearly_linear is None else jnp.where(nearly_linear, 0, stiff)
    )

    def tried(found: Triangle, damping: Array, tries: Array, evaluations: Array) -> Trial:
        direction = found.step() / scales

        def shorter(turn: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            count, _, _ = turn
            change = jnp.asarray(rule.shares, direction.dtype)[count] * direction
            reached = value(state.theta + change)
            return count + 1, change, jnp.where(jnp.isfinite(reached), reached, jnp.inf)

        def higher(turn: tuple[Array, Array, Array]) -> Array:
            count, _, reached = turn
            return (count < len(rule.shares)) & ~(reached < state.value)

        begin = jnp.asarray(0), direction, jnp.full_like(state.value, jnp.inf)
        count, change, reached = jax.lax.while_loop(higher, shorter, begin)
        return Trial(found, damping, direction, change, reached, tries, evaluations + count)

    def again(trial: Trial) -> Trial:
        damping = rule.harder * trial.damping
        before, after = (jnp.maximum(d, at_least) for d in (trial.damping, damping))
        extra = jnp.sqrt(after**2 - before**2)
        factor = triangle(*trial.triangle, extra)
        return tried(factor, damping, trial.tries + 1, trial.evaluations)

    def hopeful(trial: Trial) -> Array:
        more = (trial.tries < rule.tries) & (trial.damping < rule.largest)
        return ~(trial.value < state.value) & more

    factor = triangle(matrix, -rows, jnp.maximum(state.damping, at_least))
    first = tried(factor, state.damping, jnp.asarray(1), state.evaluations)
    trial = jax.lax.while_loop(hopeful, again, first)
    promised, predicted = (
        state.value - jnp.sum((rows + jacobian @ change) ** 2)
        for change in (trial.direction, trial.change)
    )
    decrease = state.value - trial.value
    lower = decrease > 0
    easier = (trial.tries == 1) & (decrease >= rule.good * predicted)
    damping = jnp.where(easier, trial.damping / rule.easier, trial.damping)
    return GaussNewtonState(
        theta=jnp.where(lower, state.theta + trial.change, state.theta),
        value=jnp.where(lower, trial.value, state.value),
        decrease=jnp.where(lower, decrease, 0),
        damping=jnp.clip(damping, rule.smallest, rule.largest),
        steps=state.steps + 1,
        evaluations=trial.evaluations,
        failed=~(lower & (promised > rule.progress * state.value)),
    )


def minimise(
    rows: Callable[[Array], Array], theta: Array, steps: int, rule: Rule | None = None
) -> GaussNewtonState:
    """A plain loop for small vectors of rows; training uses the stage instead.

    >>> line = lambda x: jnp.array([1.0, 2.0, 3.0]) * x[0] + x[1] - jnp.array([3.0, 5.0, 7.0])
    >>> bool(jnp.allclose(minimise(line, jnp.zeros(2), 20).theta, jnp.array([2.0, 1.0]), atol=1e-3))
    True
    """
    rule = rule or Rule()

    def linearise(theta: Array) -> tuple[Array, Array]:
        return rows(theta), jax.jacfwd(rows)(theta)

    def value(theta: Array) -> Array:
        return jnp.sum(rows(theta) ** 2)

    def unfinished(state: GaussNewtonState) -> Array:
        return (state.steps < steps) & ~state.failed & (state.value > 0)

    state = renewed(value, blank(theta, rule))
    return jax.lax.while_loop(unfinished, lambda s: step(linearise, value, s, rule), state)


@dataclass(frozen=True)
class GaussNewton(RoundOptimiser[GaussNewtonState]):
    """Gauss–Newton by QR, for models that are linear, or nearly so, in their parameters.

    Where a step no longer lowers the loss, the next round of points begins.

    Args:
        damping: The first damping, relative to columns of length one.
        progress: The search ends where the linear model promises to take off less than this share
            of the loss.
        most_rounds: After so many rounds of points it has converged.
    """

    steps: int = 30
    round_steps: int = 20
    damping: float = 1e-12
    progress: float = 0.5
    most_rounds: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.progress < 1:
            raise UserError(f"progress is a share between 0 and 1, not {self.progress}.")
        if self.most_rounds < 1:
            raise UserError(f"There is at least one round; most_rounds is {self.most_rounds}.")

    @property
    def look_every(self) -> int:
        return 2

    @property
    def rounds(self) -> int:
        return self.most_rounds

    @property
    def when_failed(self) -> str:
        return f"another step would take off less than {self.progress:.0%} of the loss"

    @property
    def rule(self) -> Rule:
        return Rule(damping=self.damping, progress=self.progress)

    def init(self, system: System, theta: Array) -> GaussNewtonState:
        return blank(theta, self.rule)

    def step(self, system: System, state: GaussNewtonState) -> GaussNewtonState:
        linear = system.linear_parameters(state.theta)
        return step(system.linearise, system.value, state, self.rule, linear)

    def renew(self, system: System, state: GaussNewtonState) -> GaussNewtonState:
        return renewed(system.value, state)

    def forget(self, state: GaussNewtonState) -> GaussNewtonState:
        return forgotten(state, self.rule)
