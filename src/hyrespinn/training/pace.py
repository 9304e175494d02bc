"""How long steps take, so that none of them are begun that take long together."""

from __future__ import annotations

SLICE = 1.0
"""Seconds that steps take which are done without a look at the clock."""


class Pace:
    """The seconds of a step of one stage, as the last ones took."""

    def __init__(self) -> None:
        self._step: float | None = None

    def note(self, steps: int, seconds: float) -> None:
        """Steps have taken so long."""
        if steps:
            self._step = seconds / steps

    def seconds(self, steps: int) -> float:
        """How long steps will take; nothing where that is not known."""
        return steps * (self._step or 0.0)

    def is_long(self, steps: int) -> bool:
        """Whether steps are known to take longer than a slice."""
        return self.seconds(steps) > SLICE

    def slice(self, steps: int, unit: int) -> int:
        """How many of these steps to do at once, a multiple of ``unit`` or all; at first as few as
        possible.

        >>> pace = Pace()
        >>> pace.slice(50, 1)
        1
        >>> pace.note(1, 0.1)
        >>> pace.slice(50, 1), pace.slice(50, 16), pace.slice(5, 16)
        (10, 16, 5)
        """
        if self._step is None:
            return min(steps, unit)
        if not self.is_long(steps):
            return steps
        return min(steps, max(1, int(SLICE / (unit * self._step))) * unit)
