"""One run in memory: what is made before training, and what becomes of it after."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..errors import UserError
from ..files import write_json
from ..losses.context import Context
from ..losses.objective import Objective
from ..metrics import split_components
from ..models import Model
from ..models.parameters import cast, flatten
from ..phases import IMPORTS, Phases
from ..plots import plot_fields, plot_history, plot_overview, prepare_to_draw
from ..problems.statement import state
from ..references import Reference, reference_of
from ..solution import Solution
from ..training.checkpoint import load_state
from ..training.interrupt import Interrupt
from ..training.last_layer import fit_last_layer
from ..training.limits import Limits
from ..training.march import March, Outcome, Restored, Training
from ..training.records import Clock, Silent
from ..training.run_state import RunState
from ..training.waiting import Stopped, Wait, Waiter
from ..training.watch import Callback, Watch
from ..training.windows import ENDS_ALL, RESUMABLE
from .compiled import kept_programs
from .config import RunConfig
from .measure import Measured, measure, per_window
from .monitor import Monitor
from .progress import reporter as make_reporter
from .report import errors_of, result_of
from .run_directory import RunDirectory
from .shown import shown_on
from .stopped import reached, stopped_early
from .verdict import judge

FINISHING = 3.5
"""Seconds after a signal in which a run may still be measured and drawn."""


class Session:
    """One run: ``run`` trains and reports, from the beginning or from a checkpoint.

    ``limit`` is on the seconds of training from here on. As many may be spent on what comes before and
    between it, on the reference and compilation, unless the session is ``patient``.
    """

    def __init__(
        self,
        config: RunConfig,
        *,
        progress: bool = True,
        reference: bool = True,
        limit: float | None = None,
        callbacks: Sequence[Callback] = (),
        checkpoint_seconds: float = 30.0,
        phases: Phases | None = None,
    ):
        self.config = config
        self.patient = False
        self.directory: RunDirectory | None = None
        self.callbacks = callbacks
        self.checkpoint_seconds = checkpoint_seconds
        self.statement = state(config.problem)
        self.discretisation = config.discretisation
        self.discretisation.check(self.statement)
        self.limit = config.max_seconds if limit is None else limit
        self.with_reference = reference
        self.reporter = make_reporter(progress)
        self.phases = phases or Phases()
        self.phases.show = self.reporter.phase
        self.clock = Clock()
        self.reference: Reference | None = None
        self.first_errors: dict[str, float] | None = None
        self.first_theta: Array | None = None
        self.march: March | None = None
        self.reached = ""  # how far a run came that was stopped
        self.measured: Solution | None = None  # with all of its result

    def run(self, meta: Mapping[str, Any] | None = None) -> Solution:
        allotment, trained = self.limit, 0.0 if meta is None else meta["seconds"]["training"]
        if allotment is not None:
            self.limit = trained + allotment
        precise = partial(jax.enable_x64, self.config.precision == "float64")
        with precise(), kept_programs(), Interrupt() as interrupt, self.reporter:
            self.reporter.message(self.config.describe())
            for caution in self.statement.cautions:
                self.reporter.message(f"Warning: {caution}")
            limits = Limits(interrupt, self.clock, self.limit, None if self.patient else allotment)
            with closing(Waiter(limits.due, precise)) as wait:
                reported, outcome = self._trained(wait, interrupt, meta)
            with closing(Waiter(limits.signalled, precise, FINISHING)) as wait:
                return self._finished(wait, reported, outcome, interrupt)

    def _trained(
        self, wait: Wait, interrupt: Interrupt, meta: Mapping[str, Any] | None
    ) -> tuple[Objective, Outcome]:
        """What errors are measured of, and what the training gave."""
        try:
            march, theta, reported, restored = wait(lambda: self._prepared(wait, interrupt, meta))
            if self.directory is not None:
                prepare_to_draw()  # while the first steps are computed
            outcome = march(theta, restored)
        except Stopped as stopped:
            path = None if self.directory is None else self.directory.path
            has_begun = self.march is not None and self.march.run.progress.steps > 0
            raise stopped_early(stopped.end, interrupt.signal, path, has_begun) from None
        finally:
            if self.march is not None:
                self.march.programs.close()
        if outcome.status in RESUMABLE:
            self.reached = reached(self.config, march.training.windows, outcome)
        return reported, outcome

    def _prepared(
        self, wait: Wait, interrupt: Interrupt, meta: Mapping[str, Any] | None
    ) -> tuple[March, Array, Objective, Restored | None]:
        """Everything that comes before the first step."""
        if self.with_reference:
            self.phases.begin("computing the reference", "reference")
            with self.clock.measure("other"):
                self.reference = reference_of(self.config.problem, self.reporter.message)
        self.phases.begin("compiling")
        with self.clock.measure("compilation"):  # operation by operation, most of it compiled
            theta, training, reported = self.training()
        for stage in training.stages:
            stage.check(training.objective, theta)
        monitor = None
        if self.reference is not None:
            monitor = Monitor(reported, self.reference)
        self.first_theta = theta
        march = self.march = March(training, self._watch(monitor, interrupt, wait))
        with self.clock.measure("other"):
            self._check_start(training.objective, theta)
            if meta is None:
                march.compile_ahead(theta)
            if monitor is not None:
                begin = march.window
                first = monitor(theta, march.context_of(begin, (), theta), begin)
                self.first_errors = {k.removeprefix("rel_l2_"): e for k, e in first.items()}
            restored = self._restore(march, theta, meta) if meta else None
        self.phases.end()
        return march, theta, reported, restored

    def training(self) -> tuple[Array, Training, Objective]:
        """The first parameters, what is trained, and what errors are measured of."""
        chosen, config = self.discretisation, self.config
        key = jax.random.key(config.seed)
        inputs = chosen.inputs(self.statement)
        model = chosen.model.build(inputs, jax.random.fold_in(key, 0))
        theta, assemble = flatten(cast(model, config.precision))
        objective, reported = chosen.pose(self.statement, assemble, config.precision)
        training = Training(
            objective,
            chosen.make_stages(assemble(theta)),
            jax.random.fold_in(key, 1),
            chosen.stopping.stops(self.limit),
            chosen.marching.windows(self.statement.domain, chosen.steps),
            chosen.marching.start,
            self._prepare(objective, jax.random.fold_in(key, 2)),
        )
        return theta, training, reported

    def _prepare(
        self, objective: Objective, key: Array
    ) -> Callable[[Array, Context], Array] | None:
        """The last layer by least squares, at the beginning of every window, where that is asked."""
        fit = self.discretisation.initial_fit
        if fit == "none":
            return None
        return lambda theta, context: fit_last_layer(objective, theta, context, key, fit)

    def _watch(self, monitor: Monitor | None, interrupt: Interrupt, wait: Wait) -> Watch:
        return Watch(
            self.clock,
            self.reporter,
            self.directory or Silent(),
            monitor,
            interrupt.requested,
            self.checkpoint_seconds,
            self.callbacks,
            wait,
        )

    def _check_start(self, objective: Objective, theta: Array) -> None:
        """The residual of the initial guess must be finite, or nothing can be trained."""
        samples = jax.jit(objective.draw)(jax.random.key(self.config.seed))
        # With the context, whose parameters are traced: another value of one compiles nothing.
        vectors = jax.jit(objective.residuals)(theta, samples, objective.context())
        for name, vector in vectors.items():
            bad = np.flatnonzero(~np.isfinite(np.asarray(vector)))
            if bad.size:
                points = np.asarray(samples["interior"].points)
                where = ""
                if vector.shape[0] == points.shape[0]:
                    names = self.config.problem.domain.coordinates
                    where = ", the first at " + ", ".join(
                        f"{c} = {v:.6g}" for c, v in zip(names, points[bad[0]], strict=True)
                    )
                raise UserError(
                    f"The {name} is NaN or infinite at {bad.size} of {vector.size} points before "
                    f"training has begun{where}. Check divisions, roots and logarithms in it: they "
                    "must be finite for any values of the fields."
                )

    def _restore(self, march: March, theta: Array, meta: Mapping[str, Any]) -> Restored:
        """State, progress and finished windows; a window that was over stays over."""
        assert self.directory is not None
        march.run = run = RunState.from_json(meta["run"])
        progress = run.progress
        if progress.done is None or progress.done in ENDS_ALL:
            progress.done, run.message = None, ""
        earlier = [
            jnp.asarray(self.directory.read_window(k, theta)) for k in range(progress.window)
        ]
        stage = march.training.stages[progress.stage]
        objective = march.training.objective_of(stage)
        template = jax.eval_shape(
            lambda t, k, c: stage.start(objective, t, k, c),
            theta,
            march.training.key,
            march.context_of(march.window, earlier, theta),
        )
        self.clock.training = meta["seconds"]["training"]
        self.clock.compilation = meta["seconds"]["compilation"]
        return Restored(load_state(self.directory.state, template), run, earlier)

    def _finished(
        self, wait: Wait, objective: Objective, outcome: Outcome, interrupt: Interrupt
    ) -> Solution:
        """The solution with its result; after a signal without what would take too long."""
        directory = self.directory
        try:
            solution = wait(lambda: self._finish(objective, outcome))
        except Stopped:
            self.directory = None  # what goes on behind writes no more
            solution = self._cut_short(objective, outcome, directory)
        if interrupt.signal is None:
            return solution
        result = {
            **solution.result,
            "signal": interrupt.signal,
            "seconds": self._seconds(directory),
        }
        if directory is not None:
            write_json(directory.result, result)
        return dataclasses.replace(solution, result=result)

    def _cut_short(
        self, objective: Objective, outcome: Outcome, directory: RunDirectory | None
    ) -> Solution:
        """What there is of a solution that could not be measured, or drawn, to the end."""
        if self.measured is not None:
            self.reporter.message("stopped while it was drawn; the solution and result are there")
            return self.measured
        solution = self._unmeasured(objective, outcome)
        if directory is not None:
            solution.save(directory.solution)
        return solution

    def _unmeasured(self, objective: Objective, outcome: Outcome) -> Solution:
        """A solution with what is known of it without computing anything."""
        result = result_of(self.config, objective, outcome, None, {}, measured=False)
        result["rel_l2_initial"] = self.first_errors
        if outcome.status not in RESUMABLE:
            text = f"interrupted while it was measured; before, it was {outcome.status}"
            result |= {"status": "interrupted", "message": text}
        elif self.reached:
            result["reached"] = self.reached
        return dataclasses.replace(self._solution(objective, outcome), result=result)

    def _seconds(self, directory: RunDirectory | None) -> dict[str, float]:
        """Where the time went; all but training, compilation and the total are of this process."""
        phases = self.phases
        since = time.perf_counter() - phases.started
        return {
            "import": IMPORTS.seconds,
            "configure": phases.took("configure"),
            "compilation": self.clock.compilation,
            "reference": phases.took("reference"),
            "training": self.clock.training,
            "estimate": phases.took("estimate"),
            "drawing": phases.took("drawing"),
            "total": since if directory is None else directory.seconds,
        }

    def _solution(self, objective: Objective, outcome: Outcome) -> Solution:
        windows = [w.window for w in outcome.windows if w.window is not None]
        networks: tuple[Model, ...] = tuple(map(objective.assemble, outcome.thetas))
        return Solution(
            self.config.problem,
            networks if windows else networks[0],
            self.discretisation.model,
            self.config.precision,
            self.discretisation.boundary,
            windows=tuple((w.start, w.end, w.length) for w in windows),
        )

    def _finish(self, objective: Objective, outcome: Outcome) -> Solution:
        config = self.config
        self.phases.begin("measuring")
        solution = self._solution(objective, outcome)
        end = None if outcome.complete else solution.end
        axes, known = shown_on(config.problem, self.reference, end)
        shown: dict[str, np.ndarray] = {}
        errors: dict[str, Any] = {}
        if self.reference is not None or self.directory is not None:
            values, derived = solution.on_axes(axes), solution.derived_on_axes(axes)
            shown = {**values, **split_components(axes, derived)}
            if self.reference is not None and outcome.complete:  # else time does not end
                errors = errors_of(config.problem, self.reference, values, derived)
        result = result_of(
            config, objective, outcome, self.reference, errors, start=self.first_theta
        )
        result["rel_l2_initial"] = self.first_errors
        result |= self._judged(objective, outcome, result["windows"])
        result["seconds"] = self._seconds(self.directory)
        if self.reached:
            result["reached"] = self.reached
        solution = dataclasses.replace(solution, result=result)
        if self.directory is not None:
            solution.save(self.directory.solution)
            write_json(self.directory.result, result)
            self.measured = solution
            self.phases.begin("drawing", "drawing")
            self._figures(self.directory, solution, axes, shown, known)
            self.phases.end()
            result["seconds"] = self._seconds(self.directory)
            write_json(self.directory.result, result)
            if self.directory.warning:
                self.reporter.message(f"Warning: {self.directory.warning}")
        return solution

    def _judged(
        self, objective: Objective, outcome: Outcome, windows: list[dict[str, Any]] | None
    ) -> dict[str, Any]:
        """The estimated error, the verdict and what is to be said; windows get theirs."""
        config = self.config
        measured = Measured(None, None)
        if config.preset != "smoke" and outcome.status not in ("diverged", "interrupted"):
            self.phases.begin("estimating the error", "estimate")
            assert self.march is not None
            measured = measure(
                self.statement, self.discretisation, self.march.training.objective,
                objective, outcome, config.precision,
            )  # fmt: skip
            self.phases.begin("measuring")
        verdict = judge(config, outcome, measured.estimate)
        for k, errors in enumerate(per_window(measured, len(windows or [])) or []):
            assert windows is not None
            windows[k]["estimated_error"] = errors
        cautions = (*self.statement.cautions, *verdict.cautions)
        return {
            "verdict": verdict.judgement,
            "estimated_error": measured.estimate and measured.estimate.as_json(),
            "fresh_gap": measured.gap,
            "warnings": [dataclasses.asdict(caution) for caution in cautions],
        }

    def _figures(
        self,
        directory: RunDirectory,
        solution: Solution,
        axes: Mapping[str, np.ndarray],
        shown: Mapping[str, np.ndarray],
        reference: Reference | None,
    ) -> None:
        config, folder = self.config, directory.figures
        title = f"{config.problem.name}, {config.method} ({config.model}), seed {config.seed}"
        known = None
        if reference is not None:
            parts = split_components(axes, reference.derived)
            known = {**reference.values, **parts}
            shown = {name: value for name, value in shown.items() if name in known}
        rows, picture = directory.rows, folder / "solution.png"
        kernels = solution.kernels
        if kernels and rows:
            plot_overview(axes, shown, known, kernels, rows, title, picture)
        else:
            plot_fields(axes, shown, known, title, picture)
        if rows:
            plot_history(rows, title, folder / "history.png")
