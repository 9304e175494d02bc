"""What the benchmarks of training share: the programs of a configuration, ready to be run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from hyrespinn.experiments.config import RunConfig
from hyrespinn.experiments.solve import Session
from hyrespinn.experiments.stages import make_stages
from hyrespinn.losses.objective import Objective
from hyrespinn.training.stages import Stage, StageState
from jax import Array


class Prepared(NamedTuple):
    """A configuration as training sees it: its loss, first parameters and stages by name."""

    objective: Objective
    theta: Array
    stages: dict[str, Stage]

    def state(self, stage: Stage) -> StageState:
        """The state in which the first round of a stage begins."""

        def begin(theta: Array, key: Array) -> StageState:
            started = stage.start(self.objective, theta, key, self.objective.context())
            return stage.renew(self.objective, started)

        return jax.jit(begin)(self.theta, jax.random.key(1))

    def run(self, stage: Stage) -> Callable[[StageState, Array], StageState]:
        """The stage's training program: a state and a number of steps to another state."""
        return jax.jit(lambda state, count: stage.run(self.objective, state, count))


def prepare(config: RunConfig) -> Prepared:
    """Everything that is made before training; call it in the precision of the configuration."""
    session = Session(config, progress=False, reference=False)
    theta, assemble = session._model(jax.random.key(config.seed))
    stages = make_stages(config.train, assemble(theta))
    return Prepared(session._objective(assemble), theta, {stage.name: stage for stage in stages})


def stepper(prepared: Prepared, name: str, steps: int, warm: int = 0) -> Callable[[], Any]:
    """A call that trains ``steps`` steps, always the same ones, after ``warm`` others."""
    stage = prepared.stages[name]
    run = prepared.run(stage)
    begin = run(prepared.state(stage), jnp.asarray(warm))
    end = run(begin, jnp.asarray(steps)).optimiser
    if end.steps - begin.optimiser.steps != steps:
        raise RuntimeError(f"{name} got stuck after {end.steps} steps; there is nothing to time")
    return lambda: run(begin, jnp.asarray(steps)).optimiser.theta


def changed(config: RunConfig, **train: Any) -> RunConfig:
    """The configuration with other settings of training."""
    return replace(config, train=replace(config.train, **train))
