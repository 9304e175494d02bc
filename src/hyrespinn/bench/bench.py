"""Every chosen model on every chosen problem with every seed, and the tables that compare them."""

from __future__ import annotations

import dataclasses
import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..files import write_json, write_text
from ..references import reference_of
from ..run.environment import environment
from .export import as_csv, as_latex, records
from .jobs import run_cells
from .plan import PAPER_PROBLEMS, BenchRequest, plan
from .table import Cell, Grid, failures, grids, markdown

__all__ = ["PAPER_PROBLEMS", "Bench", "BenchRequest", "bench", "default_directory"]

Report = Callable[[str], Any]


@dataclass
class Bench:
    """A benchmark on disk: ``bench.json``, a run directory for each cell, and what it amounts to.

    ``table.md`` is to be read, ``table.tex`` to be printed, ``table.csv`` and ``results.json`` are
    for other programs.
    """

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
        return grids(self.cells.values(), self.models)

    @property
    def models(self) -> Sequence[str]:
        """The models in the order of the tables."""
        return self.request.models or tuple(dict.fromkeys(c.model for c in self.cells.values()))

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
        page = markdown(self._title(), self.cells.values(), self.models)
        write_text(self.path / "table.md", page)
        found = records(self.cells.values(), self.models)
        write_text(self.path / "table.csv", as_csv(found))
        write_text(self.path / "table.tex", as_latex(found, self.models))
        about = {k: content[k] for k in ("request", "environment")}
        write_json(self.path / "results.json", {**about, "results": found})

    def _title(self) -> str:
        request, machine = self.request, self.environment["machine"]
        changed = ", ".join(f"`{key}={value}`" for key, value in request.settings.items())
        limit = request.max_seconds
        parts = [
            f"method {request.method}, preset {request.preset}",
            request.precision,
            f"seeds {' '.join(map(str, request.seeds))}",
            *([f"with {changed}"] if changed else []),
            *([f"at most {limit:g} s of training"] if limit is not None else []),
            f"{machine['processor']}, {machine['cores']} cores",
            *([f"{request.jobs} cells at once, each on one core"] if request.jobs > 1 else []),
        ]
        return "# Benchmark\n\n" + "; ".join(parts) + "."


def bench(
    request: BenchRequest,
    out: str | Path,
    report: Report = print,
    *,
    verbose: bool = False,
) -> Bench:
    """Run every cell of a benchmark that has not been run yet, and keep all in ``out``.

    A cell that fails is recorded, and the others go on; Ctrl-C stops, and the next call goes on
    from there. Failed cells are tried again by the next call, except those that diverged, which
    would do so again. A finished cell stays valid while the hash of its configuration is the same,
    even where its run directory is gone; where it is not, say after a preset has changed, it is run
    again and the older run set aside. The same directory takes further problems, models and seeds.
    With several ``request.jobs`` as many cells run at once, each on one core; their steps are slower
    by that, all alike.

    ``bench(BenchRequest(["heat-1d"], ["pinn", "hyrespinn"], seeds=[0, 1]), "runs/heat").grids``
    are its tables.
    """
    path = Path(out)
    tasks = plan(request, path)
    found = _open_or_create(path, request)
    waiting = []
    for task in tasks:
        cell = task.finished(found.cells.get(task.key))
        if cell is None:
            waiting.append(task)
        else:
            found.add(cell)
    kept = len(tasks) - len(waiting)
    if kept:
        report(f"{kept} of {len(tasks)} cells were run before and are kept")
    found.write()
    if request.jobs > 1:
        for problem in {task.key[0]: task.config.problem for task in waiting}.values():
            reference_of(problem, report)  # once, and not by every process at the same time
    ahead = {task.key for task in waiting}
    for number, (cell, signal) in enumerate(
        run_cells(request, path, waiting, verbose), start=kept + 1
    ):
        if cell is not None:
            found.add(cell)
            found.write()
            ahead.discard((cell.problem, cell.model, cell.seed))
            left = forecast(found.cells.values(), ahead, request.jobs)
            report(f"{number} of {len(tasks)}  {_line(cell)}{left}")
        found.signal = signal
    return found


def forecast(cells: Iterable[Cell], ahead: Iterable[tuple[str, str, int]], jobs: int) -> str:
    """How long the cells ahead will take, if each takes what its like have taken.

    Its like are cells of its problem and model, else of its problem, else all.
    """
    known = [(cell, cell.seconds["total"]) for cell in cells if cell.seconds is not None]
    waiting = list(ahead)
    if not known or not waiting:
        return ""

    def expected(problem: str, model: str) -> float:
        alike = [s for c, s in known if (c.problem, c.model) == (problem, model)]
        alike = alike or [s for c, s in known if c.problem == problem] or [s for _, s in known]
        return statistics.fmean(alike)

    seconds = sum(expected(problem, model) for problem, model, _ in waiting) / jobs
    hours, minutes = divmod(max(1, round(seconds / 60)), 60)
    return f"; about {f'{hours} h ' if hours else ''}{minutes} min left"


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
    """``runs/bench-METHOD-PRESET``, or with ``-2``, ``-3`` … the first that is free or fits."""
    base = Path("runs") / f"bench-{request.method}-{request.preset}"
    candidates = [base, *(base.with_name(f"{base.name}-{i}") for i in range(2, 10_000))]
    return next(path for path in candidates if not path.exists() or _takes(path, request))


def _takes(path: Path, request: BenchRequest) -> bool:
    try:
        return not Bench.open(path).request.differences(request)
    except UserError:
        return False
