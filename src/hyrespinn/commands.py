"""What the commands of the command line do."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from .bench.bench import PAPER_PROBLEMS, Bench, BenchRequest, bench, default_directory
from .bench.jobs import default_jobs
from .errors import EXIT_DIVERGED, EXIT_FAILED, EXIT_SIGNAL, UserError
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
from .run.solve import resume, solve_configured
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
    config = configure(
        load_problem(options.problem),
        method=options.method,
        preset=options.preset,
        model=options.model,
        seed=options.seed,
        precision=options.precision,
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
    )
    return report(solution, out, options.quiet)


def resume_command(options: argparse.Namespace) -> int:
    _load(options)
    solution = resume(
        options.directory, progress=not options.quiet, max_seconds=options.max_seconds
    )
    return report(solution, options.directory, options.quiet)


def report(solution: Solution, directory: Path, quiet: bool) -> int:
    """Say how a run ended and where things are; the exit code."""
    result = solution.result
    seconds, status = result["seconds"], result["status"]
    if not quiet:
        console = Console()

        def say(text: str) -> None:
            console.print(text, highlight=False, markup=False, soft_wrap=True)

        note = f" ({result['message']})" if result["message"] else ""
        say(f"{result['problem']}: {status}{note}")
        say(
            f"  {result['steps']} steps, {seconds['training']:.1f} s of training "
            f"({seconds['compilation']:.1f} s of compilation), {_parameters(result)}"
        )
        if result["rel_l2"] is not None:
            for field, error in result["rel_l2"].items():
                say(f"  relative l2 error of {field}: {error:.3e}")
        for name, ratio in result["relative_residual"].items():
            say(f"  relative {name} on fresh points: {ratio:.3e}")
        say(f"  solution: {directory / 'solution.hyres'}")
        say(f"  picture:  {directory / 'figures' / 'solution.png'}")
    if status == "diverged":
        Console(stderr=True).print(f"diverged: {result['message']}", soft_wrap=True, markup=False)
        return EXIT_DIVERGED
    if status == "interrupted":
        return EXIT_SIGNAL + int(result.get("signal", 2))
    return 0


def _parameters(result: Mapping[str, Any]) -> str:
    total, each = result["n_params"], result["n_params_window"]
    several = f", {total // each} windows of {each:,}" if total > each else ""
    return f"{total:,} parameters{several}"


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
