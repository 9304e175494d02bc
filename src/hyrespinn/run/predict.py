"""Evaluate a solution at the points of a CSV file."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from ..errors import UserError
from ..files import write_text
from ..problems.statement import state
from ..solution import Solution


def predict_file(solution: Solution, source: Path, target: Path) -> None:
    """Copy ``source`` to ``target`` with a column added for each field, 17 digits each."""
    header, rows = _read(source)
    names = solution.problem.domain.coordinates
    missing = [n for n in names if n not in header]
    if missing:
        raise UserError(
            f"{source} has no column {', '.join(missing)}; it needs {', '.join(names)} and has "
            f"{', '.join(header) or 'none'}."
        )
    clash = [f for f in solution.problem.fields if f in header]
    if clash:
        raise UserError(f"{source} has a column {', '.join(clash)} already, the name of a field.")
    points = np.empty((len(rows), len(names)))
    for i, row in enumerate(rows):
        for j, name in enumerate(names):
            points[i, j] = _number(row[header.index(name)], source, i + 2, name)
    points = _inside(solution, points, source)
    _in_time(solution, points, source)
    values = solution.at(points) if len(rows) else {f: np.empty(0) for f in solution.problem.fields}
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*header, *values])
    for i, row in enumerate(rows):
        writer.writerow([*row, *(f"{values[field][i]:.17g}" for field in values)])
    write_text(target, text.getvalue())


def _read(source: Path) -> tuple[list[str], list[list[str]]]:
    try:
        with source.open(newline="", encoding="utf-8-sig") as file:
            lines = [line for line in csv.reader(file) if line]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"Cannot read the points in {source}: {error}.") from error
    if not lines:
        raise UserError(f"{source} is empty; its first line must name the columns.")
    header = [name.strip() for name in lines[0]]
    for number, line in enumerate(lines[1:], start=2):
        if len(line) != len(header):
            raise UserError(
                f"{source}, line {number}: {len(line)} cells where the header has {len(header)}."
            )
    return header, lines[1:]


def _number(text: str, source: Path, line: int, column: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        raise UserError(f"{source}, line {line}, column {column}: {text!r} is not a number.")
    return value


def _in_time(solution: Solution, points: np.ndarray, source: Path) -> None:
    """Refuse times to which a run that was stopped did not come."""
    late = np.flatnonzero(solution.after_end(points))
    if late.size:
        first = int(late[0])
        raise UserError(
            f"{source}: {late.size} of {len(points)} points are at times for which there is no "
            f"solution, the first in line {first + 2} at {points[first, 0]:g}; {solution.until()}."
        )


def _inside(solution: Solution, points: np.ndarray, source: Path) -> np.ndarray:
    """The points with periodic coordinates wrapped; none may lie outside the closed domain."""
    problem = solution.problem
    wrapped = points.copy()
    for condition in state(problem).conditions:
        seam = condition.seam()
        if seam is not None:
            axis = problem.domain.coordinates.index(seam)
            a, b = problem.domain.bounds[axis]
            outside = (points[:, axis] < a) | (points[:, axis] > b)
            wrapped[outside, axis] = a + (points[outside, axis] - a) % (b - a)
    wrong = np.flatnonzero(~problem.domain.contains(wrapped))
    if wrong.size:
        first = int(wrong[0])
        where = ", ".join(
            f"{c} = {v:g}" for c, v in zip(problem.domain.coordinates, points[first], strict=True)
        )
        raise UserError(
            f"{source}: {wrong.size} of {len(points)} points lie outside the domain "
            f"{problem.domain!r}; the first is in line {first + 2}: {where}."
        )
    return wrapped
