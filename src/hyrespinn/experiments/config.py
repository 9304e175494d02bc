"""Everything that determines a run, as plain data with typed keys."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from ..errors import UserError, unknown
from ..problems.problem import Problem
from ..settings import changed, flat, to_json
from ..solution import problem_spec
from ..training.windows import WindowStart

T = TypeVar("T")

OPTIMISERS = (
    "adam", "soap", "lbfgs", "bfgs", "ssbfgs", "ssbroyden", "lm", "gauss-newton", "gauss-newton-cg",
)  # fmt: skip


@dataclass(frozen=True)
class TrainConfig:
    """How to train. Points are counted for each term of the loss; ``docs/training.md`` has more."""

    stages: tuple[str, ...] = ()  # such as ("soap:500", "lm:40", "ssbroyden:2000")
    adam_rule: Literal["adam", "soap"] = "adam"
    adam_steps: int = 1000
    adam_rate: float = 5e-3
    adam_warmup: int = 100
    adam_decay: float = 0.9
    adam_decay_steps: int = 50
    adam_points: int = 1024
    quasi_newton: Literal["ssbroyden", "ssbfgs", "bfgs", "lbfgs", "lm"] = "ssbroyden"
    lbfgs_memory: int = 20
    lm_damping: float = 1e-2
    lm_scaling: Literal["identity", "marquardt"] = "identity"
    lm_sketch: int = 1000
    lm_sketch_above: int = 5000
    lm_round_steps: int = 25
    gn_damping: float = 1e-12
    gn_rounds: int = 1
    gn_round_steps: int = 20
    gn_progress: float = 0.5
    cg_tolerance: float = 0.03
    cg_iterations: int = 200
    cg_target: float = 1e-18
    ssbroyden_steps: int = 6000
    round_steps: int = 200
    round_growth: float = 0.0
    points: int = 4096
    initial_points: int = 256
    boundary_points: int = 256
    sampler: str = "kronecker"
    pool: int = 8
    pool_power: float = 1.0
    pool_floor: float = 1.0
    weight_residual: float = 1.0
    weight_initial: float = 100.0
    weight_boundary: float = 100.0
    weight_per_order: float = 1.0
    balance: Literal["fixed", "gradient-norm", "ntk"] = "fixed"
    balance_every: int = 1000
    balance_momentum: float = 0.9
    causal_chunks: int = 0
    causal_tolerances: tuple[float, ...] = (1.0,)
    windows: int = 1
    window_ends: tuple[float, ...] | None = None
    window_overshoot: float = 0.0
    window_start: WindowStart = "new"
    window_taper: float = 0.0
    window_tolerance: float = 0.0
    window_growth: float = 0.0
    lattice: tuple[int, ...] = ()
    mirror: bool = False
    last_layer: Literal["none", "initial", "equation"] = "none"
    levels: Literal["together", "in turn"] = "together"
    exact: bool = True
    target_loss: float = 0.0
    relative_target: float = 0.0
    patience: int = 0
    checkpoint_seconds: float = 30.0

    def __post_init__(self) -> None:
        for name in ("adam_points", "points", "initial_points", "boundary_points"):
            if getattr(self, name) < 1:
                raise UserError(
                    f"train.{name} is {getattr(self, name)}; a term of the loss needs at least one "
                    "point (a mean over none is not a number)."
                )
        counts = ("adam_steps", "ssbroyden_steps", "patience", "adam_warmup")
        for name in (*counts, "window_tolerance", "window_growth", "round_growth", "cg_target"):
            if getattr(self, name) < 0:
                raise UserError(f"train.{name} cannot be negative, and is {getattr(self, name)}.")
        for name in (
            "round_steps", "pool", "adam_decay_steps", "balance_every", "lbfgs_memory",
            "lm_round_steps", "lm_sketch", "gn_rounds", "gn_round_steps", "cg_iterations",
        ):  # fmt: skip
            if getattr(self, name) < 1:
                raise UserError(f"train.{name} must be at least 1, not {getattr(self, name)}.")

        for name in ("cg_tolerance", "gn_progress"):
            if not 0 < getattr(self, name) < 1:
                raise UserError(
                    f"train.{name} is a share between 0 and 1, not {getattr(self, name)}."
                )
        if self.mirror and not self.exact:
            raise UserError(
                "train.exact=false makes boundary conditions terms of the loss, and train.mirror "
                "builds them in. Set train.mirror=false too; kernels on a lattice need one of them, so "
                "take --preset general with it."
            )
        self.plan()

    def plan(self) -> list[tuple[str, int]]:
        """The optimisers in their order, each with its steps; those of no steps are left out.

        >>> TrainConfig(adam_steps=100, ssbroyden_steps=0).plan()
        [('adam', 100)]
        >>> TrainConfig(stages=("soap:50", "lbfgs:200", "ssbroyden:10")).plan()
        [('soap', 50), ('lbfgs', 200), ('ssbroyden', 10)]
        """
        plan: list[tuple[str, int]]
        plan = [(self.adam_rule, self.adam_steps), (self.quasi_newton, self.ssbroyden_steps)]
        if self.stages:
            plan = [_read_stage(text) for text in self.stages]
        return [(name, steps) for name, steps in plan if steps]

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> TrainConfig:
        """The settings that ``dataclasses.asdict`` and JSON have made lists of."""
        read: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in content.items()
        }
        return cls(**read)


def _read_stage(text: str) -> tuple[str, int]:
    """An optimiser and its number of steps, written ``name:steps``."""
    name, _, steps = str(text).partition(":")
    if name.strip() not in OPTIMISERS:
        raise unknown("optimiser in train.stages", name.strip(), OPTIMISERS)
    if not steps.strip().isdigit():
        raise UserError(
            f"A stage is written name:steps, such as ssbroyden:2000; train.stages has {text!r}."
        )
    return name.strip(), int(steps)


@dataclass(frozen=True)
class RunConfig:
    """A run: the same configuration on the same machine gives the same result, bit by bit."""

    problem: Problem
    model: str
    model_config: Any
    train: TrainConfig
    preset: str = "fast"
    seed: int = 0
    precision: str = "float64"
    max_seconds: float | None = None

    def to_json(self) -> dict[str, Any]:
        parameters = {
            k: v if _is_plain(v) else repr(v) for k, v in self.problem.parameters().items()
        }
        return {
            **problem_spec(self.problem),
            "problem_values": parameters,
            "model": self.model,
            "model_config": to_json(self.model_config),
            "train": dataclasses.asdict(self.train),
            "preset": self.preset,
            "seed": self.seed,
            "precision": self.precision,
            "max_seconds": self.max_seconds,
        }


def _is_plain(value: Any) -> bool:
    try:
        json.dumps(value)
    except TypeError:
        return False
    return True


def settings(config: RunConfig) -> dict[str, object]:
    """Every key that ``--set`` takes, with its present value."""
    sections = {"problem": config.problem, "model": config.model_config, "train": config.train}
    return {
        key: value
        for section, part in sections.items()
        for key, value in flat(part, section).items()
    }


def with_settings(config: RunConfig, changes: Mapping[str, object]) -> RunConfig:
    """The configuration with some keys changed; texts are read as the key's type.

    Keys are ``problem.…``, ``model.…`` and ``train.…``, as :func:`settings` lists them; those of
    another kind of part come with the key that chooses it.
    """
    for key in changes:
        if key.partition(".")[0] not in ("problem", "model", "train"):
            raise unknown("setting", key, settings(config))
    return dataclasses.replace(
        config,
        problem=with_parameters(config.problem, changes),
        model_config=_changed("model", config.model_config, changes),
        train=_changed("train", config.train, changes),
    )


def with_parameters(problem: Problem, changes: Mapping[str, object]) -> Problem:
    """The problem with the parameters among these settings."""
    return _changed("problem", problem, changes)


def _changed(section: str, part: T, changes: Mapping[str, object]) -> T:
    """A part of the configuration with those of the changes that are its own."""
    own = {key: value for key, value in changes.items() if key.partition(".")[0] == section}
    return changed(part, own, section)
