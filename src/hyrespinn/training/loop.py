"""The one training loop: windows of time, stages in sequence, chunk by chunk."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..losses.context import Context, Window, first_window, next_window
from ..losses.objective import Objective
from .stages import Stage
from .windows import Stretch

Status = Literal["completed", "target", "stalled", "time_limit", "interrupted", "diverged"]
RETRIES = 4


@runtime_checkable
class Reporter(Protocol):
    """Shows what happens; the null one shows nothing."""

    def stage(self, name: str, steps: int, done: int, seconds: float) -> None: ...
    def row(self, row: Mapping[str, Any]) -> None: ...
    def message(self, text: str) -> None: ...


@runtime_checkable
class Store(Protocol):
    """Keeps what must survive; the null one keeps nothing."""

    def append(self, row: Mapping[str, Any]) -> None: ...
    def checkpoint(self, state: Any, meta: Mapping[str, Any]) -> None: ...
    def keep_window(self, index: int, theta: Array) -> None: ...


class Silent:
    """Reports and stores nothing."""

    def stage(self, name: str, steps: int, done: int, seconds: float) -> None: ...
    def row(self, row: Mapping[str, Any]) -> None: ...
    def message(self, text: str) -> None: ...
    def append(self, row: Mapping[str, Any]) -> None: ...
    def checkpoint(self, state: Any, meta: Mapping[str, Any]) -> None: ...
    def keep_window(self, index: int, theta: Array) -> None: ...


@dataclass
class Clock:
    """Adds up the seconds of training and, apart from them, of compilation."""

    training: float = 0.0
    compilation: float = 0.0

    @contextmanager
    def measure(self, what: Literal["training", "compilation"]) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            setattr(self, what, getattr(self, what) + time.perf_counter() - begin)


@dataclass(frozen=True)
class Stops:
    """When to stop before the last step; all but the time limit are deterministic.

    ``target`` is on the loss, ``relative_target`` on the loss divided by that of a network that
    is zero everywhere. Stalled: over ``patience`` rounds the loss has not fallen to ``progress``
    times its best before.
    """

    max_seconds: float | None = None
    target: float = 0.0
    relative_target: float = 0.0
    patience: int = 0
    progress: float = 0.9


NO_STOPS = Stops()


@dataclass
class Progress:
    """Where a run is; all of it goes into a checkpoint."""

    window: int = 0
    stage: int = 0
    steps: int = 0  # over all windows and stages
    stage_steps: int = 0
    retries: int = 0
    next_round: int = 0  # the step of the stage at which the next round begins
    stuck_at: int = -2  # the step of the stage at which the optimiser last got stuck
    round_losses: list[float] = field(default_factory=list)
    done: Status | None = None


WHOLE: tuple[None] = (None,)
"""The windows of a training that takes all of the time at once, or has no time."""
ENDS_ALL = ("diverged", "time_limit", "interrupted")
"""What ends a training in the middle of its windows; anything else ends one window."""


@dataclass(frozen=True)
class WindowOutcome:
    """How the training of a window ended; ``row`` is the last one of its history."""

    status: Status
    message: str
    steps: int
    row: Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """``thetas`` has the parameters of every window that was trained, at least one."""

    thetas: tuple[Array, ...]
    contexts: tuple[Context, ...]
    status: Status
    steps: int
    clock: Clock
    losses: dict[str, float]
    message: str
    windows: tuple[WindowOutcome, ...]

    @property
    def theta(self) -> Array:
        return self.thetas[-1]


class Trainer:
    """Runs the stages of one training and can go on from a checkpoint of it.

    Every window of time begins with the same first parameters, or, ``warm``, with those of the
    window before; ``prepare`` may change them, given the context of the window.
    """

    def __init__(
        self,
        objective: Objective,
        stages: Sequence[Stage],
        key: Array,
        *,
        stops: Stops = NO_STOPS,
        clock: Clock | None = None,
        reporter: Reporter | None = None,
        store: Store | None = None,
        monitor: Callable[[Array, Context, int], Mapping[str, float]] | None = None,
        windows: Sequence[Stretch | None] = WHOLE,
        warm: bool = False,
        prepare: Callable[[Array, Context], Array] | None = None,
        interrupted: Callable[[], bool] = lambda: False,
        checkpoint_seconds: float = 30.0,
    ):
        self.objective = objective
        self.stages = stages
        self.key = key
        self.stops = stops
        self.clock = clock or Clock()
        self.reporter = reporter or Silent()
        self.store = store or Silent()
        self.monitor = monitor
        self.windows, self.warm, self.prepare = windows, warm, prepare
        self.interrupted = interrupted
        self.checkpoint_seconds = checkpoint_seconds
        self.progress = Progress()
        self.target = stops.target
        self.losses: dict[str, float] = {}
        self.message = ""
        self.finished: list[WindowOutcome] = []
        self.row: Mapping[str, Any] = {}
        self._programs: dict[tuple[int, str], Callable[..., Any]] = {}
        self._last_checkpoint = time.monotonic()

    def _measured(self, objective: Objective, state: Any) -> tuple[dict[str, Array], ...]:
        """Losses, weights that change, and gates."""
        theta, samples, context = state.optimiser.theta, state.samples, state.context
        gates = getattr(self.objective.assemble(theta), "gates", None)
        return (
            objective.losses(theta, samples, context),
            objective.report(objective.residuals(theta, samples, context), context),
            gates() if gates else {},
        )

    def _compiled(
        self, name: str, function: Callable[..., Any], donate: tuple[int, ...] = ()
    ) -> Callable[..., Any]:
        """Compile at the first call, on the compilation clock; later calls train.

        Every stage has its programs once, whatever the number of windows.
        """
        place = (self.progress.stage, name)
        if place not in self._programs:
            self._programs[place] = self._program(jax.jit(function, donate_argnums=donate))
        return self._programs[place]

    def _program(self, jitted: Any) -> Callable[..., Any]:
        ready: dict[str, Any] = {}

        def call(*arguments: Any) -> Any:
            if "code" not in ready:
                with self.clock.measure("compilation"):
                    ready["code"] = jitted.lower(*arguments).compile()
            with self.clock.measure("training"):
                return jax.block_until_ready(ready["code"](*arguments))

        return call

    def context_of(self, index: int, thetas: Sequence[Array], theta: Array) -> Context:
        """The context in which a window begins, after windows that ended with ``thetas``."""
        window: Window | None = None
        for k, stretch in enumerate(self.windows[: index + 1]):
            if stretch is None:
                break
            if window is None:
                window = first_window(theta, stretch.start, stretch.length)
            else:
                window = next_window(window, thetas[k - 1], stretch.start, stretch.length)
        return self.objective.context(window)

    def run(
        self, theta: Array, restored: tuple[Any, Progress, Sequence[Array]] | None = None
    ) -> Outcome:
        """Train from ``theta``, or from a checkpoint's state, progress and finished windows."""
        state, thetas = None, list[Array]()
        if restored is not None:
            state, self.progress, earlier = restored
            thetas = list(earlier)
        contexts = [self.context_of(k, thetas, theta) for k in range(len(thetas))]
        for index in range(self.progress.window, len(self.windows)):
            self._announce(index)
            if state is None:
                self.progress = Progress(window=index, steps=self.progress.steps)
                self.message = ""
                context = self.context_of(index, thetas, theta)
                first = thetas[-1] if self.warm and thetas else theta
                if self.prepare is not None:
                    first = self._compiled("prepare", self.prepare)(first, context)
            else:
                first, context = state.optimiser.theta, state.context
            last, context = self._window(first, context, state)
            state = None
            thetas.append(last)
            contexts.append(context)
            self._close_window()
            if self.finished[-1].status in ENDS_ALL:
                break
            if len(self.windows) > 1:
                self.store.keep_window(index, last)
        return Outcome(
            tuple(thetas), tuple(contexts), self.finished[-1].status, self.progress.steps,
            self.clock, self.losses, self.message, tuple(self.finished),
        )  # fmt: skip

    def _close_window(self) -> None:
        steps = self.progress.steps - sum(window.steps for window in self.finished)
        status: Status = self.progress.done or "completed"
        self.finished.append(WindowOutcome(status, self.message, steps, self.row))

    def _announce(self, index: int) -> None:
        stretch = self.windows[index]
        if stretch is not None:
            self.reporter.message(
                f"window {index + 1} of {len(self.windows)}: "
                f"time {stretch.start:g} to {stretch.end:g}"
            )

    def _window(self, theta: Array, context: Context, state: Any) -> tuple[Array, Context]:
        """All stages on one window of time."""
        self.target = self.stops.target
        if self.stops.relative_target:
            # The scale of the data: what a network that is zero everywhere would lose, with the
            # weights of the beginning, so that a resumed run has the same target.
            scale = self._compiled(
                "scale", lambda t, k, c: objective_scale(self.objective, t, k, c)
            )
            at_first = self.objective.context(context.window)
            relative = self.stops.relative_target * float(scale(theta, self.key, at_first))
            self.target = max(self.target, relative)
        for index in range(self.progress.stage, len(self.stages)):
            if state is None:
                last = self.progress
                self.progress = Progress(
                    window=last.window, stage=index, steps=last.steps, retries=last.retries
                )
            state = self._stage(self.stages[index], theta, context, state)
            theta, context = state.optimiser.theta, state.context
            if self.progress.done is not None:
                break
            state = None
        return theta, context._replace(causal=None)

    def stage_key(self) -> Array:
        """A key for the present stage of the present window."""
        key = jax.random.fold_in(self.key, self.progress.stage)
        return jax.random.fold_in(key, self.progress.window) if self.progress.window else key

    def objective_of(self, stage: Stage) -> Objective:
        return self.objective if stage.part is None else self.objective.upto(stage.part)

    def _stage(self, stage: Stage, theta: Array, context: Context, state: Any) -> Any:
        objective, progress = self.objective_of(stage), self.progress
        if state is None:
            start = self._compiled("start", lambda t, k, c: stage.start(objective, t, k, c))
            # Copied, because an array that a program hands through may be the one it was given.
            state = _copy(start(theta, self.stage_key(), context))
        self.reporter.stage(stage.name, stage.steps, progress.stage_steps, self.clock.training)
        run = self._compiled("run", lambda s, n: stage.run(objective, s, n), donate=(0,))
        renew = self._compiled("renew", lambda s: stage.renew(objective, s), donate=(0,))
        retry = self._compiled("retry", lambda s: stage.retry(objective, s))
        restart = self._compiled("restart", lambda s: stage.restart(objective, s))
        measure = self._compiled("measure", lambda s: self._measured(objective, s))
        while progress.stage_steps < stage.steps and progress.done is None:
            with self.clock.measure("training"):
                good = _copy(state)
            if progress.stage_steps == progress.next_round:
                state = renew(state)
                progress.next_round += stage.round_steps
            count = min(
                stage.chunk,
                stage.steps - progress.stage_steps,
                progress.next_round - progress.stage_steps,
            )
            if _is_finite(state):
                state = run(state, jnp.asarray(count))
            if not _is_finite(state):
                state = self._roll_back(stage, good, retry)
                continue
            taken = int(state.optimiser.steps) - progress.stage_steps
            progress.steps += taken
            progress.stage_steps += taken
            self._record(stage, state, measure)
            if progress.stage_steps == progress.next_round:
                progress.round_losses.append(self.losses["total"])
            if bool(state.stuck):
                # Stuck again at the very next step: even the identity finds nothing lower.
                if progress.stage_steps - progress.stuck_at <= 1:
                    self._finish("stalled", "the line search finds no lower point any more")
                    break
                progress.stuck_at = progress.stage_steps
                state = restart(state)
            self._should_stop(stage)
            self._maybe_checkpoint(state)
        self._maybe_checkpoint(state, force=progress.done is not None)
        return state

    def _finish(self, status: Status, message: str) -> None:
        self.progress.done, self.message = status, message

    def _should_stop(self, stage: Stage) -> None:
        progress, stops = self.progress, self.stops
        last = (
            progress.window == len(self.windows) - 1
            and progress.stage == len(self.stages) - 1
            and progress.stage_steps >= stage.steps
        )
        if self.losses["total"] <= self.target:
            self._finish("target", f"the loss reached its target of {self.target:.3g}")
        elif last:
            return  # everything is done, whatever the clock or a signal says
        elif self.interrupted():
            self._finish("interrupted", "interrupted; go on with `hyrespinn resume`")
        elif stops.max_seconds is not None and self.clock.training >= stops.max_seconds:
            self._finish("time_limit", f"{stops.max_seconds:g} s of training are used up")
        elif stops.patience and len(progress.round_losses) > stops.patience:
            before = min(progress.round_losses[: -stops.patience])
            if min(progress.round_losses[-stops.patience :]) > stops.progress * before:
                self._finish("stalled", f"no progress over {stops.patience} rounds")

    def _roll_back(self, stage: Stage, good: Any, retry: Callable[[Any], Any]) -> Any:
        """Back to the last good state, to be tried with a smaller step; give up after a few."""
        self.progress.retries += 1
        if self.progress.retries > RETRIES:
            self._finish(
                "diverged",
                f"the {stage.name} stage ran into NaN or infinity {self.progress.retries} times, "
                "each time with smaller steps; the last good solution is kept. A smaller "
                "train.adam_rate, or a residual that is finite for any field values, may help",
            )
            return good
        self.reporter.message(
            f"NaN or infinity in {stage.name} after step {self.progress.steps}: back to the last "
            f"good state with smaller steps (try {self.progress.retries} of {RETRIES})"
        )
        state = retry(good)
        if _is_finite(state):
            return state
        return self._roll_back(stage, good._replace(key=state.key), retry)

    def _record(self, stage: Stage, state: Any, measure: Callable[..., Any]) -> None:
        losses, report, gates = jax.device_get(measure(state))
        self.losses = {name: float(value) for name, value in losses.items()}
        number = {"window": self.progress.window + 1} if len(self.windows) > 1 else {}
        row: dict[str, Any] = {
            "step": self.progress.steps,
            **number,
            "stage": stage.name,
            "seconds": round(self.clock.training, 3),
            **{f"loss_{name}": value for name, value in self.losses.items()},
            **{name: float(value) for name, value in {**report, **gates}.items()},
        }
        if self.monitor is not None:
            row |= self.monitor(state.optimiser.theta, state.context, self.progress.window)
        self.row = row
        self.reporter.row({**row, "stage_steps": self.progress.stage_steps})
        self.store.append(row)

    def _maybe_checkpoint(self, state: Any, force: bool = False) -> None:
        if force or time.monotonic() - self._last_checkpoint > self.checkpoint_seconds:
            self.store.checkpoint(state, {
                "progress": vars(self.progress),
                "seconds": {"training": self.clock.training, "compilation": self.clock.compilation},
                "losses": self.losses,
                "finished": [vars(window) for window in self.finished],
                "message": self.message,
                "row": self.row,
            })  # fmt: skip
            self._last_checkpoint = time.monotonic()


def objective_scale(objective: Objective, theta: Array, key: Array, context: Context) -> Array:
    """The loss of a network that is zero everywhere."""
    return objective.value(jnp.zeros_like(theta), objective.draw(key, context), context)


def _copy(state: Any) -> Any:
    """A copy of a state that survives its donation."""
    return jax.tree.map(jnp.copy, state)


def _is_finite(state: Any) -> bool:
    optimiser = state.optimiser
    return bool(np.isfinite(optimiser.value)) and bool(jnp.all(jnp.isfinite(optimiser.theta)))
