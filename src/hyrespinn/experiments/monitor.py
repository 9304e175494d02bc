"""The error against a reference while a training goes on."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..losses.context import Context
from ..losses.objective import Objective
from ..metrics import relative_l2
from ..references import Reference
from ..training.windows import Stretch

MONITOR_POINTS = 2**17


class Monitor:
    """Errors for the history, each window by itself, on points of the reference's grid.

    On a grid of millions they are those of a fixed choice of its points. All windows share one
    compiled program: their points are filled up to one number.
    """

    def __init__(
        self, objective: Objective, reference: Reference, windows: Sequence[Stretch | None]
    ):
        self.problem, self.windows = objective.problem, windows
        grid = reference.points
        chosen = np.arange(len(grid))
        if len(grid) > MONITOR_POINTS:
            rng = np.random.default_rng(0)
            chosen = np.sort(rng.choice(len(grid), MONITOR_POINTS, replace=False))
        self.points = grid[chosen]
        self.known = {name: value[chosen] for name, value in reference.flat().items()}
        self.members = [self._member(stretch) for stretch in windows]
        self.size = max(len(member) for member in self.members)
        self.dtype = objective.dtype
        self.batches: dict[int, Array] = {}
        self.evaluate = jax.jit(lambda theta, points, c: objective.solution(theta, c)(points))

    def _member(self, stretch: Stretch | None) -> np.ndarray:
        if stretch is None:
            return np.arange(len(self.points))
        time = self.points[:, 0]
        first = stretch.start if stretch is self.windows[0] else np.nextafter(stretch.start, np.inf)
        return np.flatnonzero((time >= first) & (time <= stretch.end))

    def __call__(self, theta: Array, context: Context, window: int) -> dict[str, float]:
        member = self.members[window]
        if window not in self.batches:
            filled = np.resize(member, self.size) if len(member) else np.zeros(self.size, int)
            self.batches = {window: jnp.asarray(self.points[filled], self.dtype)}
        values = np.asarray(self.evaluate(theta, self.batches[window], context))[: len(member)]
        return {
            f"rel_l2_{name}": relative_l2(values[:, i], self.known[name][member])
            if len(member)
            else float("nan")
            for i, name in enumerate(self.problem.fields)
            if name in self.known
        }
