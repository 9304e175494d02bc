"""How time is solved: all of it at once, or in windows one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..errors import UserError
from ..geometry import Domain
from ..training.adaptive_windows import AdaptiveWindows
from ..training.windows import FIRST, WHOLE, FixedWindows, Windows, WindowStart, fixed_windows


@dataclass(frozen=True)
class Whole:
    """All of the time at once; for problems without time too."""

    kind: ClassVar[str] = "whole"
    start: ClassVar[WindowStart] = "new"

    def windows(self, domain: Domain, steps: int) -> Windows:
        return WHOLE


@dataclass(frozen=True)
class Fixed:
    """Windows of equal length, or such as grow to it.

    Args:
        count: The number of equal windows.
        growth: With more than 0, the first windows are shorter, for what changes fast at first: a
            window at time ``t`` lasts ``growth · t`` longer than the very first.
        first: With a growth, the length of the very first window, in units of the equal ones.
        taper: Between -1 and 1; with 1 windows get steps in proportion to the time still to come.
        overshoot: By which share a window is trained past its end.
        start: Whether a window begins with the first network (``new``), with that of the window
            before (``warm``), or with what the optimiser has learnt too (``continued``).
    """

    kind: ClassVar[str] = "fixed"

    count: int = 10
    growth: float = 0.0
    first: float = FIRST
    taper: float = 0.0
    overshoot: float = 0.0
    start: WindowStart = "new"

    def windows(self, domain: Domain, steps: int) -> Windows:
        time, over, taper = _time_of(domain), self.overshoot, self.taper
        return FixedWindows(
            fixed_windows(time, self.count, None, over, taper, self.growth, self.first)
        )


@dataclass(frozen=True)
class Given:
    """Windows that end at given times.

    Args:
        ends: The times at which windows end, the last of them the end of time.
        taper: As in :class:`Fixed`.
        overshoot: As in :class:`Fixed`.
        start: As in :class:`Fixed`.
    """

    kind: ClassVar[str] = "given"

    ends: tuple[float, ...] = (1.0,)
    taper: float = 0.0
    overshoot: float = 0.0
    start: WindowStart = "new"

    def windows(self, domain: Domain, steps: int) -> Windows:
        time = _time_of(domain)
        return FixedWindows(fixed_windows(time, 1, self.ends, self.overshoot, self.taper))


@dataclass(frozen=True)
class Adaptive:
    """Windows that find their own lengths, by an estimate of the error that each adds.

    Args:
        count: A first guess of their number.
        tolerance: The estimated error up to which a window counts as converged.
        overshoot: By which share a window is trained past its end.
        start: As in :class:`Fixed`.
    """

    kind: ClassVar[str] = "adaptive"

    count: int = 10
    tolerance: float = 1e-3
    overshoot: float = 0.0
    start: WindowStart = "new"

    def windows(self, domain: Domain, steps: int) -> Windows:
        return AdaptiveWindows(_time_of(domain), self.count, self.tolerance, steps, self.overshoot)


Marching = Whole | Fixed | Given | Adaptive


def _time_of(domain: Domain) -> tuple[float, float]:
    if not domain.has_time:
        raise UserError(
            f"{domain!r} has no time to be cut into windows; take the marching 'whole'."
        )
    return domain.bounds[0]
