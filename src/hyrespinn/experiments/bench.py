"""Every chosen model on every chosen problem with every seed, and the tables that compare them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import jax

from ..errors import UserError, unknown
from ..files import write_json, write_text
from ..nn import MODELS
from ..problems.problem import Problem, derived_derivatives
from .bench_table import Cell, Grid, failures, grids, markdown
from .config import RunConfig, settings, with_settings
from .environment import environment
from .loading import load_problem
from .presets import configure
from .run_directory import RunDirectory
from .solve import resume, solve_configured

T = TypeVar("T")
Report = Callable[[str], Any]

PAPER_PROBLEMS = (
    "allen-cahn-dirichlet",
    "allen-cahn-periodic",
    "darcy-2d-dirichlet",
    "darcy-2d-neumann",
    "darcy-3d-dirichlet",
    "darcy-3d-neumann",
    "darcy-five-strip",
    "kuramoto-sivashinsky",
    "korteweg-de-vries",
    "grey-scott",
)
"""The problems of the paper's Table 1, in its order."""


@dataclass(frozen=True)
class BenchRequest:
    """What to compare. ``settings`` go to the problems and models that have the key."""

    problems: Sequence[str] = PAPER_PROBLEMS
    models: Sequence[str] = tuple(MODELS)
    seeds: Sequence[int] = (0,)
    preset: str = "smoke"
    precision: str = "float64"
    settings: Mapping[str, Any] = field(default_factory=dict)
    max_seconds: float | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            **dataclasses.asdict(self),
            "settings": {key: str(value) for key, value in self.settings.items()},
        }

    def differences(self, other: BenchRequest) -> list[str]:
        """Why the cells of the two cannot stand in one table: all but problems, models, seeds."""
        mine, its = self.to_json(), other.to_json()
        return [
            f"{name} {mine[name]!r}, not {its[name]!r}"
            for name in ("preset", "precision", "settings", "max_seconds")
            if mine[name] != its[name]
        ]

    def joined(self, other: BenchRequest) -> BenchRequest:
        """The same with the problems, models and seeds of both."""
        return dataclasses.replace(
            self,
            problems=_unique((*self.problems, *other.problems)),
            models=_unique((*self.models, *other.models)),
            seeds=_unique((*self.seeds, *other.seeds)),
        )


def _unique(items: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(items))


@dataclass
class Bench:
    """A benchmark on disk: ``bench.json``, ``table.md`` and a run directory for each cell."""

    path: Path
    request: BenchRequest
    environment: Mapping[str, Any]
    cells: dict[tuple[str, str, int], Cell] = field(default_factory=dict)
    signal: int | None = None  # the signal that stopped it

    @classmethod
    def open(cls, path: Path) -> Bench:
        """What is known of a benchmark, finished or not."""
        file = path / "bench.json"
        if not file.is_file():
            raise UserError(f"{path} is not a bench directory: it has no bench.json.")
        try:
            content = json.loads(file.read_text())
            request = BenchRequest(**content["request"])
            cells = [Cell(**cell) for cell in content["cells"]]
            found = cls(path, request, content["environment"])
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise UserError(f"{file} is damaged and cannot be read: {error!r}.") from error
        for cell in cells:
            found.add(cell)
        return found

    def add(self, cell: Cell) -> None:
        self.cells[cell.problem, cell.model, cell.seed] = cell

    @property
    def failed(self) -> list[Cell]:
        return [cell for cell in self.cells.values() if cell.failed]

    @property
    def grids(self) -> list[Grid]:
        """The tables of every problem, and the summary."""
        return grids(self.cells.values(), self.request.models)

    @property
    def failures(self) -> list[str]:
        return failures(self.cells.values())

    def write(self) -> None:
        """Keep what is known so far; after every cell, so that nothing is lost."""
        cells = [dataclasses.asdict(cell) for cell in self.cells.values()]
        content = {
            "request": self.request.to_json(),
            "environment": self.environment,
            "cells": cells,
        }
        write_json(self.path / "bench.json", content)
        page = markdown(self._title(), self.cells.values(), self.request.models)
        write_text(self.path / "table.md", page)

    def _title(self) -> str:
        request, machine = self.request, self.environment["machine"]
        changed = ", ".join(f"`{key}={value}`" for key, value in request.settings.items())
        limit = request.max_seconds
        parts = [
            f"preset {request.preset}",
            request.precision,
            f"seeds {' '.join(map(str, request.seeds))}",
            *([f"with {changed}"] if changed else []),
            *([f"at most {limit:g} s of training"] if limit is not None else []),
            f"{machine['processor']}, {machine['cores']} cores",
        ]
        return "# Benchmark\n\n" + "; ".join(parts) + "."


@dataclass(frozen=True)
class Task:
    """A cell to run, and where."""

    config: RunConfig
    path: Path

    @property
    def key(self) -> tuple[str, str, int]:
        return self.config.problem.name, self.config.model, self.config.seed

    def finished(self) -> dict[str, Any] | None:
        """The result of an earlier run that is over; a run of other settings is refused."""
        run = RunDirectory(self.path)
        if run.config.is_file():
            try:
                held = json.loads(run.config.read_text())
            except json.JSONDecodeError as error:
                raise UserError(f"{run.config} is damaged: {error}.") from error
            if _comparable(held) != _comparable(self.config.to_json()):
                raise UserError(
                    f"{self.path} holds a run of other settings than this bench asks for, perhaps "
                    "of another version of the package. Choose another --out, or remove it."
                )
        result = run.read_result()
        return None if result is None or result["status"] == "interrupted" else result

    def run(self, progress: bool) -> Mapping[str, Any]:
        """Solve it, or go on from its last checkpoint."""
        directory = RunDirectory(self.path)
        if directory.state.exists():
            return resume(self.path, progress=progress).result
        if self.path.exists():
            directory.discard_if_empty()  # it was killed before its first checkpoint
        return solve_configured(self.config, self.path, progress=progress).result

    def cell(self, result: Mapping[str, Any]) -> Cell:
        problem, model, seed = self.key
        figures = ("n_params", "steps", "seconds", "steps_per_second", "rel_l2", "rel_l2_initial")
        return Cell(
            problem,
            model,
            seed,
            result["status"],
            result["message"],
            fields=self.config.problem.fields,
            derived=derived_derivatives(self.config.problem)[1],
            **{name: result[name] for name in figures},
        )

    def failed(self, error: Exception) -> Cell:
        kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
        return Cell(*self.key, status="failed", message=f"{kind}{error}")


def _comparable(config: Mapping[str, Any]) -> Any:
    """As read from JSON, without texts for people, in which a function has another address."""
    return json.loads(json.dumps({k: v for k, v in config.items() if k != "problem_values"}))


def bench(
    request: BenchRequest, out: str | Path, report: Report = print, *, verbose: bool = False
) -> Bench:
    """Run every cell of a benchmark that has not been run yet, and keep all in ``out``.

    A cell that fails is recorded, and the others go on; Ctrl-C stops, and the next call goes on
    from there. Failed cells are tried again by the next call, except those that diverged, which
    would do so again. The same directory takes further problems, models and seeds.

    ``bench(BenchRequest(["heat-1d"], ["pinn", "hyrespinn"], seeds=[0, 1]), "runs/heat").grids``
    are its tables.
    """
    path = Path(out)
    tasks = plan(request, path)
    found = _open_or_create(path, request)
    waiting = []
    for task in tasks:
        result = task.finished()
        if result is None:
            waiting.append(task)
        else:
            found.add(task.cell(result))
    kept = len(tasks) - len(waiting)
    if kept:
        report(f"{kept} of {len(tasks)} cells were run before and are kept")
    found.write()
    before: tuple[str, str] | None = None
    for number, task in enumerate(waiting, start=kept + 1):
        if before is not None and before != task.key[:2]:
            jax.clear_caches()  # or the programs of all cells stay in memory to the end
        before = task.key[:2]
        cell = _attempt(task, verbose, found)
        if cell is not None:
            found.add(cell)
            found.write()
            report(f"{number} of {len(tasks)}  {_line(cell)}")
        if found.signal is not None:
            break
    return found


def _attempt(task: Task, verbose: bool, found: Bench) -> Cell | None:
    """Run a cell; whatever goes wrong in it is written down, and only a signal stops the bench."""
    try:
        result = task.run(verbose)
    except KeyboardInterrupt:
        found.signal = 2
        return None
    except Exception as error:
        return task.failed(error)
    if result["status"] == "interrupted":
        found.signal = int(result.get("signal", 2))
    return task.cell(result)


def _line(cell: Cell) -> str:
    if cell.seconds is None:
        return f"{cell.name}: {cell.status}: {' '.join(cell.message.split())}"
    measured = cell.rel_l2 or {}
    errors = [f"error {name} {measured[name]:.2e}" for name in cell.fields if name in measured]
    figures = [
        *([cell.status] if cell.status != "completed" else []),
        *errors,
        f"{cell.seconds['training']:.1f} s",
        f"{cell.steps_per_second:.1f} steps/s",
        f"{cell.n_params} parameters",
    ]
    return f"{cell.name}: {', '.join(figures)}"


def plan(request: BenchRequest, path: Path) -> list[Task]:
    """Every cell of a request with its configuration; any mistake in it is found here.

    >>> tasks = plan(BenchRequest(["heat-1d"], ["pinn"], seeds=[0, 1]), Path("out"))
    >>> [task.path.as_posix() for task in tasks]
    ['out/heat-1d/pinn-seed0', 'out/heat-1d/pinn-seed1']
    """
    for what in ("problems", "models", "seeds"):
        if not getattr(request, what):
            raise UserError(f"A bench needs at least one of its {what}, and was given none.")
    known: set[str] = set()
    tasks = []
    for problem in _problems(request.problems):
        for model in _unique(request.models):
            for seed in _unique(request.seeds):
                config, keys = _configured(request, problem, model, seed)
                known |= keys
                tasks.append(Task(config, path / problem.name / f"{model}-seed{seed}"))
    if not (path / "bench.json").exists():  # else further models may well lack a key of the first
        for key in request.settings:
            if key not in known:
                raise unknown("setting", key, known)
    return tasks


def _problems(texts: Sequence[str]) -> list[Problem]:
    by_name: dict[str, tuple[str, Problem]] = {}
    for text in _unique(texts):
        problem = load_problem(text)
        if problem.name in by_name:
            raise UserError(
                f"{by_name[problem.name][0]} and {text} are both called {problem.name}; a bench "
                "takes one of a name."
            )
        by_name[problem.name] = text, problem
    return [problem for _, problem in by_name.values()]


def _configured(
    request: BenchRequest, problem: Problem, model: str, seed: int
) -> tuple[RunConfig, set[str]]:
    """The configuration with the settings that the problem and the model have, and all keys."""
    config = configure(
        problem,
        model=model,
        preset=request.preset,
        seed=seed,
        precision=request.precision,
        max_seconds=request.max_seconds,
    )
    keys = set(settings(config))
    chosen = {key: value for key, value in request.settings.items() if key in keys}
    return with_settings(config, chosen), keys


def _open_or_create(path: Path, request: BenchRequest) -> Bench:
    if (path / "bench.json").exists():
        found = Bench.open(path)
        differences = found.request.differences(request)
        if differences:
            raise UserError(
                f"{path} holds another bench: it was made with {'; '.join(differences)}. Choose "
                "another --out, or ask for the same; only problems, models and seeds can be added."
            )
        return dataclasses.replace(found, request=found.request.joined(request))
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UserError(
            f"{path} exists already and is not a bench directory; choose another --out."
        )
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"Cannot make the bench directory {path}: {error.strerror}.") from error
    around = environment(request.precision, request.seeds[0])
    del around["seed"]  # each run directory has its own
    return Bench(path, request, around)


def default_directory(request: BenchRequest) -> Path:
    """``runs/bench-PRESET``, or with ``-2``, ``-3`` … the first that is free or takes the request."""
    base = Path("runs") / f"bench-{request.preset}"
    candidates = [base, *(base.with_name(f"{base.name}-{i}") for i in range(2, 10_000))]
    return next(path for path in candidates if not path.exists() or _takes(path, request))


def _takes(path: Path, request: BenchRequest) -> bool:
    try:
        return not Bench.open(path).request.differences(request)
    except UserError:
        return False
