"""What the benchmarks of training share: the programs of a configuration, ready to be run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from hyrespinn.losses.objective import Objective
from hyrespinn.models import ModelSpec
from hyrespinn.optim import OPTIMISERS
from hyrespinn.run.config import RunConfig, with_settings
from hyrespinn.run.session import Session
from hyrespinn.training.stage import Stage, StageState
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


def figures(result: Mapping[str, Any]) -> dict[str, Any]:
    """What a benchmark keeps of the result of a run."""
    return {
        "rel_l2": result["rel_l2"],
        "steps": result["steps"],
        "parameters": result["n_params"],
        "training seconds": result["seconds"]["training"],
    }


def prepare(config: RunConfig, *, operators: bool = True) -> Prepared:
    """Everything that is made before training; call it in the precision of the configuration.

    Without ``operators`` every derivative travels by itself.
    """
    session = Session(config, progress=False, reference=False)
    if not operators:
        vars(session.statement)["principal_part"] = None
    theta, training, _ = session.training()
    return Prepared(training.objective, theta, {stage.name: stage for stage in training.stages})


def stepper(prepared: Prepared, name: str, steps: int, warm: int = 0) -> Callable[[], Any]:
    """A call that trains ``steps`` steps, always the same ones, after ``warm`` others."""
    stage = prepared.stages[name]
    run = prepared.run(stage)
    begin = run(prepared.state(stage), jnp.asarray(warm))
    end = run(begin, jnp.asarray(steps)).optimiser
    if end.steps - begin.optimiser.steps != steps:
        raise RuntimeError(f"{name} got stuck after {end.steps} steps; there is nothing to time")
    return lambda: run(begin, jnp.asarray(steps)).optimiser.theta


def evaluations(
    objective: Objective, theta: Array, samples: Any, steps: int, context: Any = None
) -> Callable[[], Array]:
    """A call that works out loss and gradient ``steps`` times in a compiled loop, as training does.

    Each evaluation is at a point that depends on the one before.
    """

    def loop(theta: Array, samples: Any, context: Any) -> Array:
        function = objective.value_and_grad(samples, context)
        return jax.lax.fori_loop(0, steps, lambda _, t: t - 1e-14 * function(t)[1], theta)

    program = jax.jit(loop).lower(theta, samples, context).compile()
    return lambda: program(theta, samples, context)


def with_model(config: RunConfig, model: ModelSpec) -> RunConfig:
    """The configuration with another model."""
    return replace(config, discretisation=replace(config.discretisation, model=model))


def only(config: RunConfig, name: str) -> RunConfig:
    """The configuration with one of its stages alone."""
    kept = tuple(s for s in config.discretisation.stages if OPTIMISERS.name_of(s) == name)
    return with_settings(config, {"stages": kept})
