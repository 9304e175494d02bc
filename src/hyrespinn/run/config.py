"""Everything that determines a run, as plain data with typed keys."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from .. import models
from ..discretise import Discretisation
from ..errors import UserError, unknown
from ..methods import Method, choose
from ..models import MODELS, ModelSpec
from ..problems.boundary import Lifted
from ..problems.problem import Problem
from ..problems.statement import state
from ..registry import registered_name
from ..settings import JSON, changed, descriptions, flat, to_json
from ..solution import problem_spec

T = TypeVar("T")
S = TypeVar("S", bound=ModelSpec)

SCHEMA = 2
"""Of ``config.json``; the first had other keys."""
PRECISIONS = ("float64", "float32")


@dataclass(frozen=True)
class RunConfig:
    """A run: the same configuration on the same machine gives the same result, bit by bit.

    Args:
        problem: What is solved.
        discretisation: What was chosen for it.
        method: The name of the method that chose it.
        why: Why this method, for people.
        rejected: Why not others, by their names.
        preset: The effort.
        seed: Of all that is random.
        precision: ``float64`` or ``float32``.
        max_seconds: A limit on the seconds of training.
        tolerance: The relative error up to which a run is called solved.
    """

    problem: Problem
    discretisation: Discretisation
    method: str
    why: str = ""
    rejected: Mapping[str, str] = field(default_factory=dict)
    preset: str = "fast"
    seed: int = 0
    precision: str = "float64"
    max_seconds: float | None = None
    tolerance: float = 1e-3

    @property
    def model(self) -> str:
        """The name of the model, or that of its class."""
        cls = type(self.discretisation.model)
        return registered_name(cls) or cls.__name__

    def describe(self) -> str:
        """What was chosen and why, in one line."""
        others = "".join(f"; not {name}: {reason}" for name, reason in self.rejected.items())
        return f"method {self.method}: {self.why}{others}"

    def to_json(self) -> dict[str, JSON]:
        parameters = {k: _plain(v) for k, v in self.problem.parameters().items()}
        return {
            "schema": SCHEMA,
            **problem_spec(self.problem),
            "problem_values": parameters,
            "method": self.method,
            "why": self.why,
            "rejected": dict(self.rejected),
            "preset": self.preset,
            "seed": self.seed,
            "precision": self.precision,
            "max_seconds": self.max_seconds,
            "tolerance": self.tolerance,
            "discretisation": to_json(self.discretisation),
        }


def _plain(value: object) -> JSON:
    """A value as JSON has it, or as a text for people."""
    try:
        written: JSON = json.loads(json.dumps(value))
    except TypeError:
        return repr(value)
    return written


def settings(config: RunConfig) -> dict[str, object]:
    """Every key that ``--set`` takes, with its present value; each of them has an effect."""
    idle = config.discretisation.idle(state(config.problem))
    shown = {
        key: value
        for key, value in flat(config.discretisation).items()
        if _idle_reason(key, idle) is None
    }
    return flat(config.problem, "problem") | shown


def documentation(config: RunConfig) -> dict[str, str]:
    """What the keys of :func:`settings` are, where their fields say so."""
    return descriptions(config.problem, "problem") | descriptions(config.discretisation)


def _idle_reason(key: str, idle: Mapping[str, str]) -> str | None:
    """Why a key, or one of those above it, has no effect."""
    return next((why for k, why in idle.items() if key == k or key.startswith(f"{k}.")), None)


def with_settings(config: RunConfig, changes: Mapping[str, object]) -> RunConfig:
    """The configuration with some keys changed; texts are read as the key's type.

    Keys are ``problem.…`` and the fields of the discretisation, as :func:`settings` lists them; those
    of another kind of part come with the key that chooses it.
    """
    own = {key: value for key, value in changes.items() if not _of_problem(key)}
    discretisation = changed(config.discretisation, own)
    problem = with_parameters(config.problem, changes)
    idle = discretisation.idle(state(problem))
    for key in own:
        reason = _idle_reason(key, idle)
        if reason is not None:
            raise UserError(f"{key} would change nothing: {reason}. Leave it.")
    return dataclasses.replace(config, problem=problem, discretisation=discretisation)


def _of_problem(key: str) -> bool:
    return key.partition(".")[0] == "problem"


def with_parameters(problem: Problem, changes: Mapping[str, object]) -> Problem:
    """The problem with the parameters among these settings."""
    own = {key: value for key, value in changes.items() if _of_problem(key)}
    return changed(problem, own, "problem") if own else problem


def configure(
    problem: Problem,
    *,
    method: str | Method | Discretisation = "auto",
    preset: str = "fast",
    model: str | ModelSpec | None = None,
    seed: int = 0,
    precision: str = "float64",
    tolerance: float = 1e-3,
    max_seconds: float | None = None,
    settings: Mapping[str, object] | None = None,
) -> RunConfig:
    """What a method chooses for a problem, with some keys changed.

    A method looks at the problem, so that changes of its parameters come first. ``preset="paper"``
    stands for the method ``paper`` at its full length.
    """
    if preset == "paper":
        method, preset = "paper", "full"
    if isinstance(model, str) and model not in MODELS:
        raise unknown("model", model, MODELS)
    if precision not in PRECISIONS:
        raise unknown("precision", precision, PRECISIONS)
    if max_seconds is not None and not max_seconds > 0:
        raise UserError(f"The time limit must be positive, not {max_seconds}.")
    if not 0 < tolerance < 1:
        raise UserError(f"The tolerance is a relative error between 0 and 1, not {tolerance}.")
    changes = settings or {}
    problem = with_parameters(problem, changes)
    state(problem).check_together()
    choice = choose(method, state(problem), preset=preset, model=model, precision=precision)
    config = RunConfig(
        problem,
        choice.discretisation,
        choice.method,
        choice.why,
        choice.rejected,
        preset,
        seed,
        precision,
        max_seconds,
        tolerance,
    )
    return with_settings(config, changes)


def match_parameters(spec: S, target: int, problem: Problem) -> S:
    """The specification with the width that gives about ``target`` parameters on a problem.

    Within 2 % of 10,000 or more, within 5 % below; where no width alone comes as close, one finer
    setting is tuned too (see ``docs/models.md``).

    >>> import hyrespinn as hp
    >>> hp.match_parameters(hp.models.PINN(depth=5), 17_000, hp.problems.AllenCahnDirichlet()).width
    64
    """
    return models.match_parameters(spec, target, Lifted().inputs(state(problem)))
