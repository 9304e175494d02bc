"""The one training loop: windows of time, stages in sequence, chunk by chunk."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..losses.context import Context, first_window, next_window
from ..losses.objective import Objective
from .adaptive_windows import too_hard, window_error
from .programs import Function, Programs
from .records import Clock, Reporter, Silent, Store
from .stages import Stage
from .windows import ENDS_ALL, WHOLE, Status, Stretch, WindowOutcome, Windows, WindowStart

RETRIES = 4


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

    def cut_short(
        self, length: int, began: tuple[int, float] | None, now: tuple[int, float]
    ) -> bool:
        """Whether the time limit would end a round of this length before its time.

        ``began`` and ``now`` are the step and the seconds of training at which the last round began,
        if that is known, and ended. New points raise the loss for a while, so that those of the last
        round stay to the end then.

        >>> Stops(max_seconds=100).cut_short(250, began=(200, 70.0), now=(300, 80.0))
        True
        """
        if self.max_seconds is None or began is None or began[0] == now[0]:
            return False
        seconds_a_step = (now[1] - began[1]) / (now[0] - began[0])
        return now[1] + length * seconds_a_step > self.max_seconds


NO_STOPS = Stops()


@dataclass
class Progress:
    """Where a run is; all of it goes into a checkpoint."""

    window: int = 0  # the number of windows that are done
    stage: int = 0
    steps: int = 0  # over all windows and stages
    stage_steps: int = 0
    retries: int = 0
    next_round: int = 0  # the step of the stage at which the next round begins
    stuck_at: int = -2  # the step of the stage at which the optimiser last got stuck
    round_losses: list[float] = field(default_factory=list)
    done: Status | None = None


@dataclass(frozen=True)
class Outcome:
    """``thetas`` has the parameters of every window that was kept, at least one, and ``windows``
    what became of it; ``complete`` says whether they reach the end of time."""

    thetas: tuple[Array, ...]
    contexts: tuple[Context, ...]
    status: Status
    steps: int
    clock: Clock
    losses: dict[str, float]
    message: str
    windows: tuple[WindowOutcome, ...]
    complete: bool

    @property
    def theta(self) -> Array:
        return self.thetas[-1]


class Trainer:
    """Runs the stages of one training and can go on from a checkpoint of it.

    Every window of time begins with the same first parameters, or, ``warm``, with those of the
    window before, or it is ``continued``: the last stage goes on with those parameters and with the
    curvature that it has collected, and the other stages are for the first window alone.
    ``prepare`` may change the parameters, given the context of the window.
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
        monitor: Callable[[Array, Context, Stretch | None], Mapping[str, float]] | None = None,
        windows: Windows = WHOLE,
        window_start: WindowStart = "new",
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
        self.windows, self.window_start, self.prepare = windows, window_start, prepare
        self.interrupted = interrupted
        self.checkpoint_seconds = checkpoint_seconds
        self.progress = Progress()
        self.target = stops.target
        self.losses: dict[str, float] = {}
        self.message = ""
        self.tried: list[WindowOutcome] = []
        self.row: Mapping[str, Any] = {}
        self.programs = Programs(self.clock)
        self._compiling = False
        self._last_checkpoint = time.monotonic()

    def _measured(self, objective: Objective, state: Any) -> tuple[dict[str, Array], ...]:
        """Losses, weights that change, gates, and the estimated error where it decides."""
        theta, samples, context = state.optimiser.theta, state.samples, state.context
        diagnostics = self.objective.assemble(theta).diagnostics()
        estimates = {}
        if self.windows.tolerance is not None:
            estimates["window_error"] = window_error(objective, theta, context, self.key)
        losses, columns = objective.report(theta, samples, context)
        return losses, columns, diagnostics, estimates

    def _functions(self, index: int) -> dict[str, Function]:
        """What a stage consists of, by name."""
        stage = self.stages[index]
        objective = self.objective_of(stage)
        return {
            "start": Function(lambda t, k, c: stage.start(objective, t, k, c)),
            "renew": Function(lambda s: stage.renew(objective, s), donate=(0,)),
            "run": Function(lambda s, n: stage.run(objective, s, n), donate=(0,)),
            "measure": Function(lambda s: self._measured(objective, s)),
            "retry": Function(lambda s: stage.retry(objective, s)),
            "restart": Function(lambda s: stage.restart(objective, s)),
            "carry": Function(lambda s, before: stage.carried(objective, s, before)),
        }

    def _program(self, name: str) -> Callable[..., Any]:
        """A program of the present stage; every stage has them once, for all windows."""
        index = self.progress.stage
        return self.programs.get((index, name), self._functions(index)[name])

    def compile_ahead(self, theta: Array) -> None:
        """Begin to compile, in the background, the programs of all stages."""
        if not self._compiling:
            self._compiling = True
            context = self.context_of(self.stretch, (), theta)
            for index in range(self.progress.stage, len(self.stages)):
                self._compile_stage(index, (theta, self.key, context))

    def _compile_stage(self, index: int, begin: tuple[Array, Array, Context]) -> None:
        functions = self._functions(index)

        @cache  # in the background too
        def state() -> Any:
            return jax.eval_shape(functions["start"].call, *begin)

        shapes: dict[str, Callable[[], tuple[Any, ...]]] = {
            "start": lambda: begin,
            "renew": lambda: (state(),),
            "run": lambda: (state(), jnp.asarray(0)),
            "measure": lambda: (state(),),
        }
        self.programs.ahead([((index, name), functions[name], shapes[name]) for name in shapes])

    @property
    def stretch(self) -> Stretch | None:
        """The present window."""
        return self.windows.following(self.tried)

    def kept(self) -> list[WindowOutcome]:
        """The windows that are done."""
        return [window for window in self.tried if window.kept]

    def context_of(self, stretch: Stretch | None, thetas: Sequence[Array], theta: Array) -> Context:
        """The context in which a window begins, after windows that ended with ``thetas``."""
        if stretch is None:
            return self.objective.context()
        if not thetas:
            first = first_window(theta, stretch.start, stretch.length)
            return self.objective.context(first)
        last = self.kept()[len(thetas) - 1].stretch
        assert last is not None
        before = first_window(theta, last.start, last.length)
        window = next_window(before, thetas[-1], stretch.start, stretch.length)
        return self.objective.context(window)

    def run(
        self, theta: Array, restored: tuple[Any, Progress, Sequence[Array]] | None = None
    ) -> Outcome:
        """Train from ``theta``, or from a checkpoint's state, progress and finished windows."""
        state, thetas = None, list[Array]()
        if restored is not None:
            state, self.progress, earlier = restored
            thetas = list(earlier)
        contexts = [
            self.context_of(window.stretch, thetas[:k], theta)
            for k, window in enumerate(self.kept())
        ]
        latest = thetas[-1] if thetas else theta
        before: Any = None  # the state in which the last stage of the window before ended
        self.compile_ahead(theta)
        try:
            while not self.windows.is_over(self.tried):
                self._announce()
                if state is None:
                    self.progress = Progress(window=len(thetas), steps=self.progress.steps)
                    self.message = ""
                    context = self.context_of(self.stretch, thetas, theta)
                    first = theta if self.window_start == "new" else latest
                    if self.prepare is not None:
                        first = self.programs.get("prepare", Function(self.prepare))(first, context)
                    if self.window_start == "continued" and before is not None:
                        state = self._continued(before, first, context)
                else:
                    first, context = state.optimiser.theta, state.context
                latest, context, ended = self._window(first, context, state)
                before = ended if self.progress.stage == len(self.stages) - 1 else None
                state = None
                self._close_window()
                if self.tried[-1].kept:
                    thetas.append(latest)
                    contexts.append(context)
                if self.tried[-1].status in ENDS_ALL:
                    break
                if self.tried[-1].kept and self.tried[-1].stretch is not None:
                    self.store.keep_window(len(thetas) - 1, latest)
        finally:
            self.programs.close()
        return Outcome(
            tuple(thetas), tuple(contexts), self.tried[-1].status, self.progress.steps, self.clock,
            self.losses, self.message, tuple(self.kept()), self.windows.is_over(self.tried),
        )  # fmt: skip

    def _close_window(self) -> None:
        """Whether the window is kept; one that did not converge is, where none can be shorter."""
        stretch = self.stretch
        status: Status = self.progress.done or "completed"
        kept = status in ENDS_ALL or self._converged()
        if not kept and not self.windows.can_shorten(stretch):
            kept, status = True, "unconverged"
            self.message = too_hard(self.windows, stretch, self.row["window_error"])
        elif not kept:
            self.reporter.message(
                f"the window did not converge, its estimated error is "
                f"{self.row['window_error']:.1e}: half of it is tried"
            )
        steps = self.progress.steps - sum(window.steps for window in self.tried)
        self.tried.append(WindowOutcome(stretch, status, self.message, steps, self.row, kept))

    def _converged(self) -> bool:
        """Whether the estimated error of the window is small enough, where one is asked for."""
        tolerance = self.windows.tolerance
        return tolerance is None or self.row["window_error"] <= tolerance

    def _announce(self) -> None:
        if self.stretch is not None:
            self.reporter.message(
                f"window {self.windows.describe(self.tried)}: "
                f"time {self.stretch.start:g} to {self.stretch.end:g}"
            )

    def _continued(self, before: Any, theta: Array, context: Context) -> Any:
        """The last stage at its beginning on a new window, with what its optimiser has learnt."""
        self.progress.stage = len(self.stages) - 1
        begun = self._program("start")(theta, self.stage_key(), context)
        return _copy(self._program("carry")(begun, before.optimiser))

    def _window(self, theta: Array, context: Context, state: Any) -> tuple[Array, Context, Any]:
        """All stages on one window of time; also the state in which the last of them ended."""
        self.target = self.stops.target
        if self.stops.relative_target:
            # The scale of the data: what a network that is zero everywhere would lose, with the
            # weights of the beginning, so that a resumed run has the same target.
            scale = self.programs.get("scale", Function(partial(objective_scale, self.objective)))
            at_first = self.objective.context(context.window)
            relative = self.stops.relative_target * float(scale(theta, self.key, at_first))
            self.target = max(self.target, relative)
        ended: Any = None
        for index in range(self.progress.stage, len(self.stages)):
            if state is None:
                last = self.progress
                self.progress = Progress(
                    window=last.window, stage=index, steps=last.steps, retries=last.retries
                )
            state = ended = self._stage(self.stages[index], theta, context, state)
            theta, context = state.optimiser.theta, state.context
            if self.progress.done is not None:
                break
            state = None
        return theta, context._replace(causal=None), ended

    def stage_key(self) -> Array:
        """A key for the present stage of the present window."""
        key = jax.random.fold_in(self.key, self.progress.stage)
        return jax.random.fold_in(key, len(self.tried)) if self.tried else key

    def objective_of(self, stage: Stage) -> Objective:
        return self.objective if stage.part is None else self.objective.upto(stage.part)

    def _stage(self, stage: Stage, theta: Array, context: Context, state: Any) -> Any:
        progress = self.progress
        if state is None:
            # Copied, because an array that a program hands through may be the one it was given.
            state = _copy(self._program("start")(theta, self.stage_key(), context))
        steps = self._steps(stage)
        self.reporter.stage(stage.name, steps, progress.stage_steps, self.clock.training)
        run, renew, measure = (self._program(name) for name in ("run", "renew", "measure"))
        retry, restart = self._program("retry"), self._program("restart")
        if self._has_converged(stage, state):  # and was stopped there, before it was resumed
            self._converge(stage)
            steps = progress.stage_steps
        began: tuple[int, float] | None = None  # step and time of the last round that began here
        while progress.stage_steps < steps and progress.done is None:
            with self.clock.measure("training"):
                good = _copy(state)
            count = min(stage.chunk, steps - progress.stage_steps)
            if progress.stage_steps >= progress.next_round:
                length = stage.round_length(progress.stage_steps, steps)
                now = progress.stage_steps, self.clock.training
                if bool(state.stuck) or not self.stops.cut_short(length, began, now):
                    state, began = renew(state), now
                    progress.next_round = progress.stage_steps + length
                    count = min(count, length)
            else:
                count = min(count, progress.next_round - progress.stage_steps)
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
            if bool(state.stuck) and stage.rounds is not None:
                if progress.stage_steps < progress.next_round:  # before its end
                    progress.round_losses.append(self.losses["total"])
                    progress.next_round = progress.stage_steps
                if self._has_converged(stage, state):
                    self._converge(stage)
                    break
            elif bool(state.stuck):
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

    def _has_converged(self, stage: Stage, state: Any) -> bool:
        """Whether an optimiser that is stuck has had all of its rounds."""
        rounds = stage.rounds
        return (
            rounds is not None and bool(state.stuck) and len(self.progress.round_losses) >= rounds
        )

    def _converge(self, stage: Stage) -> None:
        """The end of a stage that has found what there is; after the last one, of the window."""
        last = self.progress.stage == len(self.stages) - 1
        if not (last and self.windows.is_last(self.tried)):
            self._should_stop(stage)
        if last and self.progress.done is None:
            self._finish("converged", "no step lowers the loss any more")

    def _steps(self, stage: Stage) -> int:
        """The steps of a stage in the present window."""
        return stage.steps if self.stretch is None else self.stretch.steps(stage.steps)

    def _finish(self, status: Status, message: str) -> None:
        self.progress.done, self.message = status, message

    def _should_stop(self, stage: Stage) -> None:
        progress, stops = self.progress, self.stops
        last = (
            self.windows.is_last(self.tried)
            and progress.stage == len(self.stages) - 1
            and progress.stage_steps >= self._steps(stage)
        )
        tolerance = self.windows.tolerance
        if tolerance is not None and self._converged():
            self._finish("target", f"the estimated error of the window reached {tolerance:.3g}")
        elif tolerance is None and self.losses["total"] <= self.target:
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
        losses, report, gates, estimates = jax.device_get(measure(state))
        self.losses = {name: float(value) for name, value in losses.items()}
        number = {} if self.stretch is None else {"window": self.progress.window + 1}
        row: dict[str, Any] = {
            "step": self.progress.steps,
            **number,
            "stage": stage.name,
            "seconds": round(self.clock.training, 3),
            **{f"loss_{name}": value for name, value in self.losses.items()},
            **{name: float(value) for name, value in {**report, **gates, **estimates}.items()},
        }
        if self.monitor is not None:
            row |= self.monitor(state.optimiser.theta, state.context, self.stretch)
        self.row = row
        self.reporter.row({**row, "stage_steps": self.progress.stage_steps})
        self.store.append(row)

    def _maybe_checkpoint(self, state: Any, force: bool = False) -> None:
        if force or time.monotonic() - self._last_checkpoint > self.checkpoint_seconds:
            self.store.checkpoint(state, {
                "progress": vars(self.progress),
                "seconds": {"training": self.clock.training, "compilation": self.clock.compilation},
                "losses": self.losses,
                "tried": [window.to_json() for window in self.tried],
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
