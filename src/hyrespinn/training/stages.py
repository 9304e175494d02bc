"""The stages of training. Each is a set of pure functions that the one loop compiles and calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from ..losses.adaptive import Adaptivity
from ..losses.context import Context
from ..losses.objective import Objective, SampleSet
from ..models.parameters import trained_shapes
from ..optim import adam, lbfgs, ssbroyden
from ..optim.line_search import ValueAndGrad
from ..optim.soap import soap

TRUST = 0.03
"""How far, as a share of their length, a matrix of another window may move the parameters at first."""


class StageState(NamedTuple):
    """A stage in progress; ``stuck`` where its optimiser finds no lower point."""

    optimiser: Any
    samples: SampleSet
    key: Array
    stuck: Array
    context: Context


@dataclass(frozen=True)
class Stage(ABC):
    """A stage runs ``steps`` steps; the loop looks at it every ``chunk`` of them.

    ``run`` and ``renew`` are traced and compiled once; the number of steps in a chunk is an
    argument of the compiled code. ``renew`` is called before every round. Rounds have
    ``round_steps``, or the share ``round_growth`` of the steps before, if that is more.
    ``part`` is the network of a chain that is trained, with those before it as they are; all of
    them together for ``None``.
    """

    steps: int
    chunk: int
    round_steps: int
    part: int | None
    round_growth: float = field(default=0.0, kw_only=True)

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    def rounds(self) -> int | None:
        """After how many rounds an optimiser that is stuck has converged; ``None``: never."""
        return None

    def round_length(self, taken: int, steps: int) -> int:
        """The steps of the round that begins after ``taken`` of ``steps``.

        New points raise the loss for a while, so that none come shortly before the end: the last
        round also has the steps that are too few for one of their own.
        """
        length = max(self.round_steps, round(self.round_growth * taken))
        return length if taken + 2 * length <= steps else steps - taken

    def check(self, objective: Objective, theta: Array) -> None:
        """Refuse, before anything is trained, what this stage cannot train; most train anything."""
        return

    @abstractmethod
    def start(
        self, objective: Objective, theta: Array, key: Array, context: Context
    ) -> StageState: ...

    @abstractmethod
    def run(self, objective: Objective, state: StageState, count: Array) -> StageState:
        """Advance ``count`` steps, fewer where nothing more can be gained."""

    @abstractmethod
    def renew(self, objective: Objective, state: StageState) -> StageState:
        """Before a round: weights brought up to date, new points, a clean matrix."""

    def carried(self, objective: Objective, state: StageState, before: Any) -> StageState:
        """The beginning of a stage with what an optimiser has learnt ``before``, on another window."""
        optimiser = before._replace(theta=state.optimiser.theta, steps=state.optimiser.steps)
        return state._replace(optimiser=optimiser)

    @abstractmethod
    def retry(self, objective: Objective, state: StageState) -> StageState:
        """The last good state prepared for another, more careful try."""

    @abstractmethod
    def restart(self, objective: Objective, state: StageState) -> StageState:
        """The state to go on from where the optimiser got stuck."""


@dataclass(frozen=True)
class AdamStage(Stage):
    """Adam (or SOAP) on fresh points every step; the weights are balanced before a round."""

    rule: str
    rate: float
    warmup: int
    decay: float
    decay_steps: int

    @property
    def name(self) -> str:
        return self.rule

    def _transform(self, objective: Objective, theta: Array) -> optax.GradientTransformation:
        if self.rule == "adam":
            return adam.ADAM
        return soap(trained_shapes(eqx.filter_eval_shape(objective.assemble, theta)))

    def start(self, objective: Objective, theta: Array, key: Array, context: Context) -> StageState:
        optimiser = adam.start(theta, self._transform(objective, theta))
        context = context._replace(causal=None)
        samples = objective.draw_batch(key, context)
        return StageState(optimiser, samples, key, jnp.asarray(False), context)

    def run(self, objective: Objective, state: StageState, count: Array) -> StageState:
        rate = adam.schedule(self.rate, self.warmup, self.decay, self.decay_steps)
        transform = self._transform(objective, state.optimiser.theta)

        def body(_: Array, state: StageState) -> StageState:
            key = jax.random.fold_in(state.key, state.optimiser.steps)
            samples = objective.draw_batch(key, state.context)
            function = objective.value_and_grad(samples, state.context)
            optimiser = adam.step(function, state.optimiser, rate, transform)
            return state._replace(optimiser=optimiser, samples=samples)

        return jax.lax.fori_loop(0, count, body, state)

    def renew(self, objective: Objective, state: StageState) -> StageState:
        key = jax.random.fold_in(jax.random.fold_in(state.key, 1), state.optimiser.steps)
        return state._replace(
            context=objective.rebalanced(state.optimiser.theta, state.samples, state.context, key)
        )

    def retry(self, objective: Objective, state: StageState) -> StageState:
        optimiser = state.optimiser
        return state._replace(optimiser=optimiser._replace(slowdown=optimiser.slowdown / 4))

    def restart(self, objective: Objective, state: StageState) -> StageState:
        return state  # Adam never gets stuck


@dataclass(frozen=True)
class RoundStage(Stage, ABC):
    """An optimiser that searches along lines, on points that stay for a round.

    The weights are those that the stage before has left.
    """

    adaptivity: Adaptivity

    @abstractmethod
    def blank(self, theta: Array) -> Any:
        """A state of the optimiser in which nothing has been evaluated yet."""

    def function(self, objective: Objective, state: StageState) -> Any:
        """What the optimiser is given of the loss on the points of the round."""
        return objective.value_and_grad(state.samples, state.context)

    @abstractmethod
    def advance(self, function: Any, optimiser: Any, unfinished: Callable[[Any], Array]) -> Any:
        """Steps as long as ``unfinished``; ``failed`` where no lower point is found."""

    @abstractmethod
    def renewed(self, function: Any, optimiser: Any) -> Any:
        """The same point and curvature, for another function."""

    @abstractmethod
    def forgotten(self, optimiser: Any) -> Any:
        """The same point without the curvature collected so far."""

    def start(self, objective: Objective, theta: Array, key: Array, context: Context) -> StageState:
        samples = objective.draw(key, context)
        if objective.causality:
            count = samples["interior"].points.shape[0]
            ones = jnp.ones(min(objective.causality.chunks, count), theta.dtype)
            context = context._replace(causal=ones)
        return StageState(self.blank(theta), samples, key, jnp.asarray(False), context)

    def _moved(self, objective: Objective, state: StageState, key: Array) -> StageState:
        """The state on new points, with the optimiser told of the new function."""
        old = state.optimiser
        samples = objective.draw_adaptive(
            old.theta,
            jax.random.fold_in(key, old.steps),
            state.context,
            by=self.adaptivity,
        )
        context = objective.frozen(old.theta, samples, state.context)
        moved = StageState(old, samples, state.key, jnp.asarray(False), context)
        return moved._replace(optimiser=self.renewed(self.function(objective, moved), old))

    def run(self, objective: Objective, state: StageState, count: Array) -> StageState:
        function = self.function(objective, state)
        last = state.optimiser.steps + count

        def unfinished(optimiser: Any) -> Array:
            return (optimiser.steps < last) & ~optimiser.failed

        optimiser = self.advance(function, state.optimiser, unfinished)
        return state._replace(optimiser=optimiser, stuck=optimiser.failed)

    def renew(self, objective: Objective, state: StageState) -> StageState:
        return self._moved(objective, state, state.key)

    def retry(self, objective: Objective, state: StageState) -> StageState:
        """Other points, and no curvature: the first step is then short."""
        key = jax.random.fold_in(state.key, 1)
        moved = self._moved(objective, state, key)
        return moved._replace(optimiser=self.forgotten(moved.optimiser), key=key)

    def restart(self, objective: Objective, state: StageState) -> StageState:
        return state._replace(optimiser=self.forgotten(state.optimiser), stuck=jnp.asarray(False))


@dataclass(frozen=True)
class QuasiNewtonStage(RoundStage):
    """SSBroyden, SSBFGS or BFGS, with the whole inverse Hessian."""

    rule: str

    @property
    def name(self) -> str:
        return self.rule

    def blank(self, theta: Array) -> ssbroyden.QuasiNewtonState:
        return ssbroyden.blank(theta)

    def advance(
        self,
        function: ValueAndGrad,
        optimiser: ssbroyden.QuasiNewtonState,
        unfinished: Callable[[Any], Array],
    ) -> ssbroyden.QuasiNewtonState:
        return ssbroyden.advance(function, optimiser, ssbroyden.RULES[self.rule], unfinished)

    def renewed(
        self, function: ValueAndGrad, optimiser: ssbroyden.QuasiNewtonState
    ) -> ssbroyden.QuasiNewtonState:
        old = optimiser
        H = 0.5 * (old.inverse_hessian + old.inverse_hessian.T)
        good = ssbroyden.is_positive_definite(H)
        H = jnp.where(good, H, jnp.eye(old.theta.size, dtype=H.dtype))
        return ssbroyden.start(function, old.theta, H)._replace(
            steps=old.steps, evaluations=old.evaluations, fresh=old.fresh | ~good
        )

    def carried(self, objective: Objective, state: StageState, before: Any) -> StageState:
        state = super().carried(objective, state, before)
        theta = state.optimiser.theta
        _, gradient = self.function(objective, state)(theta)
        radius = TRUST * jnp.linalg.norm(theta)
        H = ssbroyden.trusted(state.optimiser.inverse_hessian, gradient, radius)
        return state._replace(optimiser=state.optimiser._replace(inverse_hessian=H))

    def forgotten(self, optimiser: ssbroyden.QuasiNewtonState) -> ssbroyden.QuasiNewtonState:
        return ssbroyden.on_identity(optimiser)


@dataclass(frozen=True)
class LbfgsStage(RoundStage):
    """L-BFGS with the last ``memory`` pairs, for networks too large for a matrix."""

    memory: int

    @property
    def name(self) -> str:
        return "lbfgs"

    def blank(self, theta: Array) -> lbfgs.LbfgsState:
        def nothing(theta: Array) -> tuple[Array, Array]:
            return jnp.zeros((), theta.dtype), jnp.zeros_like(theta)

        return lbfgs.start(nothing, theta, self.memory)

    def advance(
        self,
        function: ValueAndGrad,
        optimiser: lbfgs.LbfgsState,
        unfinished: Callable[[Any], Array],
    ) -> lbfgs.LbfgsState:
        return jax.lax.while_loop(unfinished, lambda o: lbfgs.step(function, o), optimiser)

    def renewed(self, function: ValueAndGrad, optimiser: lbfgs.LbfgsState) -> lbfgs.LbfgsState:
        return lbfgs.renewed(function, optimiser)

    def forgotten(self, optimiser: lbfgs.LbfgsState) -> lbfgs.LbfgsState:
        return lbfgs.forget(optimiser)
