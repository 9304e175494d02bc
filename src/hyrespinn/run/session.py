"""One run in memory: what is made before training, and what becomes of it after."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
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
from ..plots import plot_fields, plot_history
from ..problems.statement import state
from ..references import Reference, error_axes, reference_of
from ..solution import Solution
from ..training.checkpoint import load_state
from ..training.interrupt import Interrupt
from ..training.last_layer import fit_last_layer
from ..training.march import March, Outcome, Restored, Training
from ..training.records import Clock, Silent
from ..training.run_state import RunState
from ..training.watch import Callback, Watch
from ..training.windows import ENDS_ALL
from .compiled import kept_programs
from .config import RunConfig
from .monitor import Monitor
from .progress import reporter as make_reporter
from .report import errors_of, result_of
from .run_directory import RunDirectory


class Session:
    """One run: ``run`` trains and reports, from the beginning or from a checkpoint."""

    def __init__(
        self,
        config: RunConfig,
        *,
        progress: bool = True,
        reference: bool = True,
        limit: float | None = None,
        callbacks: Sequence[Callback] = (),
        checkpoint_seconds: float = 30.0,
    ):
        self.begin = time.perf_counter()
        self.config = config
        self.directory: RunDirectory | None = None
        self.callbacks = callbacks
        self.checkpoint_seconds = checkpoint_seconds
        self.statement = state(config.problem)
        self.discretisation = config.discretisation
        self.discretisation.check(self.statement)
        self.limit = config.max_seconds if limit is None else limit
        self.with_reference = reference
        self.reporter = make_reporter(progress)
        self.clock = Clock()
        self.reference: Reference | None = None
        self.first_errors: dict[str, float] | None = None

    def run(self, meta: Mapping[str, Any] | None = None) -> Solution:
        config = self.config
        self.reporter.message(config.describe())
        precise = jax.enable_x64(config.precision == "float64")
        with precise, kept_programs(), Interrupt() as interrupt:
            if self.with_reference:
                self.reference = reference_of(config.problem, self.reporter.message)
            with self.clock.measure("compilation"):  # operation by operation, most of it compiled
                theta, training, reported = self.training()
            for stage in training.stages:
                stage.check(training.objective, theta)
            monitor = None
            if self.reference is not None:
                monitor = Monitor(reported, self.reference)
            march = March(training, self._watch(monitor, interrupt))
            with closing(march.programs):
                self._check_start(training.objective, theta)
                if meta is None:
                    march.compile_ahead(theta)
                if monitor is not None:
                    begin = march.window
                    first = monitor(theta, march.context_of(begin, (), theta), begin)
                    self.first_errors = {k.removeprefix("rel_l2_"): e for k, e in first.items()}
                restored = self._restore(march, theta, meta) if meta else None
                with self.reporter:
                    outcome = march(theta, restored)
            return self._finish(reported, outcome, interrupt.signal)

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

    def _watch(self, monitor: Monitor | None, interrupt: Interrupt) -> Watch:
        return Watch(
            self.clock,
            self.reporter,
            self.directory or Silent(),
            monitor,
            interrupt.requested,
            self.checkpoint_seconds,
            self.callbacks,
        )

    def _check_start(self, objective: Objective, theta: Array) -> None:
        """The residual of the initial guess must be finite, or nothing can be trained."""
        samples = jax.jit(objective.draw)(jax.random.key(self.config.seed))
        vectors = jax.jit(objective.residuals)(theta, samples)
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

    def _finish(self, objective: Objective, outcome: Outcome, signal: int | None) -> Solution:
        config = self.config
        windows = [w.window for w in outcome.windows if w.window is not None]
        networks: tuple[Model, ...] = tuple(map(objective.assemble, outcome.thetas))
        solution = Solution(
            config.problem,
            networks if windows else networks[0],
            self.discretisation.model,
            config.precision,
            self.discretisation.boundary,
            windows=tuple((w.start, w.end, w.length) for w in windows),
        )
        axes = error_axes(config.problem) if self.reference is None else self.reference.axes
        shown: dict[str, np.ndarray] = {}
        errors: dict[str, Any] = {}
        if self.reference is not None or self.directory is not None:
            values, derived = solution.on_axes(axes), solution.derived_on_axes(axes)
            shown = {**values, **split_components(axes, derived)}
            if self.reference is not None and outcome.complete:  # else time does not end
                errors = errors_of(config.problem, self.reference, values, derived)
        result = result_of(config, objective, outcome, self.reference, errors)
        result["rel_l2_initial"] = self.first_errors
        result["seconds"]["total"] = time.perf_counter() - self.begin
        if signal is not None and outcome.status == "interrupted":
            result["signal"] = signal
        solution = dataclasses.replace(solution, result=result)
        if self.directory is not None:
            solution.save(self.directory.solution)
            self._figures(self.directory, axes, shown)
            result["seconds"]["total"] = self.directory.seconds
            write_json(self.directory.result, result)
            if self.directory.warning:
                self.reporter.message(f"Warning: {self.directory.warning}")
        return solution

    def _figures(
        self,
        directory: RunDirectory,
        axes: Mapping[str, np.ndarray],
        shown: Mapping[str, np.ndarray],
    ) -> None:
        config, folder = self.config, directory.figures
        title = f"{config.problem.name}, {config.method} ({config.model}), seed {config.seed}"
        known = None
        if self.reference is not None:
            parts = split_components(axes, self.reference.derived)
            known = {**self.reference.values, **parts}
            shown = {name: value for name, value in shown.items() if name in known}
        plot_fields(axes, shown, known, title, folder / "solution.png")
        if directory.rows:
            plot_history(directory.rows, title, folder / "history.png")
