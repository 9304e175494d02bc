"""What is reported of a run: the content of ``result.json``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jax import Array

from ..losses.objective import Objective
from ..losses.relative_residual import relative_residual
from ..metrics import efficiencies
from ..problems.problem import Problem
from ..references import Reference, reference_of_the_paper
from ..training.march import Outcome
from .config import RunConfig

SCHEMA = 2
MOST_WINDOWS = 8
"""As many windows are enough for a gap or a median."""
SHARES_OF_TIME = (0.2, 0.4, 0.6, 0.8)


def errors_of(
    problem: Problem,
    reference: Reference,
    values: Mapping[str, np.ndarray],
    derived: Mapping[str, np.ndarray],
) -> dict[str, Any]:
    """The relative errors, also up to parts of the time, and against the paper's reference."""
    errors: dict[str, Any] = {"rel_l2": reference.errors(values, derived)}
    if problem.domain.has_time:
        begin, end = problem.domain.bounds[0]
        errors["rel_l2_until"] = {
            f"{time:g}": reference.until(time).errors(values, derived)
            for time in (begin + share * (end - begin) for share in SHARES_OF_TIME)
        }
    printed = reference_of_the_paper(problem)
    if printed is not None:
        errors["rel_l2_paper_reference"] = printed.errors(values, derived)
    return errors


def result_of(
    config: RunConfig,
    objective: Objective,
    outcome: Outcome,
    reference: Reference | None,
    errors: Mapping[str, Any],
    measured: bool = True,
    start: Array | None = None,
) -> dict[str, Any]:
    """What is known when a run ends, but for the seconds in total; no residual unless ``measured``."""
    clock = outcome.clock
    rate = outcome.steps / clock.training if clock.training else 0.0
    of_window = int(outcome.theta.size)
    result: dict[str, Any] = {
        "schema": SCHEMA,
        "problem": config.problem.name,
        "method": config.method,
        "why": config.why,
        "rejected": dict(config.rejected),
        "model": config.model,
        "preset": config.preset,
        "seed": config.seed,
        "precision": config.precision,
        "status": outcome.status,
        "message": outcome.message,
        "verdict": "stopped",  # until it is judged
        "tolerance": config.tolerance,
        "estimated_error": None,
        "fresh_gap": None,
        "warnings": [],
        "n_params": of_window * len(outcome.thetas),  # of all windows together
        "n_params_window": of_window,
        "steps": outcome.steps,
        "seconds": {"training": clock.training, "compilation": clock.compilation},
        "steps_per_second": rate,
        "losses": outcome.losses,
        "trained": _trained(objective, outcome, start),
        "relative_residual": relative_residual(
            objective, list(zip(outcome.thetas, outcome.contexts, strict=True))
        )
        if measured
        else {},
        "windows": _windows(outcome),
        "rel_l2": None,
        "rel_l2_until": None,  # up to 0.2, 0.4, 0.6 and 0.8 of the time
        "rel_l2_paper_reference": None,  # against the paper's own, where it has another
        "rel_l2_initial": None,  # of the untrained network
        "eta_params": None,
        "eta_comp": None,
        "eta_dof": None,
        "reference": None,
    }
    if reference is None or not errors:
        return result
    result |= errors
    result["reference"] = {
        "description": reference.description,
        "self_convergence": reference.self_convergence,
    }
    return result | _efficiencies(config.problem, result, rate)


def few(windows: int) -> list[int]:
    """Some of so many windows, the first and the last among them.

    >>> few(3), few(100)
    ([0, 1, 2], [0, 14, 28, 42, 56, 70, 84, 99])
    """
    return sorted({int(k) for k in np.linspace(0, windows - 1, min(windows, MOST_WINDOWS))})


def _trained(objective: Objective, outcome: Outcome, start: Array | None) -> dict[str, float]:
    """How far groups of parameters have gone from the first ones: medians, also over windows."""
    if start is None:
        return {}

    @jax.jit  # once for all windows
    def changes(now: Array, first: Array) -> dict[str, Array]:
        return objective.assemble(now).changes(objective.assemble(first))

    several = [changes(outcome.thetas[k], start) for k in few(len(outcome.thetas))]
    return {
        name: float(np.median([float(changes[name]) for changes in several])) for name in several[0]
    }


def _efficiencies(problem: Problem, result: Mapping[str, Any], rate: float) -> dict[str, Any]:
    """Error against cost, for every field; none where there is no error to speak of."""
    errors = {f: e for f, e in result["rel_l2"].items() if f in problem.fields}
    if not result["steps"] or not all(e > 0 and math.isfinite(e) for e in errors.values()):
        return {}
    seconds = result["seconds"]["training"]
    etas = {f: efficiencies(e, result["n_params"], rate, seconds) for f, e in errors.items()}
    return {name: {f: eta[name] for f, eta in etas.items()} for name in next(iter(etas.values()))}


def _windows(outcome: Outcome) -> list[dict[str, Any]] | None:
    """What became of each window: its gates, losses and error at its end."""
    results = []
    for window in outcome.windows:
        span = window.window
        if span is None:
            return None
        kept = {k: v for k, v in window.row.items() if k not in ("window", "stage", "step")}
        results.append(
            {
                "start": span.start,
                "end": span.end,
                "status": window.status,
                "message": window.message,
                "steps": window.steps,
                **kept,
            }
        )
    return results
