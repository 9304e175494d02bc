"""What is measured of a run that is over, without its reference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..discretise import Discretisation
from ..estimate import Estimate, Piece, estimate_error
from ..losses.fresh_gap import fresh_gap
from ..losses.objective import Objective
from ..problems.statement import Statement
from ..training.march import Outcome
from .report import few

SHARE, AT_LEAST = 0.25, 1.0
"""Of the seconds of training that an estimate may take, and seconds that it may take in any case."""


@dataclass(frozen=True)
class Measured:
    """The estimated error, or why there is none, and the gap to fresh points."""

    estimate: Estimate | None
    gap: float | None


def measure(
    statement: Statement,
    discretisation: Discretisation,
    trained: Objective,
    reported: Objective,
    outcome: Outcome,
    precision: str,
) -> Measured:
    """The estimated error of what there is of a solution."""
    if not all(bool(np.all(np.isfinite(np.asarray(theta)))) for theta in outcome.thetas):
        return Measured(None, None)
    return Measured(
        _estimate(discretisation, trained, reported, outcome),
        _gap(statement, discretisation, trained, outcome, precision),
    )


def _estimate(
    discretisation: Discretisation, trained: Objective, reported: Objective, outcome: Outcome
) -> Estimate | None:
    pieces = []
    for theta, context, done in zip(outcome.thetas, outcome.contexts, outcome.windows, strict=True):
        time = None if done.window is None else (done.window.start, done.window.end)
        pieces.append(Piece(theta, context, time))
    seconds = max(AT_LEAST, SHARE * outcome.clock.training)
    try:
        return estimate_error(trained, reported, discretisation.boundary, pieces, seconds)
    except (np.linalg.LinAlgError, MemoryError):
        return None


def _gap(
    statement: Statement,
    discretisation: Discretisation,
    trained: Objective,
    outcome: Outcome,
    precision: str,
) -> float | None:
    fresh = discretisation.pose_afresh(statement, trained.assemble, precision)
    chosen = few(len(outcome.thetas))
    parts = [(outcome.thetas[k], outcome.contexts[k]) for k in chosen]
    last = outcome.losses.get("total")
    found = [outcome.windows[k].row.get("loss_total", last) for k in chosen]
    losses = [float(loss) for loss in found if loss is not None]
    if len(losses) < len(parts):
        return None  # it was stopped before the first loss was known
    return fresh_gap(fresh, parts, losses)


def per_window(measured: Measured, count: int) -> list[dict[str, float | None]] | None:
    """The estimated errors of all windows, where there are as many."""
    if measured.estimate is None or len(measured.estimate.parts) != count:
        return None
    return [
        {name: value if np.isfinite(value) else None for name, value in part.items()}
        for part in measured.estimate.parts
    ]
