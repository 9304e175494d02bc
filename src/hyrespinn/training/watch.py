"""Everything that looks at a training and takes no part in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from jax import Array

from ..losses.context import Context
from .records import Clock, Reporter, Silent, Store
from .run_state import RunState
from .stage import StageState
from .windows import Window


class Monitor(Protocol):
    """Further columns of the history, such as errors against a reference."""

    def __call__(
        self, theta: Array, context: Context, window: Window | None
    ) -> Mapping[str, float]: ...


@dataclass
class Watch:
    """The clock, what is shown, what is kept, and whether somebody asks to stop.

    ``checkpoint_seconds`` pass between two checkpoints.
    """

    clock: Clock = field(default_factory=Clock)
    reporter: Reporter = field(default_factory=Silent)
    store: Store = field(default_factory=Silent)
    monitor: Monitor | None = None
    interrupted: Callable[[], bool] = lambda: False
    checkpoint_seconds: float = 30.0
    _last: float = field(default_factory=time.monotonic)

    def checkpoint(self, state: StageState, run: RunState, force: bool = False) -> None:
        """Keep the state where it is time to, or where that is asked for."""
        if force or time.monotonic() - self._last > self.checkpoint_seconds:
            self.store.checkpoint(state, run, self.clock)
            self._last = time.monotonic()
