"""A run at a glance: the fields with their errors, and under them what the network made of itself."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .fields import draw_fields, fit_plane, plane_of, shape_of, size_of
from .history import draw_columns, groups_of
from .saving import save

if TYPE_CHECKING:  # matplotlib takes a while to import
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..models.located import Located

BELOW = ("gate", "relative error", "loss")
"""What is shown beside the kernels, as far as there is room."""


def plot_overview(
    axes: Mapping[str, np.ndarray],
    values: Mapping[str, np.ndarray],
    reference: Mapping[str, np.ndarray] | None,
    kernels: Sequence[Located],
    rows: Sequence[Mapping[str, Any]],
    title: str = "",
    path: str | Path | None = None,
) -> Figure:
    """The panels of :func:`~hyrespinn.plots.fields.plot_fields`, and a row with the kernels, the gates
    and the error, or the loss, over the steps."""
    from matplotlib.figure import Figure

    count, columns = shape_of(axes, values, reference)
    columns = max(columns, 2)
    width, height = size_of(count, columns)
    below = size_of(1, columns)[1]
    figure = Figure(figsize=(width, height + below), layout="constrained")
    parts = figure.subfigures(2, 1, height_ratios=[height, below], squeeze=False)
    above, under = parts[:, 0]
    draw_fields(above, axes, values, reference)
    groups = {label: names for label, names in groups_of(rows).items() if names}
    shown = [label for label in BELOW if label in groups][: columns - 1]
    first, *others = under.subplots(1, 1 + len(shown), squeeze=False)[0]
    _draw_kernels(first, axes, kernels)
    for ax, label in zip(others, shown, strict=True):
        draw_columns(ax, rows, label, groups[label])
    if title:
        figure.suptitle(textwrap.fill(title, 45 * columns), fontsize="medium")
    if path is not None:
        save(figure, path)
    return figure


def _draw_kernels(ax: Axes, axes: Mapping[str, np.ndarray], kernels: Sequence[Located]) -> None:
    """Kernels by the ellipses on which they have half their height, the darker the larger their
    coefficients; in one dimension by where they are and how wide."""
    names = list(axes)
    shown = plane_of(axes) if len(names) > 1 else names
    places = [names.index(name) for name in shown]
    centers = np.concatenate([k.centers[:, places] for k in kernels])
    widths = np.concatenate([k.widths[:, places] for k in kernels])
    sizes = np.concatenate([k.sizes / max(float(np.max(k.sizes)), 1e-300) for k in kernels])
    low, high = (np.array([end(axes[name]) for name in shown]) for end in (np.min, np.max))
    ax.set_title(f"{len(sizes)} kernels, at half their height")
    if len(shown) == 1:
        ax.errorbar(centers[:, 0], sizes, xerr=widths[:, 0], fmt=".", linewidth=0.7)
        ax.set_xlim(low[0], high[0])
        ax.set_xlabel(shown[0])
        ax.set_ylabel("coefficient, relative to the largest")
        return
    from matplotlib.collections import EllipseCollection

    colours = np.zeros((len(sizes), 4))
    colours[:, 2], colours[:, 3] = 0.5, 0.15 + 0.85 * sizes
    across, along = 2 * widths.T
    ellipses = EllipseCollection(
        across, along, np.zeros(len(sizes)), units="xy", offsets=centers,
        offset_transform=ax.transData, facecolors="none", edgecolors=colours, linewidths=0.8,
    )  # fmt: skip
    ax.add_collection(ellipses)
    ax.set_xlim(low[0], high[0])
    ax.set_ylim(low[1], high[1])
    fit_plane(ax, axes)
