"""The stages of training that a configuration asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..errors import UserError
from ..losses.adaptive import Adaptivity
from ..models import Chain, Model
from ..optim import OPTIMISERS, Optimiser, OptimiserState
from ..training.stage import Stage
from .config import TrainConfig


def make_stages(train: TrainConfig, model: Model | None = None) -> list[Stage]:
    """The optimisers of ``train.plan()``, each as a stage.

    A chain of networks that is trained in turn has these stages for each of them, with an equal
    share of the steps.
    """
    follows = train.balance != "fixed" or (train.causal_chunks and len(train.causal_tolerances) > 1)
    adaptivity = Adaptivity(train.pool, train.pool_power, train.pool_floor)
    every = train.balance_every if follows else None
    stages = [Stage(_optimiser(train, *one), adaptivity, every) for one in train.plan()]
    if train.levels == "together":
        return stages
    if train.window_start == "continued":
        raise UserError(
            "train.window_start='continued' goes on with the last stage alone, which with "
            "train.levels='in turn' trains one network of the chain; choose 'warm' or 'new'."
        )
    if not isinstance(model, Chain):
        raise UserError(
            "train.levels='in turn' is for a model that is a chain of networks, such as "
            "stackedpinn; this one is trained together."
        )
    parts = model.parts
    return [
        replace(stage, optimiser=replace(stage.optimiser, steps=stage.steps // parts), part=part)
        for part in range(1, parts + 1)
        for stage in stages
        if stage.steps >= parts
    ]


FIELDS: dict[str, Callable[[TrainConfig], dict[str, Any]]] = {
    name: lambda t: {
        "batch": t.adam_points,
        "rate": t.adam_rate,
        "warmup": t.adam_warmup,
        "decay": t.adam_decay,
        "decay_steps": t.adam_decay_steps,
    }
    for name in ("adam", "soap")
}
FIELDS |= {
    name: lambda t: {"round_steps": t.round_steps, "round_growth": t.round_growth}
    for name in ("bfgs", "ssbfgs", "ssbroyden")
}
FIELDS |= {
    "lbfgs": lambda t: {
        "round_steps": t.round_steps,
        "round_growth": t.round_growth,
        "memory": t.lbfgs_memory,
    },
    "lm": lambda t: {
        "round_steps": t.lm_round_steps,
        "round_growth": t.round_growth,
        "damping": t.lm_damping,
        "scaling": t.lm_scaling,
        "sketch": t.lm_sketch,
        "sketch_above": t.lm_sketch_above,
    },
    "gauss-newton": lambda t: {
        "round_steps": t.gn_round_steps,
        "round_growth": t.round_growth,
        "damping": t.gn_damping,
        "progress": t.gn_progress,
        "most_rounds": t.gn_rounds,
    },
    "gauss-newton-cg": lambda t: {
        "tolerance": t.cg_tolerance,
        "iterations": t.cg_iterations,
        "target": t.cg_target,
    },
}


def _optimiser(train: TrainConfig, name: str, steps: int) -> Optimiser[OptimiserState]:
    return OPTIMISERS[name](steps=steps, **FIELDS[name](train))
