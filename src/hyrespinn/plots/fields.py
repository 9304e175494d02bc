"""Pictures of fields on a grid: the solution, the reference and the error between them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .saving import save

if TYPE_CHECKING:  # matplotlib takes a while to import
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure, FigureBase

FIELD_MAP, ERROR_MAP = "RdBu_r", "magma"
DECADES = 4
"""How far below the largest error the colours of errors go."""


def plot_fields(
    axes: Mapping[str, np.ndarray],
    values: Mapping[str, np.ndarray],
    reference: Mapping[str, np.ndarray] | None = None,
    title: str = "",
    path: str | Path | None = None,
) -> Figure:
    """One row a field: the solution and, with a reference, the reference and the absolute error.

    In one dimension the fields are lines, in two colour maps. With more, the grid is cut: at the
    final time (or, without a reference, at four times) and at a third of a third axis
    (where a sine and a cosine both show).
    """
    from matplotlib.figure import Figure

    rows, columns = shape_of(axes, values, reference)
    figure = Figure(figsize=size_of(rows, columns), layout="constrained")
    draw_fields(figure, axes, values, reference)
    if title:
        figure.suptitle(textwrap.fill(title, 45 * columns), fontsize="medium")
    if path is not None:
        save(figure, path)
    return figure


def shape_of(
    axes: Mapping[str, np.ndarray],
    values: Mapping[str, np.ndarray],
    reference: Mapping[str, np.ndarray] | None,
) -> tuple[int, int]:
    """How many rows and columns of panels there are."""
    columns = len(_moments(axes, False)) if reference is None else 3
    alone = len(axes) == 1 or columns == 1  # one picture a field: side by side
    return (1, len(values)) if alone else (len(values), columns)


def size_of(rows: int, columns: int) -> tuple[float, float]:
    """Of a figure with so many panels, in inches."""
    return 4.2 * columns + 0.6, 3.2 * rows + 0.4


def draw_fields(
    figure: FigureBase,
    axes: Mapping[str, np.ndarray],
    values: Mapping[str, np.ndarray],
    reference: Mapping[str, np.ndarray] | None = None,
) -> None:
    """The panels of :func:`plot_fields`, on a figure or a part of one."""
    rows, columns = shape_of(axes, values, reference)
    grid = figure.subplots(rows, columns, squeeze=False).reshape(len(values), -1)
    for row, (field, value) in zip(grid, values.items(), strict=True):
        known = None if reference is None else np.asarray(reference[field])
        if len(axes) == 1:
            _line(row[0], axes, np.asarray(value), known, field)
        else:
            moments = _moments(axes, reference is not None)
            _maps(figure, row, axes, np.asarray(value), known, field, moments)


def plane_of(axes: Mapping[str, np.ndarray]) -> list[str]:
    """The two coordinates that a map shows."""
    return [name for name in axes if name != "t" or len(axes) == 2][:2]


def _moments(axes: Mapping[str, np.ndarray], compared: bool) -> list[int]:
    """The indices on the time axis at which a plane is shown; one alone where nothing is cut."""
    if "t" not in axes or len(axes) < 3:
        return [-1]
    last = axes["t"].size - 1
    return [last] if compared else sorted({round(last * i / 3) for i in range(4)})


def _line(
    ax: Axes,
    axes: Mapping[str, np.ndarray],
    value: np.ndarray,
    known: np.ndarray | None,
    field: str,
) -> None:
    ((name, x),) = axes.items()
    ax.plot(x, value, label=field)
    if known is not None:
        ax.plot(x, known, "--", color="0.3", label="reference")
        ax.legend()
    ax.set_xlabel(name)
    ax.set_ylabel(field)


def _maps(
    figure: FigureBase,
    row: np.ndarray,
    axes: Mapping[str, np.ndarray],
    value: np.ndarray,
    known: np.ndarray | None,
    field: str,
    moments: list[int],
) -> None:
    shown = plane_of(axes)
    panels, errors = [], []
    for moment in moments:
        cut, suffix = _cut(axes, shown, moment)
        panels.append((field + suffix, value[cut]))
        if known is not None:
            panels.append((f"reference {field}", known[cut]))
            errors.append(("absolute error", np.abs(value[cut] - known[cut])))
    scale = np.concatenate([p[1].ravel() for p in (panels if known is None else panels[1:])])
    from matplotlib.colors import Normalize
    from matplotlib.ticker import ScalarFormatter

    # Of its own for each panel, as a colour bar scales the one that it is given.
    low, high = float(np.nanmin(scale)), float(np.nanmax(scale))
    drawn = [(t, d, FIELD_MAP, Normalize(low, high)) for t, d in panels]
    drawn += [(title, *_logarithmic(data)) for title, data in errors]
    for ax, (title, data, colours, norm) in zip(row, drawn, strict=True):
        holes = bool(np.isnan(data).any())
        mesh = ax.pcolormesh(
            axes[shown[0]], axes[shown[1]], data.T, cmap=colours, norm=norm,
            shading="nearest" if holes else "gouraud", rasterized=True,
        )  # fmt: skip
        fit_plane(ax, axes)
        bar = figure.colorbar(mesh, ax=ax)
        if isinstance(bar.formatter, ScalarFormatter):
            bar.formatter.set_powerlimits((-2, 3))
        ax.set_title(title)


def fit_plane(ax: Axes, axes: Mapping[str, np.ndarray]) -> None:
    """The names of the coordinates that are shown, and equal scales where both are space."""
    one, two = shown = plane_of(axes)
    if "t" not in shown and 1 / 3 < np.ptp(axes[one]) / np.ptp(axes[two]) < 3:
        ax.set_aspect("equal")
    ax.set_xlabel(one)
    ax.set_ylabel(two)


def _logarithmic(error: np.ndarray) -> tuple[np.ndarray, str, Normalize]:
    """An error with its colours: some decades below the largest one."""
    from matplotlib.colors import LogNorm, Normalize

    largest = float(np.nanmax(error))
    if not largest > 0:
        return error, ERROR_MAP, Normalize(0, 1)
    return error, ERROR_MAP, LogNorm(10.0**-DECADES * largest, largest, clip=True)


def _cut(
    axes: Mapping[str, np.ndarray], shown: list[str], moment: int
) -> tuple[tuple[Any, ...], str]:
    """The index of a plane, and where it lies in words."""
    index: list[Any] = []
    where = []
    for name, axis in axes.items():
        if name in shown:
            index.append(slice(None))
            continue
        at = moment if name == "t" else axis.size // 3
        index.append(at)
        where.append(f"{name} = {axis[at]:.3g}")
    return tuple(index), f" at {', '.join(where)}" if where else ""
