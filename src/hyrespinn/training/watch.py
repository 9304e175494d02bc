"""Everything that looks at a training and takes no part in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from jax import Array

from ..losses.context import Context
from .records import Clock, Reporter, Silent, Store
from .run_state import RunState
from .stage import StageState
from .windows import Row, Window

Callback = Callable[[Row], bool | None]
"""Is shown every row of the history, and may return true to stop the training."""


@runtime_checkable
class Monitor(Protocol):
    """Further columns of the history, such as errors against a reference."""

    def __call__(
        self, theta: Array, context: Context, window: Window | None
    ) -> Mapping[str, float]: ...


@dataclass
class Watch:
    """The clock, what is shown, what is kept, and whether somebody or a callback asks to stop.

    ``checkpoint_seconds`` pass between two checkpoints.
    """

    clock: Clock = field(default_factory=Clock)
    reporter: Reporter = field(default_factory=Silent)
    store: Store = field(default_factory=Silent)
    monitor: Monitor | None = None
    asked_to_stop: Callable[[], bool] = lambda: False
    checkpoint_seconds: float = 30.0
    callbacks: Sequence[Callback] = ()
    _stopped: bool = False
    _last: float = field(default_factory=time.monotonic)

    def show(self, row: Row) -> None:
        """Show a row to all callbacks."""
        answers = [callback(row) for callback in self.callbacks]
        self._stopped = self._stopped or any(answers)

    def interrupted(self) -> bool:
        """Whether the training is to stop here."""
        return self._stopped or self.asked_to_stop()

    def checkpoint(self, state: StageState, run: RunState, force: bool = False) -> None:
        """Keep the state where it is time to, or where that is asked for."""
        if force or time.monotonic() - self._last > self.checkpoint_seconds:
            self.store.checkpoint(state, run, self.clock)
            self._last = time.monotonic()
