"""The grid on which a solution is shown, and the reference on the same grid."""

from __future__ import annotations

import numpy as np

from ..problems.problem import Problem
from ..references import Reference, error_axes

TIMES = 101


def shown_on(
    problem: Problem, reference: Reference | None, end: float | None
) -> tuple[dict[str, np.ndarray], Reference | None]:
    """The axes of a picture, and the reference there, where there is one.

    ``end`` is the time up to which there is a solution; ``None``: all of it.
    """
    axes = error_axes(problem) if reference is None else reference.axes
    if end is None:
        return axes, reference
    (name, times), *others = axes.items()
    cut = None if reference is None else reference.until(end)
    if cut is not None and len(cut.axes[name]) > 1:
        return cut.axes, cut
    # The reference is known at its beginning alone, or there is none.
    return {name: np.linspace(times[0], end, TIMES), **dict(others)}, None
