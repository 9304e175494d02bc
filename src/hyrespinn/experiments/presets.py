"""Presets: how much effort, and the settings that go with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from .. import models
from ..errors import UserError, unknown
from ..models import MODELS, Deep, Fourier, HyResPINN, Inputs, Moving, Scattered
from ..problems.inputs import inputs_of
from ..problems.problem import Problem, anatomy
from .config import RunConfig, TrainConfig, with_parameters, with_settings
from .paper import paper_model, paper_training
from .rules import fitted_model, fitted_training, on_lattice, traits_of
from .shapes import shape_of

Settings = tuple[Any, TrainConfig]

FAST_MODEL = HyResPINN(kernels=Moving(count=12), deep=Deep(fourier=Fourier(features=24, scale=2.0)))
SMOKE_MODEL = HyResPINN(
    width=16, kernels=Moving(count=16), deep=Deep(fourier=Fourier(features=16, scale=2.0))
)
FAST_TRAIN = TrainConfig(
    ssbroyden_steps=13_000, round_growth=0.05, weight_initial=10.0, relative_target=1e-13
)


def fast(problem: Problem, model: str, precision: str) -> Settings:
    """A good answer in minutes on two cores, by rules that look at the problem."""
    return _fitted(problem, model, precision, FAST_TRAIN, effort=1.0)


def accurate(problem: Problem, model: str, precision: str) -> Settings:
    """Ten times better where that is possible: more kernels, more points, more steps."""
    longer = replace(
        FAST_TRAIN, ssbroyden_steps=26_000, points=6144, relative_target=1e-16, gn_progress=0.1
    )
    return _fitted(problem, model, precision, longer, effort=1.6)


def general(problem: Problem, model: str, precision: str) -> Settings:
    """To compare models: the same optimiser and as many parameters for any problem and model, in a
    shape that was found in the same number of trials. Adam, then SSBroyden, on all of the time, to the
    last step: a loss at which all stop would hide which of them is the more accurate."""
    return _shaped(problem, model), replace(FAST_TRAIN, relative_target=0.0)


def paper(problem: Problem, model: str, precision: str) -> Settings:
    """The paper's sizes and recipe, for a machine that has the hours."""
    settings = paper_model(problem.name, model, _inputs(problem))
    return settings, paper_training(problem.name, model)


def smoke(problem: Problem, model: str, precision: str) -> Settings:
    """Everything once, in seconds: to see that a problem runs, not to solve it."""
    return (
        _sized(problem, model, SMOKE_MODEL),
        replace(FAST_TRAIN, adam_steps=300, ssbroyden_steps=150, round_steps=75, points=1024),
    )


def _fitted(
    problem: Problem, model: str, precision: str, train: TrainConfig, effort: float
) -> Settings:
    if model != "hyrespinn":
        # Others have no kernels in which they are nearly linear.
        return _shaped(problem, model), train
    traits = traits_of(problem)
    if on_lattice(traits) and precision != "float64":
        # What nearly dependent kernels make together is lost in single precision.
        return _shaped(problem, model), train
    fitted = fitted_model(FAST_MODEL, traits, effort)
    count = fitted.kernels.count if isinstance(fitted.kernels, Scattered) else 0
    return fitted, fitted_training(train, traits, count, effort)


def _inputs(problem: Problem) -> Inputs:
    return inputs_of(problem, anatomy(problem), exact=True)


def _shaped(problem: Problem, model: str) -> Any:
    """A model in the shape of its trials, with as many parameters as all others."""
    shape = shape_of(model, problem.domain.has_time)
    if model == "hyrespinn" and not shape:
        return FAST_MODEL
    base = FAST_MODEL if model == "hyrespinn" else MODELS[model]()
    return _matched(problem, replace(base, **shape), FAST_MODEL)


def _sized(problem: Problem, model: str, base: HyResPINN) -> Any:
    """The HyResPINN of a preset, or another model with as many parameters."""
    return base if model == "hyrespinn" else _matched(problem, MODELS[model](), base)


def _matched(problem: Problem, settings: Any, base: HyResPINN) -> Any:
    """The settings with as many parameters as the HyResPINN.

    A model of one's own that does not say how many it has keeps its own size.
    """
    if not hasattr(settings, "count"):
        return settings
    return match_parameters(settings, base.count(_inputs(problem)), problem)


def match_parameters(settings: Any, target: int, problem: Problem) -> Any:
    """The settings with the width that gives about ``target`` parameters on a problem.

    Within 2 % of 10,000 or more, within 5 % below; where no width alone comes as close, one finer
    setting is tuned too (see ``docs/models.md``).

    >>> import hyrespinn as hp
    >>> from hyrespinn.models import PINN
    >>> hp.match_parameters(PINN(depth=5), 17_000, hp.problems.AllenCahnDirichlet()).width
    64
    """
    return models.match_parameters(settings, target, _inputs(problem))


PRESETS: dict[str, Callable[[Problem, str, str], Settings]] = {
    "fast": fast,
    "accurate": accurate,
    "general": general,
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
    settings: Mapping[str, Any] | None = None,
) -> RunConfig:
    """The configuration of a preset for a problem, with some keys changed.

    A preset looks at the problem, so that changes of its parameters come first.
    """
    if model not in MODELS:
        raise unknown("model", model, MODELS)
    if preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    if precision not in ("float64", "float32"):
        raise unknown("precision", precision, ("float64", "float32"))
    if max_seconds is not None and not max_seconds > 0:
        raise UserError(f"The time limit must be positive, not {max_seconds}.")
    changes = settings or {}
    problem = with_parameters(problem, changes)
    model_config, train = PRESETS[preset](problem, model, precision)
    config = RunConfig(problem, model, model_config, train, preset, seed, precision, max_seconds)
    return with_settings(config, changes)
