"""How a training went: losses, error, gates and weights against steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .saving import save

if TYPE_CHECKING:  # matplotlib takes a while to import
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


GATE_LABELS = {"alpha": "RBF share", "beta": "block strength"}
MOST_WINDOWS = 50
"""Lines that mark more windows than these would cover everything else."""


def plot_history(
    rows: Sequence[Mapping[str, Any]], title: str = "", path: str | Path | None = None
) -> Figure:
    """A panel for losses, error, gates and weights, each where there is something to show."""
    shown = {label: columns for label, columns in groups_of(rows).items() if columns}
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.4 * len(shown) + 0.4, 3.4), layout="constrained")
    axes = figure.subplots(1, len(shown), squeeze=False)[0]
    for ax, (label, columns) in zip(axes, shown.items(), strict=True):
        draw_columns(ax, rows, label, columns)
    if title:
        figure.suptitle(title)
    if path is not None:
        save(figure, path)
    return figure


def groups_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The columns of each panel."""
    names = list(rows[0])
    return {
        "loss": [n for n in names if n.startswith("loss_") and _positive(rows, n)],
        "relative error": [n for n in names if n.startswith("rel_l2_")],
        "gate": [n for n in names if n.startswith(("phi_", "alpha_"))],
        "weight": [n for n in names if _is_weight(n) and _positive(rows, n)],
    }


def draw_columns(
    ax: Axes, rows: Sequence[Mapping[str, Any]], label: str, columns: Sequence[str]
) -> None:
    """Some columns of the history against the steps."""
    for column in columns:
        ax.plot([r["step"] for r in rows], [r[column] for r in rows], label=_label(column))
    if label != "gate":
        ax.set_yscale("log")
    else:
        ax.set_ylim(min(0, ax.get_ylim()[0]), max(1, ax.get_ylim()[1]))
    _mark_stages(ax, rows)
    ax.set_xlabel("step")
    ax.set_ylabel(label)
    ax.legend(fontsize=8)


def _is_weight(column: str) -> bool:
    return column.startswith("weight_") or column == "causal"


def _positive(rows: Sequence[Mapping[str, Any]], column: str) -> bool:
    return any(row[column] > 0 for row in rows)


def _label(column: str) -> str:
    if column.startswith("alpha_"):
        return f"α, block {column.removeprefix('alpha_')}"
    if column.startswith("phi_"):
        _, gate, block = column.split("_")
        return f"{GATE_LABELS[gate]}, block {block}"
    for prefix in ("loss_", "rel_l2_", "weight_"):
        column = column.removeprefix(prefix)
    return "smallest causal weight" if column == "causal" else column


def _mark_stages(ax: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """A line where a stage ends, a darker one where a window of time does, unless they are too many."""
    if len({row.get("window") for row in rows}) > MOST_WINDOWS:
        return
    for before, after in pairwise(rows):
        if before.get("window") != after.get("window"):
            ax.axvline(before["step"], color="0.4", linewidth=0.8, zorder=0)
        elif before["stage"] != after["stage"]:
            ax.axvline(before["step"], color="0.7", linewidth=0.8, zorder=0)
