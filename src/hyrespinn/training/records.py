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


@runtime_checkable
class Reporter(Protocol):
    """Shows what happens; the null one shows nothing."""

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

    def stage(self, name: str, steps: int, done: int, seconds: float) -> None: ...
    def row(self, row: Row) -> None: ...
    def message(self, text: str) -> None: ...
    def append(self, row: Row) -> None: ...
    def checkpoint(self, state: StageState, run: RunState, clock: Clock) -> None: ...
    def keep_window(self, index: int, theta: Array) -> None: ...


@dataclass
class Clock:
    """Adds up the seconds of training and, apart from them, of compilation."""

    training: float = 0.0
    compilation: float = 0.0

    @contextmanager
    def measure(self, what: Literal["training", "compilation"]) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            setattr(self, what, getattr(self, what) + time.perf_counter() - begin)
