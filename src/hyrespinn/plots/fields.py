"""Pictures of fields on a grid: the solution, the reference and the error between them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

FIELD_MAP, ERROR_MAP = "RdBu_r", "magma"


def plot_fields(
    axes: Mapping[str, np.ndarray],
    values: Mapping[str, np.ndarray],
    reference: Mapping[str, np.ndarray] | None = None,
    title: str = "",
    path: str | Path | None = None,
) -> Figure:
    """One row a field: the solution and, with a reference, the reference and the absolute error.

    In one dimension the fields are lines, in two colour maps; with more, the grid is cut at the
    last value of the first axes (the final time of an evolution in the plane).
    """
    fields = list(values)
    dimension = len(axes)
    columns = 1 if reference is None or dimension == 1 else 3
    figure = Figure(figsize=(4.2 * columns + 0.6, 3.2 * len(fields) + 0.4), layout="constrained")
    grid = figure.subplots(len(fields), columns, squeeze=False)
    for row, field in zip(grid, fields, strict=True):
        known = None if reference is None else np.asarray(reference[field])
        if dimension == 1:
            _line(row[0], axes, np.asarray(values[field]), known, field)
        else:
            _maps(figure, row, axes, np.asarray(values[field]), known, field)
    if title:
        figure.suptitle(title)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


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
    figure: Figure,
    row: np.ndarray,
    axes: Mapping[str, np.ndarray],
    value: np.ndarray,
    known: np.ndarray | None,
    field: str,
) -> None:
    names = list(axes)
    cut = tuple(-1 for _ in names[:-2])
    where = ", ".join(f"{n} = {axes[n][-1]:.3g}" for n in names[:-2])
    suffix = f" at {where}" if where else ""
    horizontal, vertical = axes[names[-2]], axes[names[-1]]
    panels = [(field + suffix, value[cut], FIELD_MAP)]
    if known is not None:
        panels.append((f"reference {field}", known[cut], FIELD_MAP))
        panels.append(("absolute error", np.abs(value[cut] - known[cut]), ERROR_MAP))
    scale = panels[0 if known is None else 1][1]
    low, high = float(np.nanmin(scale)), float(np.nanmax(scale))
    for ax, (title, data, colours) in zip(row, panels, strict=True):
        limits = (low, high) if colours == FIELD_MAP else (None, None)
        mesh = ax.pcolormesh(
            horizontal, vertical, data.T, cmap=colours, vmin=limits[0], vmax=limits[1],
            shading="gouraud", rasterized=True,
        )  # fmt: skip
        formatter = ScalarFormatter()
        formatter.set_powerlimits((-2, 3))
        figure.colorbar(mesh, ax=ax, format=formatter)
        ax.set_title(title)
        ax.set_xlabel(names[-2])
        ax.set_ylabel(names[-1])
