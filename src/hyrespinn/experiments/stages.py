"""The stages of training that a configuration asks for."""

from __future__ import annotations

from ..training.stages import AdamStage, QuasiNewtonStage, Stage
from .config import TrainConfig


def make_stages(train: TrainConfig) -> list[Stage]:
    """Adam, then SSBroyden in rounds; a stage of no steps is left out."""
    stages: list[Stage] = []
    if train.adam_steps:
        stages.append(
            AdamStage(
                steps=train.adam_steps,
                chunk=100,
                round_steps=train.adam_steps,
                rate=train.adam_rate,
                warmup=train.adam_warmup,
                decay=train.adam_decay,
                decay_steps=train.adam_decay_steps,
            )
        )
    if train.ssbroyden_steps:
        stages.append(
            QuasiNewtonStage(
                steps=train.ssbroyden_steps,
                chunk=50,
                round_steps=train.round_steps,
                rule=train.quasi_newton,
                pool=train.pool,
                power=train.pool_power,
                floor=train.pool_floor,
            )
        )
    return stages
