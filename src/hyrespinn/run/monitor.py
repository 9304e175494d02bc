"""The error against a reference while a training goes on."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..losses.context import Context
from ..losses.objective import Objective
from ..metrics import relative_l2
from ..references import Reference
from ..training.windows import Window

MONITOR_POINTS = 2**17


class Monitor:
    """Errors for the history, each window by itself, on points of the reference's grid.

    On a grid of millions they are those of a fixed choice of its points. Windows share compiled
    programs: their points are filled up to a power of two.
    """

    def __init__(self, objective: Objective, reference: Reference):
        self.problem = objective.problem
        grid = reference.points
        chosen = np.arange(len(grid))
        if len(grid) > MONITOR_POINTS:
            rng = np.random.default_rng(0)
            chosen = np.sort(rng.choice(len(grid), MONITOR_POINTS, replace=False))
        self.points = grid[chosen]
        self.known = {name: value[chosen] for name, value in reference.flat().items()}
        self.dtype = objective.dtype
        self.member: dict[Window | None, tuple[np.ndarray, Array]] = {}
        self.evaluate = jax.jit(lambda theta, points, c: objective.solution(theta, c)(points))

    def _member(self, window: Window | None) -> np.ndarray:
        """The places of a window's points; its beginning belongs to the window before."""
        if window is None:
            return np.arange(len(self.points))
        time = self.points[:, 0]
        is_first = window.start == self.problem.domain.bounds[0][0]
        first = window.start if is_first else np.nextafter(window.start, np.inf)
        return np.flatnonzero((time >= first) & (time <= window.end))

    def _of_window(self, window: Window | None) -> tuple[np.ndarray, Array]:
        """The places of a window's points, and the points, filled up; the last window's are kept."""
        if window not in self.member:
            member = self._member(window)
            size = min(2 ** max(0, len(member) - 1).bit_length(), len(self.points))
            filled = np.resize(member, size) if len(member) else np.zeros(1, int)
            self.member = {window: (member, jnp.asarray(self.points[filled], self.dtype))}
        return self.member[window]

    def __call__(self, theta: Array, context: Context, window: Window | None) -> dict[str, float]:
        member, points = self._of_window(window)
        values = np.asarray(self.evaluate(theta, points, context))[: len(member)]
        return {
            f"rel_l2_{name}": relative_l2(values[:, i], self.known[name][member])
            if len(member)
            else float("nan")
            for i, name in enumerate(self.problem.fields)
            if name in self.known
        }
