"""The march over windows of time: which window comes next, from which parameters, on what data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import jax
import jax.numpy as jnp
from jax import Array

from ..losses.context import Context, first_window, next_window
from ..losses.objective import Objective
from .adaptive_windows import too_hard, window_error
from .programs import Function, Programs
from .records import Clock, Reporter
from .run_state import Progress, RunState
from .stage import Stage, StageState
from .stage_run import Bounds, Measured, StageRun, copied
from .stopping import NO_STOPS, End, Stops
from .waiting import Stopped
from .watch import Watch
from .windows import ENDS_ALL, RESUMABLE, WHOLE, Status, Window, WindowOutcome, Windows, WindowStart

Prepare = Callable[[Array, Context], Array]


@dataclass(frozen=True)
class Training:
    """All that determines a training: what is trained, by which stages, over which windows.

    Every window of time begins with the same first parameters (``new``), or, ``warm``, with those of
    the window before, or it is ``continued``: the last stage goes on with those parameters and with
    the curvature that it has collected, and the other stages are for the first window alone.
    ``prepare`` may change the parameters, given the context of the window.
    """

    objective: Objective
    stages: Sequence[Stage]
    key: Array
    stops: Stops = NO_STOPS
    windows: Windows = WHOLE
    start: WindowStart = "new"
    prepare: Prepare | None = None

    def objective_of(self, stage: Stage) -> Objective:
        return self.objective if stage.part is None else self.objective.upto(stage.part)

    def measured(self, stage: Stage, state: StageState) -> Measured:
        """Losses; weights that change, gates, and the estimated error where it decides."""
        objective = self.objective_of(stage)
        theta, samples, context = state.optimiser.theta, state.samples, state.context
        losses, columns = objective.report(theta, samples, context)
        columns = {**columns, **self.objective.assemble(theta).diagnostics()}
        if self.windows.tolerance is not None:
            columns["window_error"] = window_error(objective, theta, context, self.key)
        return losses, columns


class Compiled:
    """The programs of one stage; every stage has them once, for all windows."""

    def __init__(self, training: Training, index: int, programs: Programs, reporter: Reporter):
        self.index, self.programs, self.reporter = index, programs, reporter
        stage = training.stages[index]
        objective = training.objective_of(stage)
        self.functions = {
            "start": Function(lambda t, k, c: stage.start(objective, t, k, c)),
            "renew": Function(lambda s: stage.renew(objective, s), donate=(0,)),
            "run": Function(lambda s, n: stage.run(objective, s, n), donate=(0,)),
            "measure": Function(lambda s: training.measured(stage, s)),
            "retry": Function(lambda s: stage.retry(objective, s)),
            "restart": Function(lambda s: stage.restart(objective, s)),
            "carry": Function(lambda s, before: stage.carried(objective, s, before)),
        }

    def _program(self, name: str) -> Callable[..., object]:
        return self.programs.get((self.index, name), self.functions[name])

    def _state(self, name: str, *arguments: object) -> StageState:
        state = self._program(name)(*arguments)
        assert isinstance(state, StageState)
        return state

    def start(self, theta: Array, key: Array, context: Context) -> StageState:
        # Copied, because an array that a program hands through may be the one it was given.
        return copied(self._state("start", theta, key, context))

    def carry(self, state: StageState, before: object) -> StageState:
        return copied(self._state("carry", state, before))

    def renew(self, state: StageState) -> StageState:
        return self._state("renew", state)

    def advance(self, state: StageState, count: Array) -> StageState:
        name = self.index, "run"
        if not self.programs.is_compiled(name):
            self.reporter.phase("compiling")
        self.programs.compiled(name, self.functions["run"], (state, count))
        self.reporter.phase("training")
        return self._state("run", state, count)

    def retry(self, state: StageState) -> StageState:
        return self._state("retry", state)

    def restart(self, state: StageState) -> StageState:
        return self._state("restart", state)

    def measure(self, state: StageState) -> Measured:
        found = self._program("measure")(state)
        assert isinstance(found, tuple)
        return found

    def ahead(self, theta: Array, key: Array, context: Context) -> None:
        """Begin to compile in the background what every window needs."""

        @cache  # in the background too
        def state() -> StageState:
            return jax.eval_shape(self.functions["start"].call, theta, key, context)

        shapes: dict[str, Callable[[], tuple[object, ...]]] = {
            "start": lambda: (theta, key, context),
            "renew": lambda: (state(),),
            "run": lambda: (state(), jnp.asarray(0)),
            "measure": lambda: (state(),),
        }
        self.programs.ahead([((self.index, n), self.functions[n], shapes[n]) for n in shapes])


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


@dataclass(frozen=True)
class Restored:
    """A checkpoint: the state in the middle of a window, and the parameters of those before it."""

    state: StageState
    run: RunState
    thetas: Sequence[Array]


class March:
    """Runs a training window by window, and can go on from a checkpoint of it."""

    def __init__(self, training: Training, watch: Watch | None = None):
        self.training = training
        self.watch = watch or Watch()
        self.run = RunState()
        self.programs = Programs(self.watch.clock, self.watch.wait)
        self.stages = [
            Compiled(training, i, self.programs, self.watch.reporter)
            for i in range(len(training.stages))
        ]
        self._compiling = False

    @property
    def window(self) -> Window | None:
        """The present window; ``None`` for all of the time at once."""
        return self.training.windows.following(self.run.tried)

    def compile_ahead(self, theta: Array) -> None:
        """Begin to compile, in the background, the programs of all stages."""
        if not self._compiling:
            self._compiling = True
            context = self.context_of(self.window, (), theta)
            for stage in self.stages[self.run.progress.stage :]:
                stage.ahead(theta, self.training.key, context)

    def context_of(self, window: Window | None, thetas: Sequence[Array], theta: Array) -> Context:
        """The context in which a window begins, after windows that ended with ``thetas``."""
        objective = self.training.objective
        if window is None:
            return objective.context()
        if not thetas:
            return objective.context(first_window(theta, window.start, window.length))
        last = self.run.kept()[len(thetas) - 1].window
        assert last is not None
        before = first_window(theta, last.start, last.length)
        return objective.context(next_window(before, thetas[-1], window.start, window.length))

    def stage_key(self) -> Array:
        """A key for the present stage of the present window."""
        key = jax.random.fold_in(self.training.key, self.run.progress.stage)
        tried = self.run.tried
        return jax.random.fold_in(key, len(tried)) if tried else key

    def __call__(self, theta: Array, restored: Restored | None = None) -> Outcome:
        """Train from ``theta``, or from a checkpoint.

        Where what must be waited for takes too long, the outcome is that of the last good state, which
        is stored; where there is none after a first step, :class:`Stopped` is raised.
        """
        state: StageState | None = None
        thetas: list[Array] = []
        if restored is not None:
            state, self.run, thetas = restored.state, restored.run, list(restored.thetas)
        contexts = [
            self.context_of(done.window, thetas[:k], theta)
            for k, done in enumerate(self.run.kept())
        ]
        latest = thetas[-1] if thetas else theta
        before: StageState | None = None  # in which the last stage of the window before ended
        self.compile_ahead(theta)
        windows = self.training.windows
        try:
            while not windows.is_over(self.run.tried):
                self._announce()
                if state is None:
                    first = theta if self.training.start == "new" else latest
                    context = self.context_of(self.window, thetas, theta)
                    first, state = self._begin(first, context, before, len(thetas))
                else:
                    first, context = state.optimiser.theta, state.context
                ended = self._window(first, context, state)
                latest, context = ended.optimiser.theta, ended.context._replace(causal=None)
                last_stage = self.run.progress.stage == len(self.stages) - 1
                before, state = (ended if last_stage else None), None
                outcome = self._close_window()
                if outcome.kept:
                    thetas.append(latest)
                    contexts.append(context)
                if outcome.status in ENDS_ALL:
                    break
                if outcome.kept and outcome.window is not None:
                    self.watch.store.keep_window(len(thetas) - 1, latest)
            end = End(self.run.tried[-1].status, self.run.message)
        except Stopped as stopped:
            end = stopped.end
            self._stop(end, thetas, contexts)
            if not thetas:
                raise
        finally:
            self.programs.close()
        return self._outcome(thetas, contexts, end)

    def _stop(self, end: End, thetas: list[Array], contexts: list[Context]) -> None:
        """Go back to the last good state, and store it; that of a window in progress is kept."""
        kept = self.watch.kept
        if self.run.progress.steps == 0:
            return  # nothing is lost that way
        self.watch.save()
        if (
            kept is not None
            and len(kept.run.tried) == len(self.run.tried)
            and kept.run.progress.steps
        ):
            self.run = kept.run
            self.run.progress.done, self.run.message = end
            self._close_window()
            thetas.append(kept.state.optimiser.theta)
            contexts.append(kept.state.context._replace(causal=None))

    def _outcome(self, thetas: list[Array], contexts: list[Context], end: End) -> Outcome:
        """What is left of a march; a window in the middle is no part of it before it is done."""
        run, complete = self.run, self.training.windows.is_over(self.run.tried)
        count = len(thetas)
        if not complete and count > 1 and run.kept()[-1].status in RESUMABLE:
            count -= 1
        return Outcome(
            tuple(thetas[:count]), tuple(contexts[:count]), end.status, run.progress.steps,
            self.watch.clock, run.losses, end.message, tuple(run.kept()[:count]), complete,
        )  # fmt: skip

    def _begin(
        self, first: Array, context: Context, before: StageState | None, done: int
    ) -> tuple[Array, StageState | None]:
        """The parameters with which a window begins and, where it is continued, the state."""
        run, prepare = self.run, self.training.prepare
        run.progress, run.message = Progress(window=done, steps=run.progress.steps), ""
        if prepare is not None:
            first = self.programs.get("prepare", Function(prepare))(first, context)
        if self.training.start != "continued" or before is None:
            return first, None
        run.progress.stage = len(self.stages) - 1
        last = self.stages[-1]
        begun = last.start(first, self.stage_key(), context)
        return first, last.carry(begun, before.optimiser)

    def _window(self, theta: Array, context: Context, state: StageState | None) -> StageState:
        """All stages on one window of time."""
        training, run, window = self.training, self.run, self.window
        target = self._target(theta, context)
        for index in range(run.progress.stage, len(self.stages)):
            if state is None:
                last = run.progress
                run.progress = Progress(
                    window=last.window, stage=index, steps=last.steps, retries=last.retries
                )
                state = self.stages[index].start(theta, self.stage_key(), context)
            stage = training.stages[index]
            bounds = Bounds(
                stage.steps if window is None else window.steps(stage.steps),
                target,
                training.windows.tolerance,
                ends_window=index == len(self.stages) - 1,
                ends_all=training.windows.is_last(run.tried),
            )
            advance = StageRun(
                stage, self.stages[index], bounds, training.stops, self.watch, run, window
            )
            ended = advance(state)
            theta, context, state = ended.optimiser.theta, ended.context, None
            if run.progress.done is not None:
                break
        return ended

    def _target(self, theta: Array, context: Context) -> float:
        """The loss that is enough, relative to what a network that is zero everywhere would lose.

        With the weights of the beginning, so that a resumed run has the same target.
        """
        stops, objective = self.training.stops, self.training.objective
        if not stops.relative_target:
            return stops.target
        scale = self.programs.get("scale", Function(partial(objective_scale, objective)))
        at_first = objective.context(context.window)
        relative = stops.relative_target * float(scale(theta, self.training.key, at_first))
        return max(stops.target, relative)

    def _close_window(self) -> WindowOutcome:
        """Whether the window is kept; one that did not converge is, where none can be shorter."""
        run, windows, window = self.run, self.training.windows, self.window
        status: Status = run.progress.done or "completed"
        error = float(run.row.get("window_error", 0.0))
        kept = status in ENDS_ALL or windows.tolerance is None or error <= windows.tolerance
        if not kept and not windows.can_shorten(window):
            kept, status = True, "unconverged"
            run.message = too_hard(windows, window, error)
        elif not kept:
            self.watch.reporter.message(
                f"the window did not converge, its estimated error is {error:.1e}: half of it is "
                "tried"
            )
        steps = run.progress.steps - sum(done.steps for done in run.tried)
        run.tried.append(WindowOutcome(window, status, run.message, steps, run.row, kept))
        return run.tried[-1]

    def _announce(self) -> None:
        window = self.window
        if window is not None:
            number = self.training.windows.describe(self.run.tried)
            self.watch.reporter.window(number, window.start, window.end)


def objective_scale(objective: Objective, theta: Array, key: Array, context: Context) -> Array:
    """The loss of a network that is zero everywhere."""
    return objective.value(jnp.zeros_like(theta), objective.draw(key, context), context)
