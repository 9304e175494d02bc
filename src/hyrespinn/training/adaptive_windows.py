"""Windows of time that find their own lengths, and the estimate of the error that decides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from ..errors import UserError
from ..losses.context import Context
from ..losses.objective import Objective
from .windows import Window, WindowOutcome, Windows

SMALLEST = 1 / 256
"""The share of all time below which no window is halved."""
LONGER = 1.5
"""How much longer the window after an easy one is."""


@dataclass(frozen=True)
class AdaptiveWindows(Windows):
    """Windows that find their own lengths, from a first guess of ``count`` equal ones.

    A window has converged once its estimated error is at most ``allowed``. One that has not after
    its ``steps`` is halved; one that took less than half of them is followed by a longer one, but
    not right after one that was halved.
    """

    time: tuple[float, float]
    count: int
    allowed: float
    steps: int
    overshoot: float = 0.0

    def __post_init__(self) -> None:
        if self.count < 1:
            raise UserError(f"There is at least one window; marching.count is {self.count}.")
        if self.overshoot < 0:
            raise UserError(f"marching.overshoot cannot be negative, and is {self.overshoot}.")
        if not self.allowed > 0:
            raise UserError(f"marching.tolerance must be positive, not {self.allowed}.")
        if self.steps < 1:
            raise UserError(
                "Windows that find their own lengths need steps to train; give the stages some."
            )

    def is_over(self, tried: Sequence[WindowOutcome]) -> bool:
        return bool(tried) and tried[-1].kept and _window(tried[-1]).end == self.time[1]

    def is_last(self, tried: Sequence[WindowOutcome]) -> bool:
        return False

    def following(self, tried: Sequence[WindowOutcome]) -> Window:
        begin, end = self.time
        if not tried:
            return self._next(begin, (end - begin) / self.count)
        last = _window(tried[-1])
        length = last.end - last.start
        if not tried[-1].kept:
            return self._next(last.start, length / 2)
        was_easy = tried[-1].steps <= self.steps / 2 and all(w.kept for w in tried[-2:])
        return self._next(last.end, length * (LONGER if was_easy else 1.0))

    def _next(self, start: float, longest: float) -> Window:
        """A window no longer than ``longest`` of which a whole number fills the rest of time."""
        rest = self.time[1] - start
        count = max(1, math.ceil(rest / longest - 1e-6))
        length = rest / count
        end = self.time[1] if count == 1 else start + length
        return Window(start, end, min(length * (1 + self.overshoot), rest))

    @property
    def tolerance(self) -> float:
        return self.allowed

    def can_shorten(self, window: Window | None) -> bool:
        assert window is not None
        begin, end = self.time
        return (window.end - window.start) / 2 >= SMALLEST * (end - begin)

    def describe(self, tried: Sequence[WindowOutcome]) -> str:
        return f"{sum(w.kept for w in tried) + 1}"


def _window(outcome: WindowOutcome) -> Window:
    assert outcome.window is not None
    return outcome.window


def too_hard(windows: Windows, window: Window | None, error: float) -> str:
    """What to do where even the shortest window does not converge."""
    assert window is not None
    return (
        f"the window from t = {window.start:g} to {window.end:g}, as short as one may get, has an "
        f"estimated error of {error:.1e}, above marching.tolerance = {windows.tolerance:g}; the "
        "solution up to here is kept. A larger tolerance, more steps of the stages or a larger "
        "network (model.width) may help"
    )


def window_error(objective: Objective, theta: Array, context: Context, key: Array) -> Array:
    """An estimate of the relative error that a window adds, on fresh points.

    ``(‖u(t₀) − u₀‖ + length · ‖r‖) / ‖u‖`` in root mean squares: with ``u_t = f(u) + r`` the error
    at the end is the error at the beginning and the residual added up over time, as long as the
    equation itself makes errors no larger.
    """
    assert context.window is not None
    samples = objective.draw(key, context)
    vectors = objective.residuals(theta, samples, context)
    equations = objective.terms[0].names
    fields = objective.solution(theta, context)(samples["interior"].points)

    def rms(names: Sequence[str]) -> Array:
        return jnp.sqrt(sum((jnp.mean(vectors[name] ** 2) for name in names), start=jnp.zeros(())))

    conditions = [name for name in vectors if name not in equations]
    added = rms(conditions) + context.window.length * rms(equations)
    return added / jnp.sqrt(jnp.mean(fields**2))
