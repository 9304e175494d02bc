"""What a benchmark is to run: its request, its cells, and where each of them is kept."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ..errors import StoppedEarly, UserError, unknown
from ..problems.problem import Problem
from ..problems.statement import state
from ..run.config import RunConfig, configure, settings
from ..run.loading import load_file, load_problem
from ..run.run_directory import RunDirectory
from ..run.solve import resume_run, solve_configured
from .table import Cell

T = TypeVar("T")

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

COMPARED = ("hyrespinn", "pinn", "respinn", "expertpinn", "stackedpinn", "piratenet")
"""The models of the paper."""


@dataclass(frozen=True)
class BenchRequest:
    """What to compare. ``settings`` go to the problems and models that have the key.

    ``models`` are those of the methods ``network`` and ``paper`` (``None``: the paper's six); other
    methods choose their own. ``jobs`` cells run at once, each on one core. ``load`` are files that
    register what a person adds; every process runs them.
    """

    problems: Sequence[str] = PAPER_PROBLEMS
    models: Sequence[str] | None = None
    seeds: Sequence[int] = (0,)
    method: str = "network"
    preset: str = "smoke"
    precision: str = "float64"
    settings: Mapping[str, Any] = field(default_factory=dict)
    max_seconds: float | None = None
    jobs: int = 1
    load: Sequence[str] = ()

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
            for name in ("method", "preset", "precision", "settings", "max_seconds", "jobs")
            if mine[name] != its[name]
        ]

    @property
    def compared(self) -> tuple[str | None, ...]:
        """The models to compare, or none where the method chooses."""
        if self.models:
            return _unique(self.models)
        return COMPARED if self.method in ("network", "paper") else (None,)

    def joined(self, other: BenchRequest) -> BenchRequest:
        """The same with the problems, models and seeds of both."""
        return dataclasses.replace(
            self,
            problems=_unique((*self.problems, *other.problems)),
            models=_unique((*self.models, *other.models)) if self.models and other.models else None,
            seeds=_unique((*self.seeds, *other.seeds)),
            load=_unique((*self.load, *other.load)),
        )


def _unique(items: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(items))


@dataclass(frozen=True)
class Task:
    """A cell to run, and where."""

    config: RunConfig
    path: Path

    @property
    def key(self) -> tuple[str, str, int]:
        return self.config.problem.name, self.config.model, self.config.seed

    @property
    def configuration(self) -> str:
        """A hash of all that determines the run; a cell stays valid while it is the same."""
        return digest(self.config.to_json())

    def finished(self, known: Cell | None = None) -> Cell | None:
        """The cell of an earlier run that is over, if its configuration was this one.

        It is the one that is ``known``, whose directory need not be there any more, or else what
        the directory holds.
        """
        if known is not None and known.configuration == self.configuration and known.is_over:
            return known
        if self._held() != self.configuration:
            return None
        result = RunDirectory(self.path).read_result()
        return None if result is None or result["status"] == "interrupted" else self.cell(result)

    def _held(self) -> str | None:
        """The hash of the configuration that is in the directory."""
        file = RunDirectory(self.path).config
        if not file.is_file():
            return None
        try:
            return digest(json.loads(file.read_text()))
        except json.JSONDecodeError as error:
            raise UserError(f"{file} is damaged: {error}.") from error

    def run(self, progress: bool) -> Mapping[str, Any]:
        """Solve it, or go on from its last checkpoint.

        A run of another configuration, perhaps of another version of the package, is set aside.
        """
        held = self._held()
        if held not in (None, self.configuration):
            name = f"{self.path.name}-{held}"
            names = (name if i == 1 else f"{name}-{i}" for i in itertools.count(1))
            places = (self.path.with_name(name) for name in names)
            self.path.rename(next(place for place in places if not place.exists()))
        directory = RunDirectory(self.path)
        if directory.state.exists():
            return resume_run(self.path, progress=progress, patient=True).result
        if self.path.exists():
            directory.discard_if_empty()  # it was killed before its first checkpoint
        solution = solve_configured(self.config, self.path, progress=progress, patient=True)
        return solution.result

    def cell(self, result: Mapping[str, Any]) -> Cell:
        problem, model, seed = self.key
        figures = (
            "method",
            "n_params",
            "n_params_window",
            "steps",
            "seconds",
            "steps_per_second",
            "rel_l2",
            "rel_l2_initial",
            "rel_l2_until",
            "rel_l2_paper_reference",
            "verdict",
            "estimated_error",
            "fresh_gap",
            "trained",
        )
        return Cell(
            problem,
            model,
            seed,
            result["status"],
            result["message"],
            configuration=self.configuration,
            **RunDirectory(self.path).origin,
            fields=self.config.problem.fields,
            derived=state(self.config.problem).derived.names,
            **{name: result.get(name) for name in figures},
        )

    def failed(self, error: Exception) -> Cell:
        kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
        return Cell(*self.key, status="failed", message=f"{kind}{error}")


def _as_stored(content: Mapping[str, Any]) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(json.dumps(content))
    return stored


def digest(config: Mapping[str, Any]) -> str:
    """A hash of a configuration, without texts for people, in which a function has an address, and
    without the tolerance, which judges a run and does not change it.

    The hash is the same before and after a configuration is written to a file, where tuples become
    lists.
    """
    others = ("problem_values", "why", "rejected", "tolerance")
    content = _as_stored({k: v for k, v in config.items() if k not in others})
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


def attempt(task: Task, verbose: bool = False) -> tuple[Cell | None, int | None]:
    """Run a cell; whatever goes wrong in it is written down, and only a signal stops the bench."""
    try:
        result = task.run(verbose)
    except KeyboardInterrupt:
        return None, 2
    except StoppedEarly as early:  # a bench is patient, so that it was a signal
        return None, early.signal
    except Exception as error:
        return task.failed(error), None
    stopped = result["status"] == "interrupted"
    return task.cell(result), int(result.get("signal", 2)) if stopped else None


def plan(request: BenchRequest, path: Path) -> list[Task]:
    """Every cell of a request with its configuration; any mistake in it is found here.

    >>> tasks = plan(BenchRequest(["heat-1d"], ["pinn"], seeds=[0, 1]), Path("out"))
    >>> [task.path.as_posix() for task in tasks]
    ['out/heat-1d/pinn-seed0', 'out/heat-1d/pinn-seed1']
    """
    given = {"problems": request.problems, "models": request.compared, "seeds": request.seeds}
    for file in request.load:
        load_file(Path(file))
    for what, chosen in given.items():
        if not chosen:
            raise UserError(f"A bench needs at least one of its {what}, and was given none.")
    known: set[str] = set()
    tasks = []
    for problem in _problems(request.problems):
        for model in request.compared:
            config, keys = _configured(request, problem, model)
            known |= keys
            for seed in _unique(request.seeds):
                place = path / problem.name / f"{config.model}-seed{seed}"
                tasks.append(Task(dataclasses.replace(config, seed=seed), place))
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
    request: BenchRequest, problem: Problem, model: str | None
) -> tuple[RunConfig, set[str]]:
    """The configuration with the settings that the problem and the model have, and all keys.

    It is the same for all seeds: a method looks at the problem, which takes a second or two.
    """
    made = partial(
        configure,
        problem,
        method=request.method,
        model=model,
        preset=request.preset,
        precision=request.precision,
        max_seconds=request.max_seconds,
    )
    config = made()
    keys = set(settings(config))
    # Keys of another kind of part, such as marching.count, come with the key that chooses it.
    kinds = [key for key in request.settings if key in keys]
    below = {key for key in request.settings if any(key.startswith(f"{kind}.") for kind in kinds)}
    keys |= below
    chosen = {key: value for key, value in request.settings.items() if key in keys}
    return made(settings=chosen) if chosen else config, keys
