"""What may end a run from outside: a signal, or a limit on its time."""

from __future__ import annotations

import time
from dataclasses import dataclass

from .interrupt import Interrupt
from .records import Clock
from .stopping import INTERRUPTED, End
from .waiting import Due

LEAST = 2.0
"""Seconds that what comes before training may take, however short its limit is."""


@dataclass(frozen=True)
class Limits:
    """Signals, and limits in seconds: on the training since its very beginning, and on what this
    process does before and between training, which is to make a reference and to compile."""

    interrupt: Interrupt
    clock: Clock
    training: float | None = None
    preparation: float | None = None

    def due(self) -> Due | None:
        """Whether to stop now."""
        return self.signalled() or self._late()

    def signalled(self) -> Due | None:
        """Whether a signal has come."""
        if not self.interrupt.requested():
            return None
        return Due(INTERRUPTED, self.interrupt.since)

    def _late(self) -> Due | None:
        trained, prepared = self.clock.spent()
        now = time.monotonic()
        if self.training is not None and trained >= self.training:
            text = "the time limit is reached in the middle of a step that takes long"
            return Due(End("time_limit", text), now - (trained - self.training))
        most = None if self.preparation is None else max(LEAST, self.preparation)
        if most is not None and prepared >= most:
            text = f"the reference and compilation took longer than the limit of {most:g} s"
            return Due(End("time_limit", text), now - (prepared - most))
        return None
