"""Solve a problem from its statement to its result, or go on with a run that was stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..discretise import Discretisation
from ..errors import UserError
from ..methods import Method
from ..models import ModelSpec
from ..problems.problem import Problem, problem_named
from ..solution import Solution
from ..training.watch import Callback
from .config import RunConfig, configure
from .run_directory import RunDirectory
from .session import Session


def solve(
    problem: Problem | type[Problem] | str,
    *,
    method: str | Method | Discretisation = "auto",
    preset: str = "fast",
    model: str | ModelSpec | None = None,
    seed: int = 0,
    precision: str = "float64",
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
        max_seconds: A limit on the seconds of training.
        out: A run directory to create, in which everything is kept and from which a stopped run can
            be resumed.
        settings: Single keys to change, such as ``{"model.width": 32}``; ``hyrespinn list --keys``
            shows all.
        callbacks: Each is called with every row of the history, a dict such as
            ``{"step": 50, "loss_total": 1e-3, …}``, and stops the run, to be resumed, by returning
            true.
        progress: Whether the run says how far it is.
        reference: Whether the error against the problem's reference is measured, where it has one.

    >>> import hyrespinn as hp
    >>> solution = hp.solve("heat-1d", preset="smoke", progress=False)
    >>> float(abs(solution(t=0.5, x=[0.0, 1.0])).max()) < 1e-9
    True
    """
    config = configure(
        _instance(problem),
        method=method,
        preset=preset,
        model=model,
        seed=seed,
        precision=precision,
        max_seconds=max_seconds,
        settings=settings,
    )
    return solve_configured(
        config, out, progress=progress, reference=reference, callbacks=callbacks
    )


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
) -> Solution:
    """Run a configuration; a mistake found before anything is computed leaves no directory."""
    session = Session(
        config,
        progress=progress,
        reference=reference,
        callbacks=callbacks,
        checkpoint_seconds=checkpoint_seconds,
    )
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
