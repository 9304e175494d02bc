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
    from matplotlib.figure import Figure

FIELD_MAP, ERROR_MAP = "RdBu_r", "magma"


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
    fields = list(values)
    dimension = len(axes)
    moments = _moments(axes, reference is not None)
    columns = 1 if dimension == 1 else len(moments) if reference is None else 3
    rows = len(fields)
    if columns == 1:  # one picture a field: side by side
        rows, columns = 1, rows
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * columns + 0.6, 3.2 * rows + 0.4), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).reshape(len(fields), -1)
    for row, field in zip(grid, fields, strict=True):
        known = None if reference is None else np.asarray(reference[field])
        if dimension == 1:
            _line(row[0], axes, np.asarray(values[field]), known, field)
        else:
            _maps(figure, row, axes, np.asarray(values[field]), known, field, moments)
    if title:
        figure.suptitle(textwrap.fill(title, 45 * columns), fontsize="medium")
    if path is not None:
        save(figure, path)
    return figure


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
    figure: Figure,
    row: np.ndarray,
    axes: Mapping[str, np.ndarray],
    value: np.ndarray,
    known: np.ndarray | None,
    field: str,
    moments: list[int],
) -> None:
    shown = [name for name in axes if name != "t" or len(axes) == 2][:2]
    panels = []
    for moment in moments:
        cut, suffix = _cut(axes, shown, moment)
        panels.append((field + suffix, value[cut], FIELD_MAP))
        if known is not None:
            panels.append((f"reference {field}", known[cut], FIELD_MAP))
            panels.append(("absolute error", np.abs(value[cut] - known[cut]), ERROR_MAP))
    scale = np.concatenate([p[1].ravel() for p in (panels if known is None else panels[1:2])])
    low, high = float(np.nanmin(scale)), float(np.nanmax(scale))
    for ax, (title, data, colours) in zip(row, panels, strict=True):
        limits = (low, high) if colours == FIELD_MAP else (None, None)
        holes = bool(np.isnan(data).any())
        mesh = ax.pcolormesh(
            axes[shown[0]], axes[shown[1]], data.T, cmap=colours, vmin=limits[0], vmax=limits[1],
            shading="nearest" if holes else "gouraud", rasterized=True,
        )  # fmt: skip
        if "t" not in shown and 1 / 3 < np.ptp(axes[shown[0]]) / np.ptp(axes[shown[1]]) < 3:
            ax.set_aspect("equal")
        from matplotlib.ticker import ScalarFormatter

        formatter = ScalarFormatter()
        formatter.set_powerlimits((-2, 3))
        figure.colorbar(mesh, ax=ax, format=formatter)
        ax.set_title(title)
        ax.set_xlabel(shown[0])
        ax.set_ylabel(shown[1])


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
