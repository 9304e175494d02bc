"""The phases of a run by name from the first second, and the seconds that they take.

Nothing heavy is imported here: the first phase is named while the rest of the package is loaded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Imports:
    """The seconds that this process has spent on importing the package, and what it needs."""

    seconds: float = 0.0
    _depth: int = 0

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Inside, the time counts; once where one import begins another."""
        begin = time.perf_counter()
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                self.seconds += time.perf_counter() - begin


IMPORTS = Imports()


def silent(name: str) -> None:
    """Shows nothing."""


def line(name: str) -> None:
    """Shows a phase as a line of its own, at once."""
    print(f"{name} …", flush=True)


@dataclass
class Phases:
    """What a run is doing now: each phase is shown when it begins, and measured.

    Args:
        show: Is told the name of every phase that begins.

    >>> phases = Phases(print)
    >>> phases.begin("choosing the method", "configure")
    choosing the method
    >>> phases.end()
    >>> list(phases.seconds)
    ['configure']
    """

    show: Callable[[str], None] = silent
    seconds: dict[str, float] = field(default_factory=dict)
    started: float = field(default_factory=time.perf_counter)
    _now: tuple[str | None, float] = (None, 0.0)

    def begin(self, name: str, key: str | None = None) -> None:
        """A phase begins, and the one before it is over; its seconds are added to those of ``key``."""
        self.end()
        self._now = key, time.perf_counter()
        self.show(name)

    def count_as(self, key: str) -> None:
        """From here on, the seconds of the present phase are those of ``key``."""
        self.end()
        self._now = key, time.perf_counter()

    def end(self) -> None:
        """The present phase is over."""
        key, begin = self._now
        if key is not None:
            self.seconds[key] = self.seconds.get(key, 0.0) + time.perf_counter() - begin
        self._now = None, 0.0

    def took(self, key: str) -> float:
        """The seconds of the phases with this key."""
        return self.seconds.get(key, 0.0)
