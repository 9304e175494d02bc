"""What a training says and keeps while it runs: reports, files, the clock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from jax import Array

from .run_state import RunState
from .stage import StageState
from .windows import Row

Work = Literal["training", "compilation", "other"]


@runtime_checkable
class Reporter(Protocol):
    """Shows what happens; the null one shows nothing. ``phase`` names what is going on now, ``window``
    says which one of time begins."""

    def phase(self, name: str) -> None: ...
    def window(self, number: str, start: float, end: float) -> None: ...
    def stage(self, name: str, steps: int, done: int, seconds: float) -> None: ...
    def row(self, row: Row) -> None: ...
    def message(self, text: str) -> None: ...


@runtime_checkable
class Store(Protocol):
    """Keeps what must survive; the null one keeps nothing."""

    def append(self, row: Row) -> None: ...
    def checkpoint(self, state: StageState, run: RunState, clock: Clock) -> None: ...
    def keep_window(self, index: int, theta: Array) -> None: ...


class Silent:
    """Reports and stores nothing."""

    def phase(self, name: str) -> None: ...
    def window(self, number: str, start: float, end: float) -> None: ...
    def stage(self, name: str, steps: int, done: int, seconds: float) -> None: ...
    def row(self, row: Row) -> None: ...
    def message(self, text: str) -> None: ...
    def append(self, row: Row) -> None: ...
    def checkpoint(self, state: StageState, run: RunState, clock: Clock) -> None: ...
    def keep_window(self, index: int, theta: Array) -> None: ...


@dataclass
class Clock:
    """Adds up the seconds of training and, apart from them, of compilation.

    ``prepared`` are those of this process that are no training; a resumed run goes on with the others.
    """

    training: float = 0.0
    compilation: float = 0.0
    prepared: float = 0.0
    _running: tuple[Work, float] | None = None

    @contextmanager
    def measure(self, what: Work) -> Iterator[None]:
        begin = time.perf_counter()
        self._running = what, begin
        try:
            yield
        finally:
            self._running = None
            self._add(what, time.perf_counter() - begin)

    def _add(self, what: Work, seconds: float) -> None:
        if what == "training":
            self.training += seconds
            return
        self.prepared += seconds
        if what == "compilation":
            self.compilation += seconds

    def spent(self) -> tuple[float, float]:
        """The seconds of training and of preparation, with those of what is being done now."""
        trained, prepared = self.training, self.prepared
        if self._running is not None:
            what, begin = self._running
            seconds = time.perf_counter() - begin
            if what == "training":
                trained += seconds
            else:
                prepared += seconds
        return trained, prepared
