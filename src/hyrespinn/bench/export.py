"""The figures of a benchmark for other programs: records, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from .published import published_error
from .table import ETAS, Cell, Row, problems_of, quantities, rows_of

Record = dict[str, Any]


def records(cells: Iterable[Cell], models: Sequence[str]) -> list[Record]:
    """One for each model and each quantity of each problem; ``None`` where there is no figure.

    Beside the mean error over the seeds stand the paper's own figure and, where the paper has a
    reference of its own, the error against that one.
    """
    cells = list(cells)
    found = []
    for problem in problems_of(cells):
        rows = rows_of(cells, problem, models)
        fields, derived = quantities(rows)
        for name in (*fields, *derived):
            found += [_record(problem, name, row) for row in rows if row.cells]
    return found


def _record(problem: str, quantity: str, row: Row) -> Record:
    errors, etas = row.errors(quantity), row.efficiencies(quantity)
    return {
        "problem": problem,
        "quantity": quantity,
        "model": row.model,
        "seeds": len(row.good),
        "failed": len(row.cells) - len(row.good),
        "error": row.error(quantity),
        "error_sd": statistics.stdev(errors) if len(errors) > 1 else None,
        "paper": published_error(problem, quantity, row.model),
        "error_paper_reference": row.error_of_the_paper(quantity),
        "parameters": row.parameters,
        "training_seconds": row.seconds,
        "steps_per_second": row.rate,
        **{key: etas.get(key) for key in ETAS.values()},
        "error_until": row.errors_until(quantity),
    }


def as_csv(found: Sequence[Record]) -> str:
    """The records as lines of text; errors up to parts of the time have columns of their own.

    >>> print(as_csv([{"model": "pinn", "error": 0.1, "error_until": {"0.2": 0.05}}]), end="")
    model,error,error_until_0.2
    pinn,0.1,0.05
    """
    lines = []
    for record in found:
        until = record.get("error_until") or {}
        plain = {k: v for k, v in record.items() if k != "error_until"}
        lines.append({**plain, **{f"error_until_{time}": e for time, e in until.items()}})
    columns = list(dict.fromkeys(name for line in lines for name in line))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def as_latex(found: Sequence[Record], models: Sequence[str]) -> str:
    """The mean errors as in the paper's Table 1, its own figures below ours in parentheses."""
    rows: dict[tuple[str, str], dict[str, Record]] = {}
    for record in found:
        rows.setdefault((record["problem"], record["quantity"]), {})[record["model"]] = record
    lines = [
        r"\begin{tabular}{l" + "c" * len(models) + "}",
        r"\hline",
        " & ".join(["Problem", *models]) + r" \\",
        r"\hline",
    ]
    for (problem, quantity), by_model in rows.items():
        errors = [by_model.get(m, {}).get("error") for m in models]
        known = [e for e in errors if e is not None]
        ours = [_latex(e, bold=e is not None and e == min(known)) for e in errors]
        lines.append(" & ".join([f"{problem}, ${quantity}$", *ours]) + r" \\")
        printed = [by_model.get(m, {}).get("paper") for m in models]
        if any(p is not None for p in printed):
            texts = [f"({_latex(p)})" if p is not None else "" for p in printed]
            lines.append(" & ".join([r"\quad (paper)", *texts]) + r" \\")
    return "\n".join([*lines, r"\hline", r"\end{tabular}", ""])


def _latex(value: float | None, bold: bool = False) -> str:
    if value is None:
        return "--"
    digits, exponent = f"{value:.2e}".split("e")
    text = rf"{digits}\cdot 10^{{{int(exponent)}}}"
    return rf"$\mathbf{{{text}}}$" if bold else f"${text}$"
