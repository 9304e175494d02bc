"""Windows of time: where each begins and ends, given in advance or found on the way."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import UserError

Row = Mapping[str, float | int | str]
"""A row of the history."""
Status = Literal[
    "completed",
    "target",
    "converged",
    "stalled",
    "unconverged",
    "time_limit",
    "interrupted",
    "diverged",
]
WindowStart = Literal["new", "warm", "continued"]
"""With which network a window begins: the first one, or that of the window before; ``continued``
also keeps what the optimiser has learnt."""
RESUMABLE = ("time_limit", "interrupted")
"""What ends a training that can go on later."""
ENDS_ALL = ("unconverged", "diverged", "time_limit", "interrupted")
"""What ends a training in the middle of its windows; anything else ends one window."""


@dataclass(frozen=True)
class Window:
    """A window from ``start`` to ``end``; its network is trained over ``length``, a little more.

    ``effort`` multiplies the steps of every stage.
    """

    start: float
    end: float
    length: float
    effort: float = 1.0

    def steps(self, planned: int) -> int:
        """How many of the steps that are planned for every window this one gets; at least one."""
        return max(1, round(self.effort * planned))


@dataclass(frozen=True)
class WindowOutcome:
    """How the training of a window ended; ``row`` is the last one of its history.

    ``window`` is ``None`` for all of the time at once. ``kept`` is false of a window that did
    not converge, so that a shorter one had to be tried.
    """

    window: Window | None
    status: Status
    message: str
    steps: int
    row: Row
    kept: bool = True

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> WindowOutcome:
        """From what ``dataclasses.asdict`` made of one."""
        window = content["window"]
        return cls(**{**content, "window": None if window is None else Window(**window)})


class Windows(ABC):
    """Which window comes next: a pure function of those that were tried, so that a resumed
    training goes the same way."""

    @abstractmethod
    def is_over(self, tried: Sequence[WindowOutcome]) -> bool: ...

    @abstractmethod
    def following(self, tried: Sequence[WindowOutcome]) -> Window | None:
        """The next window, ``None`` for all of the time."""

    @abstractmethod
    def is_last(self, tried: Sequence[WindowOutcome]) -> bool:
        """Whether nothing can follow the window that comes next, however it ends."""

    @property
    @abstractmethod
    def tolerance(self) -> float | None:
        """The estimated error up to which a window counts as converged; ``None``: always."""

    @abstractmethod
    def can_shorten(self, window: Window | None) -> bool:
        """Whether a window that did not converge may be tried again, half as long."""

    @abstractmethod
    def describe(self, tried: Sequence[WindowOutcome]) -> str:
        """The number of the window that comes next, for people."""


@dataclass(frozen=True)
class FixedWindows(Windows):
    """Windows given in advance; each is trained once."""

    windows: tuple[Window | None, ...] = (None,)

    def is_over(self, tried: Sequence[WindowOutcome]) -> bool:
        return len(tried) >= len(self.windows)

    def following(self, tried: Sequence[WindowOutcome]) -> Window | None:
        return self.windows[len(tried)]

    def is_last(self, tried: Sequence[WindowOutcome]) -> bool:
        return len(tried) == len(self.windows) - 1

    @property
    def tolerance(self) -> None:
        return None

    def can_shorten(self, window: Window | None) -> bool:
        return False

    def describe(self, tried: Sequence[WindowOutcome]) -> str:
        return f"{len(tried) + 1} of {len(self.windows)}"


FIRST = 1 / 20
"""The first of growing windows, in units of the equal ones, unless stated otherwise."""
WHOLE = FixedWindows()
"""All of the time at once; also where there is no time."""


def fixed_windows(
    time: tuple[float, float],
    count: int,
    ends: Sequence[float] | None = None,
    overshoot: float = 0.0,
    taper: float = 0.0,
    growth: float = 0.0,
    first: float = FIRST,
) -> tuple[Window, ...]:
    """``count`` equal windows over ``time``, or windows with these ``ends``.

    ``overshoot`` is the share of its length by which a window is trained past its end, but never
    past the end of time. An error spoils all the time after it: with a ``taper`` of 1 windows get
    steps in proportion to the time that is still to come. With 0 all get the same, and with -1 the
    late ones get as much more as the early ones get with 1; the mean is always 1.

    With a ``growth`` the first windows are shorter, for what changes fast at first: a window at time
    ``t`` lasts ``growth · t`` longer than the very first, which is ``first`` of the equal ones, until it
    is one of them.

    >>> [(s.start, s.effort) for s in fixed_windows((0.0, 2.0), 2, taper=0.75)]
    [(0.0, 1.25), (1.0, 0.75)]
    """
    begin, end = time
    if count < 1:
        raise UserError(f"There is at least one window; marching.count is {count}.")
    if overshoot < 0:
        raise UserError(f"marching.overshoot cannot be negative, and is {overshoot}.")
    if growth < 0 or not 0 < first <= 1:
        raise UserError(
            "Windows that grow need marching.growth ≥ 0 and 0 < marching.first ≤ 1; they are "
            f"{growth} and {first}."
        )
    if not -1 <= taper <= 1:
        raise UserError(f"marching.taper is between -1 and 1, not {taper}.")
    edges = [begin + t for t in _edges(end - begin, count, growth, first)] + [end]
    if ends is not None:
        edges = [float(e) for e in ends]
        if count not in (1, len(edges)):
            raise UserError(
                f"{count} windows are asked for, and {len(edges)} ends are given; leave one out."
            )
    starts = [begin, *edges[:-1]]
    if edges[-1] != end or any(a >= b for a, b in zip(starts, edges, strict=True)):
        raise UserError(
            f"marching.ends must rise from above {begin:g} to {end:g}, the end of time, not "
            f"{edges}."
        )
    to_come = [end - a for a in starts]
    mean = sum(to_come) / len(to_come)
    return tuple(
        Window(a, b, min((b - a) * (1 + overshoot), end - a), 1 + taper * (rest / mean - 1))
        for a, b, rest in zip(starts, edges, to_come, strict=True)
    )


def _edges(duration: float, count: int, growth: float, first: float = FIRST) -> list[float]:
    """Where windows end but for the last, ``count`` equal ones or such as grow to that length.

    >>> [round(t, 3) for t in _edges(1.0, 4, 0.0)]
    [0.25, 0.5, 0.75]
    >>> [round(t, 3) for t in _edges(1.0, 2, 1.0)]
    [0.025, 0.075, 0.175, 0.375, 0.775]
    """
    longest = duration / count
    if not growth:
        return [k * longest for k in range(1, count)]
    edges, last = list[float](), 0.0
    while (length := first * longest + growth * last) < longest and last + length < duration:
        last += length
        edges.append(last)
    rest = max(1, round((duration - last) / longest))
    return [*edges, *(last + (duration - last) * k / rest for k in range(1, rest))]
