"""The stages of training that a configuration asks for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..errors import UserError
from ..losses.adaptive import Adaptivity
from ..models import Chain, Model
from ..optim import gauss_newton, gauss_newton_cg
from ..optim.levenberg_marquardt import Rule
from ..training.gauss_newton_cg_stage import GaussNewtonCgStage
from ..training.gauss_newton_stage import GaussNewtonStage
from ..training.lm_stage import LmStage
from ..training.stages import AdamStage, LbfgsStage, QuasiNewtonStage, Stage
from .config import TrainConfig


def make_stages(train: TrainConfig, model: Model | None = None) -> list[Stage]:
    """The optimisers of ``train.plan()``, each as a stage.

    A chain of networks that is trained in turn has these stages for each of them, with an equal
    share of the steps.
    """
    if train.levels == "together":
        return [STAGES[name](train, steps, None) for name, steps in train.plan()]
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
    shares = [(name, steps // parts) for name, steps in train.plan() if steps >= parts]
    return [
        STAGES[name](train, steps, part) for part in range(1, parts + 1) for name, steps in shares
    ]


def _first_order(rule: str, train: TrainConfig, steps: int, part: int | None) -> Stage:
    follows = train.balance != "fixed" or (train.causal_chunks and len(train.causal_tolerances) > 1)
    return AdamStage(
        steps=steps,
        chunk=min(200, max(100, steps // 100)),
        round_steps=train.balance_every if follows else steps,
        part=part,
        rule=rule,
        rate=train.adam_rate,
        warmup=train.adam_warmup,
        decay=train.adam_decay,
        decay_steps=train.adam_decay_steps,
    )


def _rounds(train: TrainConfig, steps: int, part: int | None) -> dict[str, Any]:
    """What all optimisers have in common that keep their points for a round."""
    return {
        "steps": steps,
        "chunk": 50,
        "round_steps": train.round_steps,
        "round_growth": train.round_growth,
        "part": part,
        "adaptivity": Adaptivity(train.pool, train.pool_power, train.pool_floor),
    }


def _dense(rule: str, train: TrainConfig, steps: int, part: int | None) -> Stage:
    return QuasiNewtonStage(**_rounds(train, steps, part), rule=rule)


def _lbfgs(train: TrainConfig, steps: int, part: int | None) -> Stage:
    return LbfgsStage(**_rounds(train, steps, part), memory=train.lbfgs_memory)


def _lm(train: TrainConfig, steps: int, part: int | None) -> Stage:
    # A step is worth some fifty of the others, in time and in progress.
    rounds = _rounds(train, steps, part) | {"chunk": 5, "round_steps": train.lm_round_steps}
    rule = Rule(damping=train.lm_damping, scaling=train.lm_scaling)
    return LmStage(**rounds, rule=rule, sketch=train.lm_sketch, sketch_above=train.lm_sketch_above)


def _gauss_newton(train: TrainConfig, steps: int, part: int | None) -> Stage:
    rounds = _rounds(train, steps, part) | {"chunk": 2, "round_steps": train.gn_round_steps}
    rule = gauss_newton.Rule(damping=train.gn_damping, progress=train.gn_progress)
    return GaussNewtonStage(**rounds, rule=rule, most_rounds=train.gn_rounds)


def _gauss_newton_cg(train: TrainConfig, steps: int, part: int | None) -> Stage:
    # All steps at once: the preconditioner of the first serves them all.
    rounds = _rounds(train, steps, part) | {"chunk": steps, "round_steps": steps}
    rule = gauss_newton_cg.Rule(train.cg_tolerance, train.cg_iterations, target=train.cg_target)
    return GaussNewtonCgStage(**rounds, rule=rule)


STAGES: dict[str, Callable[[TrainConfig, int, int | None], Stage]] = {
    "adam": partial(_first_order, "adam"),
    "soap": partial(_first_order, "soap"),
    "lbfgs": _lbfgs,
    "bfgs": partial(_dense, "bfgs"),
    "ssbfgs": partial(_dense, "ssbfgs"),
    "ssbroyden": partial(_dense, "ssbroyden"),
    "lm": _lm,
    "gauss-newton": _gauss_newton,
    "gauss-newton-cg": _gauss_newton_cg,
}
"""A stage for every optimiser by its name."""
