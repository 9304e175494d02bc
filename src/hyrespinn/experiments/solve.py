"""Solve a problem from its statement to its result."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..errors import UserError
from ..files import write_json
from ..geometry.lattice import Lattice
from ..geometry.sampling import sampler_named
from ..losses.balance import Balance
from ..losses.causal import Causality
from ..losses.context import Context
from ..losses.objective import Objective
from ..losses.relative_residual import relative_residual
from ..losses.terms import Counts, Weights
from ..metrics import efficiencies, split_components
from ..models import KernelExpansion
from ..models import Lattice as KernelLattice
from ..models.parameters import cast, flatten
from ..plots import plot_fields, plot_history
from ..problems.inputs import inputs_of
from ..problems.mirror import mirrored
from ..problems.problem import Problem, anatomy
from ..references import Reference, error_axes, reference_of, reference_of_the_paper
from ..solution import Solution
from ..training.adaptive_windows import AdaptiveWindows
from ..training.checkpoint import load_state
from ..training.interrupt import Interrupt
from ..training.last_layer import fit_last_layer
from ..training.march import March, Outcome, Restored, Training
from ..training.records import Clock, Silent
from ..training.run_state import RunState
from ..training.stopping import Stops
from ..training.watch import Callback, Watch
from ..training.windows import ENDS_ALL, WHOLE, FixedWindows, Windows, fixed_windows
from .compiled import kept_programs
from .config import RunConfig
from .monitor import Monitor
from .presets import configure
from .progress import reporter as make_reporter
from .run_directory import RunDirectory
from .stages import make_stages


def solve(
    problem: Problem,
    *,
    model: str = "hyrespinn",
    preset: str = "fast",
    seed: int = 0,
    precision: str = "float64",
    max_seconds: float | None = None,
    out: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool = True,
    reference: bool = True,
) -> Solution:
    """Train a network on a problem and return the solution.

    ``settings`` changes single keys of the preset, such as ``{"model.centers": 64}``; ``out`` is
    a run directory to create, in which everything is kept and from which a stopped run can be
    resumed. Each of ``callbacks`` is called with every row of the history, a dict such as
    ``{"step": 50, "loss_total": 1e-3, …}``, and stops the run, to be resumed, by returning true. The
    reference, where the problem has one, only measures the error.

    >>> import hyrespinn as hp
    >>> solution = hp.solve(hp.problems.Heat1D(), preset="smoke", progress=False,
    ...                     settings={"train.adam_steps": 5, "train.ssbroyden_steps": 0})
    >>> abs(solution(t=0.5, x=[0.0, 1.0]))
    array([0., 0.])
    """
    config = configure(
        problem,
        model=model,
        preset=preset,
        seed=seed,
        precision=precision,
        max_seconds=max_seconds,
        settings=settings,
    )
    return solve_configured(
        config, out, progress=progress, reference=reference, callbacks=callbacks
    )


def solve_configured(
    config: RunConfig,
    out: str | Path | None = None,
    *,
    progress: bool = True,
    reference: bool = True,
    callbacks: Sequence[Callback] = (),
) -> Solution:
    """Run a configuration; a mistake found before anything is computed leaves no directory."""
    session = Session(config, progress=progress, reference=reference)
    session.callbacks = callbacks
    if out is None:
        return session.run()
    session.directory = RunDirectory.create(Path(out), config)
    try:
        return session.run()
    except UserError:
        session.directory.discard_if_empty()
        raise


def resume(
    path: str | Path, *, progress: bool = True, max_seconds: float | None = None
) -> Solution:
    """Go on with a run that was stopped; it ends bit by bit where it would have ended.

    The time limit of the run counts from its start; ``max_seconds`` sets another.
    """
    directory, config = RunDirectory.open(Path(path))
    result = directory.read_result()
    if result is not None and result["status"] not in ("interrupted", "time_limit"):
        raise UserError(
            f"The run in {path} is over (status {result['status']}); there is nothing to resume."
        )
    meta = directory.check_checkpoint()
    directory.restore(meta)
    session = Session(config, progress=progress, limit=max_seconds)
    session.directory = directory
    return session.run(meta)


SHARES_OF_TIME = (0.2, 0.4, 0.6, 0.8)


class Session:
    """One run in memory: what is made before training, and what is reported after it."""

    def __init__(
        self,
        config: RunConfig,
        *,
        progress: bool = True,
        reference: bool = True,
        limit: float | None = None,
    ):
        self.begin = time.perf_counter()
        self.config = config
        self.directory: RunDirectory | None = None
        self.callbacks: Sequence[Callback] = ()
        self.found = anatomy(config.problem)
        self.windows = self._windows()
        self.limit = config.max_seconds if limit is None else limit
        self.with_reference = reference
        self.reporter = make_reporter(progress)
        self.clock = Clock()
        self.reference: Reference | None = None
        self.first_errors: dict[str, float] | None = None

    def run(self, meta: Mapping[str, Any] | None = None) -> Solution:
        config = self.config
        precise = jax.enable_x64(config.precision == "float64")
        with precise, kept_programs(), Interrupt() as interrupt:
            if self.with_reference:
                self.reference = reference_of(config.problem, self.reporter.message)
            key = jax.random.key(config.seed)
            with self.clock.measure("compilation"):  # operation by operation, most of it compiled
                theta, assemble = self._model(key)
            objective = self._objective(assemble)
            reported = self._reported(assemble, objective)
            stages = make_stages(config.train, assemble(theta))
            for stage in stages:
                stage.check(objective, theta)
            monitor = None
            if self.reference is not None:
                monitor = Monitor(reported, self.reference)
            training = Training(
                objective,
                stages,
                jax.random.fold_in(key, 1),
                Stops(
                    self.limit,
                    config.train.target_loss,
                    config.train.relative_target,
                    config.train.patience,
                ),
                self.windows,
                config.train.window_start,
                self._prepare(objective, jax.random.fold_in(key, 2)),
            )
            watch = Watch(
                self.clock,
                self.reporter,
                self.directory or Silent(),
                monitor,
                interrupt.requested,
                config.train.checkpoint_seconds,
                self.callbacks,
            )
            march = March(training, watch)
            with closing(march.programs):
                self._check_start(objective, theta, key)
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

    def _windows(self) -> Windows:
        """The windows of time, or all of it at once."""
        train, domain = self.config.train, self.config.problem.domain
        if train.windows == 1 and train.window_ends is None and not train.window_tolerance:
            return WHOLE
        if not domain.has_time:
            raise UserError(f"{domain!r} has no time to be cut into windows; leave train.windows.")
        time = domain.bounds[0]
        if train.window_tolerance:
            if train.window_ends is not None:
                raise UserError(
                    "With train.window_tolerance windows find their own lengths; leave "
                    "train.window_ends, and give a first guess of their number as train.windows."
                )
            steps = sum(steps for _, steps in train.plan())
            return AdaptiveWindows(
                time, train.windows, train.window_tolerance, steps, train.window_overshoot
            )
        return FixedWindows(
            fixed_windows(
                time,
                train.windows,
                train.window_ends,
                train.window_overshoot,
                train.window_taper,
                train.window_growth,
            )
        )

    def _prepare(
        self, objective: Objective, key: Array
    ) -> Callable[[Array, Context], Array] | None:
        """The last layer by least squares, at the beginning of every window, where that is asked."""
        fit = self.config.train.last_layer
        if fit == "none":
            return None
        return lambda theta, context: fit_last_layer(objective, theta, context, key, fit)

    def _model(self, key: Array) -> tuple[Array, Callable[[Array], Any]]:
        config = self.config
        train = config.train
        inputs = inputs_of(config.problem, self.found, train.exact, train.mirror)
        model = config.model_config.build(inputs, jax.random.fold_in(key, 0))
        return flatten(cast(model, config.precision))

    def _objective(self, assemble: Callable[[Array], Any]) -> Objective:
        """What is trained. Points on a lattice cover the image behind walls too, and train the network
        by itself, which is then odd or even as it should be."""
        problem, train = self.config.problem, self.config.train
        if train.mirror and train.lattice:
            doubled = mirrored(problem)
            return self._posed(assemble, doubled, self._lattice(doubled), mirror=False)
        return self._posed(assemble, problem, self._lattice(problem), train.mirror)

    def _reported(self, assemble: Callable[[Array], Any], trained: Objective) -> Objective:
        """What errors are measured of: the problem as it was stated."""
        problem = self.config.problem
        if trained.problem is problem:
            return trained
        return self._posed(assemble, problem, None, mirror=True)

    def _posed(
        self,
        assemble: Callable[[Array], Any],
        problem: Problem,
        lattice: Lattice | None,
        mirror: bool,
    ) -> Objective:
        train = self.config.train
        return Objective(
            problem,
            self.found,
            assemble,
            counts=Counts(train.points, train.initial_points, train.boundary_points),
            weights=Weights(
                train.weight_residual,
                train.weight_initial,
                train.weight_boundary,
                train.weight_per_order,
            ),
            sampler=sampler_named(train.sampler),
            dtype=jnp.dtype(self.config.precision),
            exact=train.exact,
            balance=Balance(train.balance, train.balance_momentum),
            causality=Causality(train.causal_chunks, train.causal_tolerances),
            lattice=lattice,
            mirror=mirror,
        )

    def _lattice(self, problem: Problem) -> Lattice | None:
        """The lattice of the points, where there is one."""
        train = self.config.train
        if not train.lattice:
            return None
        model = self.config.model_config
        if not (isinstance(model, KernelExpansion) and isinstance(model.kernels, KernelLattice)):
            raise UserError(
                "Points on a lattice are for kernels on one: take a KernelExpansion on a Lattice, and "
                "train.lattice to fit it."
            )
        for name in ("causal_chunks", "window_tolerance"):
            if getattr(train, name):
                raise UserError(
                    f"train.{name} needs points that are drawn anew; leave it, or leave "
                    "train.lattice, whose points are always the same."
                )
        periodic = inputs_of(problem, self.found, train.exact).periodic
        return Lattice(problem.domain, train.lattice, periodic)

    def _check_start(self, objective: Objective, theta: Array, key: Array) -> None:
        """The residual of the initial guess must be finite, or nothing can be trained."""
        samples = jax.jit(objective.draw)(key)
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
        networks = tuple(objective.assemble(theta) for theta in outcome.thetas)
        solution = Solution(
            config.problem,
            networks if windows else networks[0],
            config.model,
            config.model_config,
            config.precision,
            config.train.exact,
            windows=tuple((w.start, w.end, w.length) for w in windows),
            mirror=config.train.mirror,
        )
        axes = error_axes(config.problem) if self.reference is None else self.reference.axes
        shown: dict[str, np.ndarray] = {}
        errors: dict[str, Any] = {}
        if self.reference is not None or self.directory is not None:
            values, derived = solution.on_axes(axes), solution.derived_on_axes(axes)
            shown = {**values, **split_components(axes, derived)}
            if outcome.complete:  # else they do not reach the end of time
                errors = self._errors(values, derived)
        result = self._result(objective, outcome, errors)
        if signal is not None and outcome.status == "interrupted":
            result["signal"] = signal
        solution = dataclasses.replace(solution, result=result)
        if self.directory is not None:
            solution.save(self.directory.solution)
            self._figures(axes, shown)
            result["seconds"]["total"] = self.directory.seconds
            write_json(self.directory.result, result)
            if self.directory.warning:
                self.reporter.message(f"Warning: {self.directory.warning}")
        return solution

    def _errors(
        self, values: Mapping[str, np.ndarray], derived: Mapping[str, np.ndarray]
    ) -> dict[str, Any]:
        """The relative errors, also up to parts of the time, and against the paper's reference."""
        reference, domain = self.reference, self.config.problem.domain
        if reference is None:
            return {}
        errors: dict[str, Any] = {"rel_l2": reference.errors(values, derived)}
        if domain.has_time:
            begin, end = domain.bounds[0]
            errors["rel_l2_until"] = {
                f"{time:g}": reference.until(time).errors(values, derived)
                for time in (begin + share * (end - begin) for share in SHARES_OF_TIME)
            }
        printed = reference_of_the_paper(self.config.problem)
        if printed is not None:
            errors["rel_l2_paper_reference"] = printed.errors(values, derived)
        return errors

    def _window_results(self, outcome: Outcome) -> list[dict[str, Any]] | None:
        """What became of each window: its gates, losses and error at its end."""
        if self.windows == WHOLE:
            return None
        results = []
        for window in outcome.windows:
            span = window.window
            assert span is not None
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

    def _result(
        self, objective: Objective, outcome: Outcome, errors: Mapping[str, Any]
    ) -> dict[str, Any]:
        config, clock = self.config, outcome.clock
        rate = outcome.steps / clock.training if clock.training else 0.0
        result: dict[str, Any] = {
            "problem": config.problem.name,
            "model": config.model,
            "preset": config.preset,
            "seed": config.seed,
            "precision": config.precision,
            "status": outcome.status,
            "message": outcome.message,
            "n_params": int(outcome.theta.size),  # of each window
            "steps": outcome.steps,
            "seconds": {
                "training": clock.training,
                "compilation": clock.compilation,
                "total": time.perf_counter() - self.begin,
            },
            "steps_per_second": rate,
            "losses": outcome.losses,
            "relative_residual": relative_residual(
                objective, list(zip(outcome.thetas, outcome.contexts, strict=True))
            ),
            "windows": self._window_results(outcome),
            "rel_l2": None,
            "rel_l2_until": None,  # up to 0.2, 0.4, 0.6 and 0.8 of the time
            "rel_l2_paper_reference": None,  # against the paper's own, where it has another
            "rel_l2_initial": self.first_errors,  # of the untrained network
            "eta_params": None,
            "eta_comp": None,
            "eta_dof": None,
            "reference": None,
        }
        if self.reference is not None and errors:
            result |= errors
            result["reference"] = {
                "description": self.reference.description,
                "self_convergence": self.reference.self_convergence,
            }
            of_fields = {f: e for f, e in errors["rel_l2"].items() if f in config.problem.fields}
            if outcome.steps and all(e > 0 and math.isfinite(e) for e in of_fields.values()):
                etas = {
                    f: efficiencies(e, int(outcome.theta.size), rate, clock.training)
                    for f, e in of_fields.items()
                }
                for name in next(iter(etas.values())):
                    result[name] = {f: eta[name] for f, eta in etas.items()}
        return result

    def _figures(self, axes: Mapping[str, np.ndarray], shown: Mapping[str, np.ndarray]) -> None:
        assert self.directory is not None
        folder = self.directory.figures
        title = f"{self.config.problem.name}, {self.config.model}, seed {self.config.seed}"
        known = None
        if self.reference is not None:
            parts = split_components(axes, self.reference.derived)
            known = {**self.reference.values, **parts}
            shown = {name: value for name, value in shown.items() if name in known}
        plot_fields(axes, shown, known, title, folder / "solution.png")
        if self.directory.rows:
            plot_history(self.directory.rows, title, folder / "history.png")
