"""Ctrl-C and SIGTERM end a run within seconds, with everything saved."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType

Handler = Callable[[int, FrameType | None], object] | int | None


class Interrupt:
    """A context in which SIGINT and SIGTERM set a flag; a second SIGINT stops at once.

    >>> with Interrupt() as interrupt:
    ...     interrupt.requested()
    False
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self.since = time.monotonic()  # when the first signal came
        self._before: dict[int, Handler] = {}

    def requested(self) -> bool:
        return self.signal is not None

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.signal == signal.SIGINT and number == signal.SIGINT:
            raise KeyboardInterrupt
        if self.signal is None:
            self.since = time.monotonic()
        self.signal = number

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
