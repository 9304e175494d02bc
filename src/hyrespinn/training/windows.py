"""Windows of time: where each begins and ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import UserError


@dataclass(frozen=True)
class Stretch:
    """A window from ``start`` to ``end``; its network is trained over ``length``, a little more."""

    start: float
    end: float
    length: float


def stretches(
    time: tuple[float, float],
    count: int,
    ends: Sequence[float] | None = None,
    overshoot: float = 0.0,
) -> tuple[Stretch, ...]:
    """``count`` equal windows over ``time``, or windows with these ``ends``.

    ``overshoot`` is the share of its length by which a window is trained past its end, but never
    past the end of time.

    >>> stretches((0.0, 2.0), 2)
    (Stretch(start=0.0, end=1.0, length=1.0), Stretch(start=1.0, end=2.0, length=1.0))
    """
    begin, end = time
    if count < 1:
        raise UserError(f"train.windows must be at least 1, not {count}.")
    if overshoot < 0:
        raise UserError(f"train.window_overshoot cannot be negative, and is {overshoot}.")
    edges = [begin + (end - begin) * k / count for k in range(1, count)] + [end]
    if ends is not None:
        edges = [float(e) for e in ends]
        if count not in (1, len(edges)):
            raise UserError(
                f"train.windows is {count}, and train.window_ends has {len(edges)}; leave one out."
            )
    starts = [begin, *edges[:-1]]
    if edges[-1] != end or any(a >= b for a, b in zip(starts, edges, strict=True)):
        raise UserError(
            f"train.window_ends must rise from above {begin:g} to {end:g}, the end of time, not "
            f"{edges}."
        )
    return tuple(
        Stretch(a, b, min((b - a) * (1 + overshoot), end - a))
        for a, b in zip(starts, edges, strict=True)
    )
