"""The stages of training. Each is a set of pure functions that the one loop compiles and calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ..losses.objective import Objective, SampleSet
from ..optim import adam, ssbroyden


class StageState(NamedTuple):
    """A stage in progress; ``stuck`` where its optimiser finds no lower point."""

    optimiser: Any
    samples: SampleSet
    key: Array
    stuck: Array


@dataclass(frozen=True)
class Stage(ABC):
    """A stage runs ``steps`` steps; the loop looks at it every ``chunk`` of them.

    ``run`` and ``renew`` are traced and compiled once; the number of steps in a chunk is an
    argument of the compiled code. ``renew`` is called before every round of ``round_steps``.
    """

    steps: int
    chunk: int
    round_steps: int

    @property
    @abstractmethod
    def name(self) -> str: ...

    @abstractmethod
    def start(self, objective: Objective, theta: Array, key: Array) -> StageState: ...

    @abstractmethod
    def run(self, objective: Objective, state: StageState, count: Array) -> StageState:
        """Advance ``count`` steps, fewer where nothing more can be gained."""

    @abstractmethod
    def renew(self, objective: Objective, state: StageState) -> StageState:
        """Before a round: new points, a clean matrix."""

    @abstractmethod
    def retry(self, objective: Objective, state: StageState) -> StageState:
        """The last good state prepared for another, more careful try."""

    @abstractmethod
    def restart(self, objective: Objective, state: StageState) -> StageState:
        """The state to go on from where the optimiser got stuck."""


@dataclass(frozen=True)
class AdamStage(Stage):
    """Adam on fresh points every step."""

    rate: float
    warmup: int
    decay: float
    decay_steps: int

    @property
    def name(self) -> str:
        return "adam"

    def start(self, objective: Objective, theta: Array, key: Array) -> StageState:
        return StageState(adam.start(theta), objective.draw_batch(key), key, jnp.asarray(False))

    def run(self, objective: Objective, state: StageState, count: Array) -> StageState:
        rate = adam.schedule(self.rate, self.warmup, self.decay, self.decay_steps)

        def body(_: Array, state: StageState) -> StageState:
            samples = objective.draw_batch(jax.random.fold_in(state.key, state.optimiser.steps))
            optimiser = adam.step(objective.value_and_grad(samples), state.optimiser, rate)
            return state._replace(optimiser=optimiser, samples=samples)

        return jax.lax.fori_loop(0, count, body, state)

    def renew(self, objective: Objective, state: StageState) -> StageState:
        return state

    def retry(self, objective: Objective, state: StageState) -> StageState:
        optimiser = state.optimiser
        return state._replace(optimiser=optimiser._replace(slowdown=optimiser.slowdown / 4))

    def restart(self, objective: Objective, state: StageState) -> StageState:
        return state  # Adam never gets stuck


@dataclass(frozen=True)
class QuasiNewtonStage(Stage):
    """SSBroyden (or SSBFGS, BFGS) on points that stay for a round and are then drawn anew."""

    rule: str
    pool: int
    power: float
    floor: float

    @property
    def name(self) -> str:
        return self.rule

    def start(self, objective: Objective, theta: Array, key: Array) -> StageState:
        return StageState(ssbroyden.blank(theta), objective.draw(key), key, jnp.asarray(False))

    def _points(self, objective: Objective, theta: Array, key: Array, steps: Array) -> SampleSet:
        return objective.draw_adaptive(
            theta,
            jax.random.fold_in(key, steps),
            pool=self.pool,
            power=self.power,
            floor=self.floor,
        )

    def run(self, objective: Objective, state: StageState, count: Array) -> StageState:
        function = objective.value_and_grad(state.samples)
        rule = ssbroyden.RULES[self.rule]
        last = state.optimiser.steps + count

        def unfinished(optimiser: ssbroyden.QuasiNewtonState) -> Array:
            return (optimiser.steps < last) & ~optimiser.failed

        optimiser = jax.lax.while_loop(
            unfinished, lambda o: ssbroyden.step(function, o, rule), state.optimiser
        )
        return state._replace(optimiser=optimiser, stuck=optimiser.failed)

    def renew(self, objective: Objective, state: StageState) -> StageState:
        old = state.optimiser
        samples = self._points(objective, old.theta, state.key, old.steps)
        H = 0.5 * (old.inverse_hessian + old.inverse_hessian.T)
        good = ssbroyden.is_positive_definite(H)
        H = jnp.where(good, H, jnp.eye(old.theta.size, dtype=H.dtype))
        new = ssbroyden.start(objective.value_and_grad(samples), old.theta, H)
        return state._replace(
            optimiser=new._replace(
                steps=old.steps, evaluations=old.evaluations, fresh=old.fresh | ~good
            ),
            samples=samples,
        )

    def retry(self, objective: Objective, state: StageState) -> StageState:
        """Other points, and the identity: its first step is short."""
        old, key = state.optimiser, jax.random.fold_in(state.key, 1)
        samples = self._points(objective, old.theta, key, old.steps)
        new = ssbroyden.start(objective.value_and_grad(samples), old.theta, old.inverse_hessian)
        new = ssbroyden.on_identity(new._replace(steps=old.steps, evaluations=old.evaluations))
        return StageState(new, samples, key, jnp.asarray(False))

    def restart(self, objective: Objective, state: StageState) -> StageState:
        return state._replace(
            optimiser=ssbroyden.on_identity(state.optimiser), stuck=jnp.asarray(False)
        )
