"""Solve a problem from its statement to its result, or go on with a run that was stopped."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..discretise import Discretisation
from ..errors import StoppedEarly, UserError
from ..methods import Method
from ..models import ModelSpec
from ..phases import Phases, line, silent
from ..problems.problem import Problem, problem_named
from ..solution import Solution
from ..training.watch import Callback
from .config import RunConfig, configure
from .run_directory import RunDirectory
from .session import Session


class Interrupted(KeyboardInterrupt):
    """Ctrl-C has stopped a run; ``solution`` is what it had come to, ``None`` before the first step."""

    def __init__(self, solution: Solution | None):
        super().__init__("the run was interrupted")
        self.solution = solution


def solve(
    problem: Problem | type[Problem] | str,
    *,
    method: str | Method | Discretisation = "auto",
    preset: str = "fast",
    model: str | ModelSpec | None = None,
    seed: int = 0,
    precision: str = "float64",
    tolerance: float = 1e-3,
    max_seconds: float | None = None,
    out: str | Path | None = None,
    settings: Mapping[str, object] | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool = True,
    reference: bool = True,
) -> Solution:
    """Solve a problem and return the solution.

    Args:
        problem: An instance, a class, or the name of a built-in problem.
        method: ``auto``, ``network``, ``collocation``, ``paper``, the name of a method of your own, or
            a ``Method`` or ``Discretisation`` as an object.
        preset: The effort: ``smoke``, ``fast`` or ``accurate``; ``paper`` has others too.
        model: A model by name or as a specification, for the methods ``network`` and ``paper``.
        seed: Of all that is random.
        precision: ``float64`` or ``float32``.
        tolerance: The relative error up to which the verdict is ``solved``. It judges the run and does
            not change it; what a run aims at is its preset.
        max_seconds: A limit on the seconds of training. What comes before and between it, the
            reference and compilation, does not count, but may take no longer than that either.
        out: A run directory to create, in which everything is kept and from which a stopped run can
            be resumed.
        settings: Single keys to change, such as ``{"model.width": 32}``; ``hyrespinn list --keys``
            shows all.
        callbacks: Each is called with every row of the history, a dict such as
            ``{"step": 50, "loss_total": 1e-3, …}``, and stops the run, to be resumed, by returning
            true.
        progress: Whether the run says how far it is.
        reference: Whether the error against the problem's reference is measured, where it has one.

    Raises:
        KeyboardInterrupt: After Ctrl-C, within seconds and when everything is saved; its attribute
            ``solution`` is what the run had come to. A second Ctrl-C stops at once. SIGTERM likewise
            ends the run first, and then has the effect that it has elsewhere in the program.
        StoppedEarly: Where the limit was reached before the first step.

    >>> import hyrespinn as hp
    >>> solution = hp.solve("heat-1d", preset="smoke", progress=False)
    >>> float(abs(solution(t=0.5, x=[0.0, 1.0])).max()) < 1e-9
    True
    """
    phases = Phases(line if progress else silent)
    phases.begin("reading the statement", "configure")
    made = _instance(problem)
    phases.begin("choosing the method", "configure")
    config = configure(
        made,
        method=method,
        preset=preset,
        model=model,
        seed=seed,
        precision=precision,
        tolerance=tolerance,
        max_seconds=max_seconds,
        settings=settings,
    )
    try:
        solution = solve_configured(
            config, out, progress=progress, reference=reference, callbacks=callbacks, phases=phases
        )
    except StoppedEarly as stopped:
        _pass_on(stopped.signal, None)
        raise
    _pass_on(solution.result.get("signal"), solution)
    return solution


def _pass_on(number: int | None, solution: Solution | None) -> None:
    """Let a signal that has stopped a run have its effect on the program around it."""
    if number == signal.SIGINT and signal.getsignal(number) is signal.default_int_handler:
        raise Interrupted(solution)
    if number is not None:
        signal.raise_signal(number)


def _instance(problem: Problem | type[Problem] | str) -> Problem:
    made = problem_named(problem) if isinstance(problem, str) else problem
    return made() if isinstance(made, type) else made


def solve_configured(
    config: RunConfig,
    out: str | Path | None = None,
    *,
    progress: bool = True,
    reference: bool = True,
    callbacks: Sequence[Callback] = (),
    checkpoint_seconds: float = 30.0,
    phases: Phases | None = None,
    patient: bool = False,
) -> Solution:
    """Run a configuration; a mistake found before anything is computed leaves no directory.

    A signal ends the run, and the result says so. A ``patient`` run has no limit on anything but its
    training.
    """
    session = Session(
        config,
        progress=progress,
        reference=reference,
        callbacks=callbacks,
        checkpoint_seconds=checkpoint_seconds,
        phases=phases,
    )
    session.patient = patient
    if out is None:
        return session.run()
    session.directory = RunDirectory.create(Path(out), config)
    session.directory.begin = session.phases.started
    try:
        return session.run()
    except StoppedEarly:
        raise  # and the directory stays, to be resumed
    except UserError:
        session.directory.discard_if_empty()
        raise


def resume(
    path: str | Path, *, progress: bool = True, max_seconds: float | None = None
) -> Solution:
    """Go on with a run that was stopped; it ends bit by bit where it would have ended.

    Args:
        path: Its run directory.
        progress: Whether the run says how far it is.
        max_seconds: A limit on the seconds of training from now on. Without it, a run that has a limit
            gets another such allotment.

    Signals are treated as in :func:`solve`.
    """
    try:
        solution = resume_run(path, progress=progress, max_seconds=max_seconds)
    except StoppedEarly as stopped:
        _pass_on(stopped.signal, None)
        raise
    _pass_on(solution.result.get("signal"), solution)
    return solution


def resume_run(
    path: str | Path,
    *,
    progress: bool = True,
    max_seconds: float | None = None,
    phases: Phases | None = None,
    patient: bool = False,
) -> Solution:
    """Go on with a run; as in :func:`solve_configured`, its result says whether a signal ended it."""
    if phases is None:
        phases = Phases(line if progress else silent)
        phases.begin("reading the run", "configure")
    if max_seconds is not None and not max_seconds > 0:
        raise UserError(f"The time limit must be positive, not {max_seconds}.")
    directory, config = RunDirectory.open(Path(path))
    result = directory.read_result()
    if result is not None and result["status"] not in ("interrupted", "time_limit"):
        raise UserError(
            f"The run in {path} is over (status {result['status']}); there is nothing to resume."
        )
    meta = directory.check_checkpoint()
    directory.begin = phases.started
    if meta is not None:
        directory.restore(meta)
    phases.end()
    session = Session(config, progress=progress, limit=max_seconds, phases=phases)
    session.directory, session.patient = directory, patient
    return session.run(meta)
