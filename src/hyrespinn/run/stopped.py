"""What is said of a run that was stopped: how far it came, and what to do."""

from __future__ import annotations

from pathlib import Path

from ..errors import StoppedEarly
from ..training.march import Outcome
from ..training.stopping import End
from ..training.windows import RESUMABLE, FixedWindows, Windows
from .config import RunConfig


def reached(config: RunConfig, windows: Windows, outcome: Outcome) -> str:
    """How far a run came, in windows and time or in steps."""
    done = [w.window for w in outcome.windows if w.status not in RESUMABLE]
    spans = [window for window in done if window is not None]
    if not spans and outcome.windows[0].window is None:
        return f"{outcome.steps:,} of at most {config.discretisation.steps:,} steps"
    total = f" of {len(windows.windows)}" if isinstance(windows, FixedWindows) else ""
    begin, end = config.problem.domain.bounds[0]
    name = config.problem.domain.coordinates[0]
    last = spans[-1].end if spans else begin
    return (
        f"{len(spans)}{total} windows, up to {name} = {last:g} of {end:g}, {outcome.steps:,} steps"
    )


def stopped_early(
    end: End, signal: int | None, directory: Path | None, first_step: bool
) -> StoppedEarly:
    """The error of a run that has nothing to return."""
    before = "its first window was done" if first_step else "its first step"
    by_limit = end.status == "time_limit"
    remedy = "a larger limit may help" if by_limit else "start it again"
    if directory is not None:
        more = ", with a larger --max-seconds," if by_limit else ""
        remedy = f"`hyrespinn resume {directory}`{more} {'goes on' if first_step else 'starts it'}"
    reason = end.message if by_limit else "interrupted"
    return StoppedEarly(
        f"The run was stopped before {before} ({reason}), so that there is no solution yet; {remedy}.",
        None if by_limit else signal or 2,
    )
