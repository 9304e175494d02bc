"""The run of one stage on one window of time, chunk by chunk."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..optim import OptimiserState
from .run_state import RunState
from .stage import Stage, StageState
from .stopping import Facts, Stops, decide
from .waiting import Stopped
from .watch import Watch
from .windows import Status, Window

RETRIES = 4

T = TypeVar("T")
Measured = tuple[dict[str, Array], dict[str, Array]]
"""The losses, and other columns of the history."""


@runtime_checkable
class StagePrograms(Protocol):
    """The compiled functions of a stage; ``renew`` and ``advance`` use up the state they are given."""

    def renew(self, state: StageState) -> StageState: ...
    def advance(self, state: StageState, count: Array) -> StageState: ...
    def measure(self, state: StageState) -> Measured: ...
    def retry(self, state: StageState) -> StageState: ...
    def restart(self, state: StageState) -> StageState: ...


@dataclass(frozen=True)
class Bounds:
    """What a stage must keep to on the present window: its ``steps``, the ``target`` of the loss, the
    ``tolerance`` of the window's estimated error, and whether it is the last stage there
    (``ends_window``) and nothing can come after it at all (``ends_all``)."""

    steps: int
    target: float = 0.0
    tolerance: float | None = None
    ends_window: bool = True
    ends_all: bool = True


class StageRun:
    """Advances a stage from round to round until it is done or something stops it.

    How it ended is in ``run.progress.done``: ``None`` where all steps are done.
    """

    def __init__(
        self,
        stage: Stage,
        programs: StagePrograms,
        bounds: Bounds,
        stops: Stops,
        watch: Watch,
        run: RunState,
        window: Window | None = None,
    ):
        self.stage, self.programs, self.bounds, self.stops = stage, programs, bounds, stops
        self.watch, self.run, self.window = watch, run, window
        self.progress = run.progress
        self._began: tuple[int, float] | None = None  # step and time of the last round begun here

    def __call__(self, state: StageState) -> StageState:
        progress = self.progress
        self.watch.reporter.stage(
            self.stage.name, self.bounds.steps, progress.stage_steps, self.watch.clock.training
        )
        if self._has_converged(state):  # and was stopped there, before it was resumed
            self._converge()
        while progress.stage_steps < self.bounds.steps and progress.done is None:
            state = self._chunk(state)
        self.watch.checkpoint(state, self.run, force=progress.done is not None)
        return state

    def _chunk(self, state: StageState) -> StageState:
        """Some steps, then a look at what they gave."""
        good = self._copied(state)
        self.watch.keep(good, self.run)
        state, end = self._begin_round(state)
        if is_finite(state.optimiser):
            state = self._advance(state, end)
        if not is_finite(state.optimiser):
            self._count(good)
            self.progress.look_at = self.progress.stage_steps
            return self._roll_back(good)
        self.progress.look_at = self.progress.stage_steps
        self._record(state)
        state = self._after_round(state)
        if self.progress.done is None:
            self._stop_if_due()
            self.watch.checkpoint(state, self.run)
        return state

    def _copied(self, state: StageState) -> StageState:
        with self.watch.clock.measure("training"):
            return copied(state)

    def _count(self, state: StageState) -> None:
        """Bring the progress up to the steps of a state."""
        taken = int(state.optimiser.steps) - self.progress.stage_steps
        self.progress.steps += taken
        self.progress.stage_steps += taken

    def _begin_round(self, state: StageState) -> tuple[StageState, int]:
        """A new round where one is due and there is time for it, and the step up to which the next
        chunk goes."""
        progress, steps = self.progress, self.bounds.steps
        if progress.stage_steps < progress.look_at:  # stopped in the middle of a chunk, and resumed
            return state, progress.look_at
        progress.look_at = min(progress.stage_steps + self.stage.optimiser.look_every, steps)
        if progress.stage_steps < progress.next_round:
            progress.look_at = min(progress.look_at, progress.next_round)
            return state, progress.look_at
        length = self.stage.round_length(progress.stage_steps, steps)
        now = progress.stage_steps, self.watch.clock.training
        if not bool(state.optimiser.failed) and self.stops.cut_short(length, self._began, now):
            self.watch.hold()
            return state, progress.look_at
        self._began = now
        progress.next_round = progress.stage_steps + length
        progress.look_at = min(progress.look_at, progress.next_round)
        return self.programs.renew(state), progress.look_at

    def _advance(self, state: StageState, end: int) -> StageState:
        """Up to the step ``end`` of the stage, in slices of about a second.

        Where slices end depends on the machine, so that nothing that comes of them may.
        """
        progress, optimiser = self.progress, self.stage.optimiser
        pace = self.watch.pace(progress.stage)
        while True:
            count = pace.slice(end - progress.stage_steps, optimiser.cut_every)
            before, first = self.watch.clock.training, progress.stage_steps
            state = self.programs.advance(state, jnp.asarray(count))
            self._count(state)
            pace.note(progress.stage_steps - first, self.watch.clock.training - before)
            if progress.stage_steps >= end or bool(state.optimiser.failed):
                return state
            if pace.is_long(end - progress.stage_steps) and is_finite(state.optimiser):
                self._pause(state)

    def _pause(self, state: StageState) -> None:
        """In the middle of a chunk that takes long: remember the state, and stop if that is due."""
        self.watch.keep(self._copied(state), self.run)
        end = self.stops.asked(self.watch.clock.training, self.watch.interrupted())
        if end is not None:
            raise Stopped(end)

    def _after_round(self, state: StageState) -> StageState:
        """The losses of rounds, and what becomes of an optimiser that is stuck."""
        progress, stuck = self.progress, bool(state.optimiser.failed)
        if progress.stage_steps == progress.next_round:
            progress.round_losses.append(self.run.losses["total"])
        if not stuck:
            return state
        if self.stage.optimiser.rounds is not None:
            if progress.stage_steps < progress.next_round:  # before its end
                progress.round_losses.append(self.run.losses["total"])
                progress.next_round = progress.stage_steps
            if self._has_converged(state):
                self._converge()
            return state
        # Stuck again at the very next step: even the identity finds nothing lower.
        if progress.stage_steps - progress.stuck_at <= 1:
            self._finish("stalled", "the line search finds no lower point any more")
            return state
        progress.stuck_at = progress.stage_steps
        return self.programs.restart(state)

    def _has_converged(self, state: StageState) -> bool:
        """Whether an optimiser that is stuck has had all of its rounds."""
        rounds = self.stage.optimiser.rounds
        failed = bool(state.optimiser.failed)
        return rounds is not None and failed and len(self.progress.round_losses) >= rounds

    def _converge(self) -> None:
        """The end of a stage that has found what there is; after the last one, of the window."""
        if not (self.bounds.ends_window and self.bounds.ends_all):
            self._stop_if_due()
        if self.bounds.ends_window and self.progress.done is None:
            self._finish("converged", self.stage.optimiser.when_failed)
        self.bounds = replace(self.bounds, steps=self.progress.stage_steps)

    def _finish(self, status: Status, message: str) -> None:
        self.progress.done, self.run.message = status, message

    def _stop_if_due(self) -> None:
        bounds, progress = self.bounds, self.progress
        error = self.run.row.get("window_error")
        all_done = progress.stage_steps >= bounds.steps
        end = decide(
            self.stops,
            Facts(
                loss=self.run.losses["total"],
                target=bounds.target,
                seconds=self.watch.clock.training,
                interrupted=self.watch.interrupted(),
                is_last=bounds.ends_window and bounds.ends_all and all_done,
                round_losses=progress.round_losses,
                window_error=None if error is None else float(error),
                tolerance=bounds.tolerance,
            ),
        )
        if end is not None:
            self._finish(*end)

    def _roll_back(self, good: StageState) -> StageState:
        """Back to the last good state, to be tried with a smaller step; give up after a few."""
        name = self.stage.name
        for attempt in range(self.progress.retries + 1, RETRIES + 1):
            self.progress.retries = attempt
            self.watch.reporter.message(
                f"NaN or infinity in {name} after step {self.progress.steps}: back to the last "
                f"good state with smaller steps (try {attempt} of {RETRIES})"
            )
            state = self.programs.retry(good)
            if is_finite(state.optimiser):
                return state
            good = good._replace(key=state.key)
        self.progress.retries = RETRIES + 1
        self._finish(
            "diverged",
            f"the {name} stage ran into NaN or infinity {self.progress.retries} times, "
            "each time with smaller steps; the last good solution is kept. A smaller "
            "rate, or a residual that is finite for any field values, may help",
        )
        return good

    def _record(self, state: StageState) -> None:
        losses, columns = jax.device_get(self.programs.measure(state))
        run, watch = self.run, self.watch
        run.losses = {name: float(value) for name, value in losses.items()}
        number = {} if self.window is None else {"window": self.progress.window + 1}
        row: dict[str, float | int | str] = {
            "step": self.progress.steps,
            **number,
            "stage": self.stage.name,
            "seconds": round(watch.clock.training, 3),
            **{f"loss_{name}": value for name, value in run.losses.items()},
            **{name: float(value) for name, value in columns.items()},
        }
        monitor = watch.monitor
        if monitor is not None:
            theta = state.optimiser.theta
            row |= watch.wait(lambda: monitor(theta, state.context, self.window))
        run.row = row
        watch.reporter.row({**row, "stage_steps": self.progress.stage_steps})
        watch.store.append(row)
        watch.show(row)


def copied(state: T) -> T:
    """A copy of a state that survives its donation."""
    return _copy(state)


@jax.jit  # one program in place of one for every array
def _copy(state: T) -> T:
    return jax.tree.map(jnp.copy, state)


def is_finite(optimiser: OptimiserState) -> bool:
    """Whether the parameters and their loss are numbers."""
    value, theta = optimiser.value, optimiser.theta
    return bool(np.isfinite(value)) and bool(jnp.all(jnp.isfinite(theta)))
