"""A stage of training: an optimiser, and the points on which it works."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ..losses.adaptive import Adaptivity
from ..losses.context import Context
from ..losses.objective import Objective, SampleSet
from ..optim import OPTIMISERS, Optimiser, OptimiserState
from .system import LossSystem

EVENLY = Adaptivity(1, 1.0, 1.0)
"""Points that are not chosen by residuals."""


class StageState(NamedTuple):
    """A stage in progress."""

    optimiser: OptimiserState
    samples: SampleSet
    key: Array
    context: Context


@dataclass(frozen=True)
class Stage:
    """Pure functions that the training compiles once and calls for every window.

    An optimiser with fresh points draws a batch for every step, and weights are brought up to date
    every ``rebalance_every`` steps (``None``: never). Any other keeps its points for a round, those
    of the next are chosen by ``adaptivity``, and the weights are those that the stage before has
    left. ``part`` is the network of a chain that is trained, with those before it as they are; all
    of them together for ``None``.
    """

    optimiser: Optimiser[OptimiserState]
    adaptivity: Adaptivity = EVENLY
    rebalance_every: int | None = None
    part: int | None = None

    @property
    def name(self) -> str:
        return OPTIMISERS.name_of(self.optimiser)

    @property
    def steps(self) -> int:
        return self.optimiser.steps

    def round_length(self, taken: int, steps: int) -> int:
        """The steps of the round that begins after ``taken`` of ``steps``."""
        every = self.rebalance_every
        if every is None or not self.optimiser.fresh_points:
            return self.optimiser.round_length(taken, steps)
        return every if taken + 2 * every <= steps else steps - taken

    def system(self, objective: Objective, state: StageState) -> LossSystem:
        """What the optimiser is given of the loss on the points of the state."""
        return LossSystem(objective, state.samples, state.context, state.key)

    def check(self, objective: Objective, theta: Array) -> None:
        """Refuse, before anything is trained, what the optimiser cannot train."""
        blank = LossSystem(objective, {}, objective.context(), jax.random.key(0))
        self.optimiser.check(blank, theta)

    def start(self, objective: Objective, theta: Array, key: Array, context: Context) -> StageState:
        """The state before the first round."""
        if self.optimiser.fresh_points:
            context = context._replace(causal=None)
        samples = objective.draw_batch(key, context, self.optimiser.batch_size)
        if not self.optimiser.fresh_points:
            samples = objective.with_factors(samples, self.adaptivity)
        if objective.causality and not self.optimiser.fresh_points:
            count = samples["interior"].points.shape[0]
            ones = jnp.ones(min(objective.causality.chunks, count), theta.dtype)
            context = context._replace(causal=ones)
        system = LossSystem(objective, samples, context, key)
        return StageState(self.optimiser.init(system, theta), samples, key, context)

    def run(self, objective: Objective, state: StageState, count: Array) -> StageState:
        """Advance ``count`` steps, fewer where nothing more can be gained."""
        if self.optimiser.fresh_points:
            return jax.lax.fori_loop(0, count, lambda _, s: self._fresh(objective, s), state)
        last = state.optimiser.steps + count

        def unfinished(optimiser: OptimiserState) -> Array:
            return (optimiser.steps < last) & ~optimiser.failed

        system = self.system(objective, state)
        return state._replace(optimiser=self.optimiser.advance(system, state.optimiser, unfinished))

    def _fresh(self, objective: Objective, state: StageState) -> StageState:
        """One step on points of its own."""
        key = jax.random.fold_in(state.key, state.optimiser.steps)
        state = state._replace(
            samples=objective.draw_batch(key, state.context, self.optimiser.batch_size)
        )
        system = self.system(objective, state)
        return state._replace(optimiser=self.optimiser.step(system, state.optimiser))

    def renew(self, objective: Objective, state: StageState) -> StageState:
        """Before a round: weights brought up to date, or new points and a clean matrix."""
        if not self.optimiser.fresh_points:
            return self._moved(objective, state, state.key)
        key = jax.random.fold_in(jax.random.fold_in(state.key, 1), state.optimiser.steps)
        theta = state.optimiser.theta
        context = objective.rebalanced(theta, state.samples, state.context, key)
        return state._replace(context=context)

    def _moved(self, objective: Objective, state: StageState, key: Array) -> StageState:
        """The state on new points, with the optimiser told of the new system."""
        theta = state.optimiser.theta
        drawn = jax.random.fold_in(key, state.optimiser.steps)
        samples = objective.draw_adaptive(
            theta, drawn, state.context, by=self.adaptivity, count=self.optimiser.batch_size
        )
        context = objective.frozen(theta, samples, state.context)
        moved = state._replace(samples=samples, context=context)
        system = self.system(objective, moved)
        return moved._replace(optimiser=self.optimiser.renew(system, state.optimiser))

    def carried(
        self, objective: Objective, state: StageState, before: OptimiserState
    ) -> StageState:
        """The beginning of a stage with what an optimiser has learnt ``before``, on another window."""
        system = self.system(objective, state)
        return state._replace(optimiser=self.optimiser.carry(system, state.optimiser, before))

    def retry(self, objective: Objective, state: StageState) -> StageState:
        """The last good state prepared for another, more careful try, on other points."""
        key = state.key
        if not self.optimiser.fresh_points:
            key = jax.random.fold_in(key, 1)
            state = self._moved(objective, state, key)
        return state._replace(optimiser=self.optimiser.forget(state.optimiser), key=key)

    def restart(self, objective: Objective, state: StageState) -> StageState:
        """The state to go on from where the optimiser got stuck."""
        return state._replace(optimiser=self.optimiser.forget(state.optimiser))
