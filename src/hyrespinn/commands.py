"""What the commands of the command line do."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from .bench.bench import PAPER_PROBLEMS, Bench, BenchRequest, bench, default_directory
from .bench.jobs import default_jobs
from .errors import (
    EXIT_DIVERGED,
    EXIT_FAILED,
    EXIT_LIMIT,
    EXIT_SIGNAL,
    EXIT_UNRESOLVED,
    UserError,
)
from .files import write_atomically
from .metrics import split_components
from .plots import plot_fields
from .problems.problem import PROBLEMS, Problem
from .problems.statement import state
from .references import reference_of
from .references.reference import recipe_of, stored_self_convergence
from .run.config import RunConfig, configure, documentation, settings, with_parameters
from .run.loading import load_file, load_problem
from .run.predict import predict_file
from .run.solve import resume_run, solve_configured
from .run.summary import in_brief, in_full
from .settings import as_text, parse_assignments
from .solution import Solution


def _load(options: argparse.Namespace) -> None:
    for path in options.load:
        load_file(path)


def list_command(options: argparse.Namespace) -> int:
    _load(options)
    if options.keys:
        config = configure(
            load_problem(options.keys),
            method=options.method,
            preset=options.preset,
            model=options.model,
            settings=parse_assignments(options.set),
        )
        docs = documentation(config)
        for key, value in settings(config).items():
            line = f"{key}={as_text(value)}"
            _say(f"{line:<44}  # {docs[key]}" if docs.get(key) else line)
        return 0
    table = Table(box=None, pad_edge=False)
    for column in ("problem", "coordinates", "fields", "reference ±", "what it is"):
        table.add_column(column, no_wrap=True)
    for name, cls in PROBLEMS.items():
        problem = cls()
        table.add_row(
            name,
            " ".join(problem.domain.coordinates),
            " ".join((*problem.fields, *state(problem).derived.names)),
            _accuracy(problem),
            problem.description,
        )
    Console(width=160).print(table, soft_wrap=True)  # whole names on a narrow terminal too
    return 0


def _accuracy(problem: Problem) -> str:
    if recipe_of(problem) is None:
        return "exact"
    figure = stored_self_convergence(problem)
    return "not measured" if figure is None else f"{figure:.0e}"


def _default_directory(config: RunConfig) -> Path:
    base = Path("runs") / f"{config.problem.name}-{config.method}-{config.preset}-seed{config.seed}"
    candidates = [base, *(base.with_name(f"{base.name}-{i}") for i in range(2, 10_000))]
    return next(path for path in candidates if not path.exists())


def solve_command(options: argparse.Namespace) -> int:
    _load(options)
    problem = load_problem(options.problem)
    options.phases.begin("choosing the method", "configure")
    config = configure(
        problem,
        method=options.method,
        preset=options.preset,
        model=options.model,
        seed=options.seed,
        precision=options.precision,
        tolerance=options.tolerance,
        max_seconds=options.max_seconds,
        settings=parse_assignments(options.set),
    )
    out = options.out or _default_directory(config)
    solution = solve_configured(
        config,
        out,
        progress=not options.quiet,
        reference=not options.no_reference,
        checkpoint_seconds=options.checkpoint_seconds,
        phases=options.phases,
    )
    return report(solution, out, options.quiet)


def resume_command(options: argparse.Namespace) -> int:
    _load(options)
    solution = resume_run(
        options.directory,
        progress=not options.quiet,
        max_seconds=options.max_seconds,
        phases=options.phases,
    )
    return report(solution, options.directory, options.quiet)


def report(solution: Solution, directory: Path, quiet: bool) -> int:
    """Say how a run ended and where things are; the exit code."""
    result = solution.result
    for text in in_brief(result, directory) if quiet else in_full(result, directory):
        _say(text)
    if result.get("signal") is not None:
        return EXIT_SIGNAL + int(result["signal"])
    match result["status"]:
        case "diverged":
            message = f"diverged: {result['message']}"
            Console(stderr=True).print(message, soft_wrap=True, markup=False)
            return EXIT_DIVERGED
        case "interrupted":
            return EXIT_SIGNAL + 2
        case "time_limit" if result["verdict"] != "solved":
            return EXIT_LIMIT
    judged = result["preset"] != "smoke"
    return EXIT_UNRESOLVED if judged and result["verdict"] == "unresolved" else 0


def predict_command(options: argparse.Namespace) -> int:
    _load(options)
    path: Path = options.directory
    file = path / "solution.hyres" if path.is_dir() else path
    if path.is_dir() and not file.exists():
        raise UserError(
            f"{path} has no solution.hyres; is it a run directory, and is the run over?"
        )
    predict_file(Solution.load(file), options.points, options.out)
    return 0


def reference_command(options: argparse.Namespace) -> int:
    changes = parse_assignments(options.set)
    problem = with_parameters(load_problem(options.problem), changes)
    for key in changes:
        if key.partition(".")[0] != "problem":
            raise UserError(f"A reference has the keys problem.… alone; {key} is for solve.")
    name = problem.name
    if options.out is None and options.plot is None:
        raise UserError("Say what to do with the reference: --out FILE.npz, --plot, or both.")

    def say(text: str) -> None:
        Console().print(text, highlight=False, markup=False, soft_wrap=True)

    reference = reference_of(problem, say)
    if reference is None:
        raise UserError(f"{name} has no reference: it defines no exact solution.")
    text = reference.description
    if reference.self_convergence is not None:
        text += f"; {reference.self_convergence:.1e} from twice the resolution"
    if options.out is not None:
        write_atomically(
            options.out, lambda file: np.savez(file, allow_pickle=False, **reference.arrays())
        )
        say(f"{options.out}: {text}")
    if options.plot is not None:
        path = Path(f"{name}-reference.png") if options.plot == Path() else options.plot
        parts = split_components(reference.axes, reference.derived)
        figure = plot_fields(reference.axes, {**reference.values, **parts}, title=f"{name}: {text}")
        kind = path.suffix.removeprefix(".").lower() or "png"
        if kind not in figure.canvas.get_supported_filetypes():
            raise UserError(f"Cannot draw a picture of the kind {kind!r}; use .png, .pdf or .svg.")
        write_atomically(path, lambda file: figure.savefig(file, dpi=150, format=kind))
        say(f"{path}: {text}")
    return 0


def bench_command(options: argparse.Namespace) -> int:
    if options.show is not None:
        show_bench(Bench.open(options.show))
        return 0
    request = BenchRequest(
        problems=options.problems or PAPER_PROBLEMS,
        models=options.models,
        seeds=tuple(range(options.seeds)),
        method=options.method,
        preset=options.preset,
        precision=options.precision,
        settings=parse_assignments(options.set),
        max_seconds=options.max_seconds,
        jobs=default_jobs() if options.jobs is None else options.jobs,
        load=tuple(map(str, options.load)),
    )
    out = options.out or default_directory(request)
    found = bench(request, out, _say, verbose=options.verbose)
    show_bench(found)
    if found.signal is not None:
        return EXIT_SIGNAL + found.signal
    if any(cell.status == "failed" for cell in found.failed):
        return EXIT_FAILED
    return EXIT_DIVERGED if found.failed else 0


def show_bench(found: Bench) -> None:
    """Print the tables, and what failed."""
    console = Console(width=160)  # whole columns on a narrow terminal too
    for grid in found.grids:
        console.print(grid.rich(), "", soft_wrap=True)
    _say(f"tables: {found.path / 'table.md'}")
    for line in found.failures:
        Console(stderr=True).print(line, soft_wrap=True, markup=False, highlight=False)


def _say(text: str) -> None:
    Console().print(text, highlight=False, markup=False, soft_wrap=True)


COMMANDS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "list": list_command,
    "solve": solve_command,
    "resume": resume_command,
    "predict": predict_command,
    "reference": reference_command,
    "bench": bench_command,
}
