"""When a training stops, and why: a pure decision on what is known after some steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .windows import Status


class End(NamedTuple):
    status: Status
    message: str


INTERRUPTED = End("interrupted", "it was asked to stop before its end")


@dataclass(frozen=True)
class Stops:
    """When to stop before the last step; all but the time limit are deterministic.

    ``target`` is on the loss, ``relative_target`` on the loss divided by that of a network that
    is zero everywhere. Stalled: over ``patience`` rounds the loss has not fallen to ``progress``
    times its best before.
    """

    max_seconds: float | None = None
    target: float = 0.0
    relative_target: float = 0.0
    patience: int = 0
    progress: float = 0.9

    def cut_short(
        self, length: int, began: tuple[int, float] | None, now: tuple[int, float]
    ) -> bool:
        """Whether the time limit would end a round of this length before its time.

        ``began`` and ``now`` are the step and the seconds of training at which the last round began,
        if that is known, and ended. New points raise the loss for a while, so that those of the last
        round stay to the end then.

        >>> Stops(max_seconds=100).cut_short(250, began=(200, 70.0), now=(300, 80.0))
        True
        """
        if self.max_seconds is None or began is None or began[0] == now[0]:
            return False
        seconds_a_step = (now[1] - began[1]) / (now[0] - began[0])
        return now[1] + length * seconds_a_step > self.max_seconds

    def asked(self, seconds: float, interrupted: bool) -> End | None:
        """Whether somebody, or the limit on the ``seconds`` of training, ends it now."""
        if interrupted:
            return INTERRUPTED
        if self.max_seconds is not None and seconds >= self.max_seconds:
            return End(
                "time_limit", f"the time limit is reached, after {seconds:.1f} s of training"
            )
        return None


NO_STOPS = Stops()


@dataclass(frozen=True)
class Facts:
    """What is known after some steps.

    ``target`` is the loss that is enough, with the relative one worked in; ``is_last`` says that
    all steps of the last stage of the last window are done. Windows that find their own lengths
    have an estimated ``window_error``, and a ``tolerance`` for it.
    """

    loss: float
    target: float = 0.0
    seconds: float = 0.0
    interrupted: bool = False
    is_last: bool = False
    round_losses: Sequence[float] = ()
    window_error: float | None = None
    tolerance: float | None = None


def decide(stops: Stops, facts: Facts) -> End | None:
    """How the window ends now, or ``None`` where it goes on.

    >>> decide(Stops(max_seconds=10), Facts(loss=1.0, seconds=12.0)).status
    'time_limit'
    >>> decide(Stops(), Facts(loss=1.0)) is None
    True
    """
    if facts.tolerance is not None and facts.window_error is not None:
        if facts.window_error <= facts.tolerance:
            return End("target", f"the estimated error of the window reached {facts.tolerance:.3g}")
    elif facts.loss <= facts.target:
        return End("target", f"the loss reached its target of {facts.target:.3g}")
    if facts.is_last:
        return None  # everything is done, whatever the clock or a signal says
    end = stops.asked(facts.seconds, facts.interrupted)
    if end is not None:
        return end
    if stops.patience and stalled(facts.round_losses, stops.patience, stops.progress):
        return End("stalled", f"no progress over {stops.patience} rounds")
    return None


def stalled(round_losses: Sequence[float], patience: int, progress: float) -> bool:
    """Whether the last ``patience`` rounds did not bring the loss to ``progress`` times its best.

    >>> stalled([1.0, 0.99, 0.98], 2, 0.9), stalled([1.0, 0.5, 0.4], 2, 0.9)
    (True, False)
    """
    if len(round_losses) <= patience:
        return False
    before = min(round_losses[:-patience])
    return min(round_losses[-patience:]) > progress * before
