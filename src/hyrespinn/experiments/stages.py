"""The stages of training that a configuration asks for."""

from __future__ import annotations

from typing import Any

from ..errors import UserError
from ..training.stages import AdamStage, LbfgsStage, QuasiNewtonStage, Stage
from .config import TrainConfig


def make_stages(train: TrainConfig, model: Any = None) -> list[Stage]:
    """Adam, then SSBroyden in rounds; a stage of no steps is left out.

    A chain of networks that is trained in turn has these stages for each of them, with an equal
    share of the steps.
    """
    if train.levels == "together":
        return _stages(train, train.adam_steps, train.ssbroyden_steps, None)
    parts = getattr(model, "parts", None)
    if parts is None:
        raise UserError(
            "train.levels='in turn' is for a model that is a chain of networks, such as "
            "stackedpinn; this one is trained together."
        )
    stages = []
    for part in range(1, parts + 1):
        adam, second = train.adam_steps // parts, train.ssbroyden_steps // parts
        stages += _stages(train, adam, second, part)
    return stages


def _stages(train: TrainConfig, adam_steps: int, round_steps: int, part: int | None) -> list[Stage]:
    stages: list[Stage] = []
    follows = train.balance != "fixed" or (train.causal_chunks and len(train.causal_tolerances) > 1)
    if adam_steps:
        stages.append(
            AdamStage(
                steps=adam_steps,
                chunk=min(200, max(100, adam_steps // 100)),
                round_steps=train.balance_every if follows else adam_steps,
                part=part,
                rule=train.adam_rule,
                rate=train.adam_rate,
                warmup=train.adam_warmup,
                decay=train.adam_decay,
                decay_steps=train.adam_decay_steps,
            )
        )
    if round_steps:
        rounds: dict[str, Any] = {
            "steps": round_steps,
            "chunk": 50,
            "round_steps": train.round_steps,
            "part": part,
            "pool": train.pool,
            "power": train.pool_power,
            "floor": train.pool_floor,
        }
        stages.append(
            LbfgsStage(**rounds, memory=train.lbfgs_memory)
            if train.quasi_newton == "lbfgs"
            else QuasiNewtonStage(**rounds, rule=train.quasi_newton)
        )
    return stages
