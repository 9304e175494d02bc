"""Presets: how much effort, and the settings that go with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..errors import UserError, unknown
from ..nn import HyResPINNConfig, model_named
from ..problems.problem import Problem
from .config import RunConfig, TrainConfig

Settings = tuple[Any, TrainConfig]

FAST_MODEL = HyResPINNConfig()
FAST_TRAIN = TrainConfig(relative_target=1e-10)

# Section 5.1 of the paper: one block, three layers of 64 neurons, 64 centres; 100,000 Adam steps
# on 1,024 fresh points, the rate rising to 1e-3 over 5,000 steps, then × 0.9 every 2,000.
PAPER_MODEL = HyResPINNConfig(width=64, depth=3, centers=64, lambda_g=1e-4, width_quantile=0.5)
PAPER_TRAIN = TrainConfig(
    adam_steps=100_000, adam_rate=1e-3, adam_warmup=5000, adam_decay_steps=2000,
    ssbroyden_steps=0, points=1024, initial_points=512, sampler="uniform",
    weight_initial=1.0, weight_boundary=1.0,
)  # fmt: skip


def fast(problem: Problem) -> Settings:
    """A good answer in minutes on two cores."""
    return FAST_MODEL, FAST_TRAIN


def accurate(problem: Problem) -> Settings:
    """Ten times better where that is possible: a larger network, more points, more steps."""
    return (
        replace(FAST_MODEL, width=32, centers=48),
        replace(
            FAST_TRAIN, ssbroyden_steps=15_000, points=8192, round_steps=500, relative_target=1e-14
        ),
    )


def paper(problem: Problem) -> Settings:
    """The paper's sizes and recipe, for a machine that has the hours."""
    return PAPER_MODEL, PAPER_TRAIN


def smoke(problem: Problem) -> Settings:
    """Everything once, in seconds: to see that a problem runs, not to solve it."""
    return (
        replace(FAST_MODEL, width=16, centers=16),
        replace(FAST_TRAIN, adam_steps=300, ssbroyden_steps=150, round_steps=75, points=1024),
    )


PRESETS: dict[str, Callable[[Problem], Settings]] = {
    "fast": fast,
    "accurate": accurate,
    "paper": paper,
    "smoke": smoke,
}


def configure(
    problem: Problem,
    *,
    model: str = "hyrespinn",
    preset: str = "fast",
    seed: int = 0,
    precision: str = "float64",
    max_seconds: float | None = None,
) -> RunConfig:
    """The configuration of a preset for a problem."""
    settings = model_named(model)
    if preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    if precision not in ("float64", "float32"):
        raise unknown("precision", precision, ("float64", "float32"))
    if max_seconds is not None and not max_seconds > 0:
        raise UserError(f"The time limit must be positive, not {max_seconds}.")
    model_config, train = PRESETS[preset](problem)
    if not isinstance(model_config, settings):
        model_config = settings()  # the presets size HyResPINNs; another model has its own defaults
    return RunConfig(problem, model, model_config, train, preset, seed, precision, max_seconds)
