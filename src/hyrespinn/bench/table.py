"""The tables of a benchmark, made from the figures of its cells alone."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table
from rich.text import Text

from ..metrics import efficiencies
from .published import published_error

NONE = "–"
BASE = "pinn"  # the model whose time per step is 1
ETAS = {
    "η_params": "eta_params",
    "η_comp": "eta_comp",
    "η_DoF": "eta_dof",
    "1/(E·seconds)": "eta_seconds",
    "1/(E·N·seconds)": "eta_dof_seconds",
}


@dataclass(frozen=True)
class Cell:
    """How one run of a benchmark ended, and its key figures; ``None`` where it has none."""

    problem: str
    model: str
    seed: int
    status: str
    message: str = ""
    configuration: str | None = None  # a hash of it
    commit: str | None = None  # of the package's source
    processor: str | None = None
    fields: Sequence[str] = ()
    derived: Sequence[str] = ()
    method: str | None = None
    n_params: int | None = None  # of all windows together
    n_params_window: int | None = None
    steps: int | None = None
    seconds: Mapping[str, float] | None = None  # of training, of compilation, in total
    steps_per_second: float | None = None
    rel_l2: Mapping[str, float] | None = None
    rel_l2_initial: Mapping[str, float] | None = None
    rel_l2_until: Mapping[str, Mapping[str, float]] | None = None  # by time, then by field
    rel_l2_paper_reference: Mapping[str, float] | None = None
    verdict: str | None = None
    estimated_error: Mapping[str, float | None] | None = None
    fresh_gap: float | None = None
    trained: Mapping[str, float] | None = None  # how far groups of parameters have gone

    @property
    def failed(self) -> bool:
        return self.status in ("failed", "diverged")

    @property
    def is_over(self) -> bool:
        """Whether another try would end as this one did."""
        return self.status not in ("failed", "interrupted")

    @property
    def counts(self) -> bool:
        """Whether it ended as a run should, so that its figures enter the means."""
        return not self.failed and self.status != "interrupted"

    @property
    def name(self) -> str:
        return f"{self.problem}, {self.model}, seed {self.seed}"


@dataclass(frozen=True)
class Grid:
    """A table of texts in Markdown; what is best stands between ``**``."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """As a Markdown table, names to the left and figures to the right.

        >>> print(Grid("heat", ["model", "error"], [["pinn", "**0.1**"]]).markdown())
        | model | error |
        |---|---:|
        | pinn | **0.1** |
        """
        rule = "|---|" + "---:|" * (len(self.columns) - 1)
        body = (f"| {' | '.join(row)} |" for row in (self.columns, *self.rows))
        head, *rest = body
        return "\n".join((head, rule, *rest))

    def rich(self) -> Table:
        """For a terminal, with the title above."""
        table = Table(title=self.title, title_justify="left", box=None, pad_edge=False)
        for i, column in enumerate(self.columns):
            table.add_column(column, justify="right" if i else "left", no_wrap=True)
        for row in self.rows:
            table.add_row(*(_styled(text) for text in row))
        return table


def _styled(text: str) -> Text:
    plain = text.removeprefix("**").removesuffix("**")
    return Text(plain, style="" if plain == text else "bold")


@dataclass(frozen=True)
class Row:
    """One model on one problem: its cells of all seeds."""

    model: str
    cells: Sequence[Cell]

    @property
    def good(self) -> list[Cell]:
        return [cell for cell in self.cells if cell.counts]

    @property
    def parameters(self) -> int | None:
        return next((cell.n_params for cell in self.good), None)

    @property
    def rate(self) -> float | None:
        """Mean steps per second."""
        return mean(cell.steps_per_second for cell in self.good)

    @property
    def seconds(self) -> float | None:
        """Mean seconds of training."""
        return mean(cell.seconds["training"] if cell.seconds else None for cell in self.good)

    def errors(self, name: str) -> list[float]:
        return [cell.rel_l2[name] for cell in self.good if cell.rel_l2 and name in cell.rel_l2]

    def error(self, name: str) -> float | None:
        """Mean relative ℓ2 error of a field."""
        return mean(self.errors(name))

    def error_of_the_paper(self, name: str) -> float | None:
        """Mean error of a field against the paper's own reference, where it has another one."""
        found = [cell.rel_l2_paper_reference or {} for cell in self.good]
        return mean(errors.get(name) for errors in found)

    def errors_until(self, name: str) -> dict[str, float]:
        """Mean error of a quantity up to each part of the time, for an equation with time."""
        times = list(dict.fromkeys(t for cell in self.good for t in cell.rel_l2_until or {}))
        found = {
            t: mean((cell.rel_l2_until or {}).get(t, {}).get(name) for cell in self.good)
            for t in times
        }
        return {t: error for t, error in found.items() if error is not None}

    def efficiencies(self, field: str) -> dict[str, float]:
        """Those of the mean error, mean rate and mean time; empty where one is missing or zero."""
        figures = (self.error(field), self.parameters, self.rate, self.seconds)
        if any(not figure or not math.isfinite(figure) for figure in figures):
            return {}
        return efficiencies(*figures)  # type: ignore[arg-type]


def mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def rows_of(cells: Iterable[Cell], problem: str, models: Sequence[str]) -> list[Row]:
    """A row for each model, in the order of ``models``."""
    of_problem = [cell for cell in cells if cell.problem == problem]
    return [Row(m, [cell for cell in of_problem if cell.model == m]) for m in models]


def step_costs(rows: Sequence[Row]) -> list[float | None]:
    """The time of a step in steps of the PINN: its steps per second over the model's."""
    base = next((row.rate for row in rows if row.model == BASE), None)
    return [base / row.rate if base and row.rate else None for row in rows]


def problem_grid(cells: Iterable[Cell], problem: str, models: Sequence[str]) -> Grid:
    """Size, speed and errors of every model on a problem."""
    rows = rows_of(cells, problem, models)
    fields, derived = quantities(rows)
    with_base = any(row.model == BASE for row in rows)
    errors = [_error_column(rows, name) for name in (*fields, *derived)]
    columns = [
        ("model", [row.model for row in rows]),
        ("seeds", [f"{len(row.good)}/{len(row.cells)}" if row.cells else NONE for row in rows]),
        ("parameters", [_text(row.parameters, "d") for row in rows]),
        ("steps/s", [_text(row.rate, ".1f") for row in rows]),
        *([("step cost", [_text(cost, ".2f", "×") for cost in step_costs(rows)])] * with_base),
        ("seconds", [_text(row.seconds, ".1f") for row in rows]),
        *zip((f"error {name}" for name in (*fields, *derived)), errors, strict=True),
        *_beside(problem, rows, fields),
    ]
    heads, bodies = zip(*columns, strict=True)
    return Grid(problem, heads, list(zip(*bodies, strict=True)))


def _beside(
    problem: str, rows: Sequence[Row], fields: Sequence[str]
) -> list[tuple[str, list[str]]]:
    """What the paper printed, and errors against its own reference, where there are any."""
    columns = []
    for name in fields:
        of_field = "" if len(fields) == 1 else f" {name}"
        for title, figures in (
            (f"paper{of_field}", [published_error(problem, name, row.model) for row in rows]),
            (
                f"against the paper's reference{of_field}",
                [row.error_of_the_paper(name) for row in rows],
            ),
        ):
            if any(figure is not None for figure in figures):
                columns.append((title, [_text(figure, ".2e") for figure in figures]))
    return columns


def time_grid(cells: Iterable[Cell], problem: str, models: Sequence[str]) -> Grid:
    """The errors up to parts of the time; no rows for an equation without time."""
    rows = rows_of(cells, problem, models)
    fields, _ = quantities(rows)
    found = {(row.model, f): row.errors_until(f) for row in rows for f in fields}
    times = list(dict.fromkeys(t for errors in found.values() for t in errors))
    body = [
        [
            model if len(fields) == 1 else f"{model} {field}",
            *(_text(errors.get(t), ".2e") for t in times),
        ]
        for (model, field), errors in found.items()
        if errors
    ]
    return Grid(f"{problem}: errors up to a time", ["model", *(f"t ≤ {t}" for t in times)], body)


def efficiency_grid(cells: Iterable[Cell], problem: str, models: Sequence[str]) -> Grid:
    """The paper's efficiencies, and those with the real cost, of every model and field."""
    rows = rows_of(cells, problem, models)
    fields, _ = quantities(rows)
    body = []
    for row in rows:
        for field in fields:
            etas = row.efficiencies(field)
            label = row.model if len(fields) == 1 else f"{row.model} {field}"
            body.append([label, *(_text(etas.get(key), ".2e") for key in ETAS.values())])
    return Grid(f"{problem}: efficiencies", ["model", *ETAS], body)


def summary_grid(cells: Iterable[Cell], models: Sequence[str]) -> Grid:
    """The mean error of every model on every field of every problem, as in the paper's Table 1."""
    cells = list(cells)
    body = []
    for problem in problems_of(cells):
        rows = rows_of(cells, problem, models)
        fields, _ = quantities(rows)
        for field in fields:
            label = problem if len(fields) == 1 else f"{problem} {field}"
            means = [row.error(field) for row in rows]
            texts = [_text(mean, ".2e") for mean in means]
            body.append([label, *bold_smallest(texts, means)])
    return Grid("Mean relative ℓ2 errors", ["problem", *models], body)


def problems_of(cells: Iterable[Cell]) -> list[str]:
    return list(dict.fromkeys(cell.problem for cell in cells))


def grids(cells: Iterable[Cell], models: Sequence[str]) -> list[Grid]:
    """All tables of each problem, and the summary; tables without a row are left out."""
    cells = list(cells)
    found = []
    for problem in problems_of(cells):
        makers = (problem_grid, time_grid, efficiency_grid)
        found += [make(cells, problem, models) for make in makers]
    return [grid for grid in (*found, summary_grid(cells, models)) if grid.rows]


def failures(cells: Iterable[Cell]) -> list[str]:
    """A line for each cell that failed."""
    return [
        f"{cell.name}: {cell.status}: {' '.join(cell.message.split())}"
        for cell in cells
        if cell.failed
    ]


def markdown(title: str, cells: Iterable[Cell], models: Sequence[str]) -> str:
    """The page of a benchmark."""
    cells = list(cells)
    parts = [
        title,
        "Errors are relative ℓ2 errors, as mean (sample standard deviation) over the seeds that "
        "finished; the smallest mean is bold. A step cost of 1.50× means that a step takes 1.50 "
        "times as long as one of the PINN; steps/s and seconds are of training, without "
        "compilation.",
    ]
    for grid in grids(cells, models):
        parts += [f"## {grid.title}", grid.markdown()]
    failed = failures(cells)
    if failed:
        parts += ["## Failed", "\n".join(f"- {line}" for line in failed)]
    return "\n\n".join(parts) + "\n"


def quantities(rows: Sequence[Row]) -> tuple[list[str], list[str]]:
    """The fields, and what is derived from them, whose errors were measured for some model."""
    cells: list[Cell] = [cell for row in rows for cell in row.good]
    measured = {name for cell in cells for name in cell.rel_l2 or ()}
    return (
        [f for f in _union(cell.fields for cell in cells) if f in measured],
        [d for d in _union(cell.derived for cell in cells) if d in measured],
    )


def _union(names: Iterable[Sequence[str]]) -> list[str]:
    return list(dict.fromkeys(name for some in names for name in some))


def _error_column(rows: Sequence[Row], name: str) -> list[str]:
    means = [row.error(name) for row in rows]
    return bold_smallest([spread(row.errors(name)) for row in rows], means)


def spread(values: Sequence[float]) -> str:
    """``mean (standard deviation)``, the latter where there is one."""
    if not values:
        return NONE
    text = f"{statistics.fmean(values):.2e}"
    if len(values) == 1 or not all(map(math.isfinite, values)):
        return text
    return f"{text} ({statistics.stdev(values):.1e})"


def bold_smallest(texts: Sequence[str], values: Sequence[float | None]) -> list[str]:
    """The texts, those of the smallest value between ``**``."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    best = min(known, default=None)
    return [
        f"**{text}**" if value is not None and value == best else text
        for text, value in zip(texts, values, strict=True)
    ]


def _text(value: Any, form: str, unit: str = "") -> str:
    return NONE if value is None else f"{value:{form}}{unit}"
