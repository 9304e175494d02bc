"""Everything that looks at a training and takes no part in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from jax import Array

from ..losses.context import Context
from .pace import Pace
from .records import Clock, Reporter, Silent, Store
from .run_state import RunState
from .stage import StageState
from .waiting import Wait, directly
from .windows import Row, Window

Callback = Callable[[Row], bool | None]
"""Is shown every row of the history, and may return true to stop the training."""


@runtime_checkable
class Monitor(Protocol):
    """Further columns of the history, such as errors against a reference."""

    def __call__(
        self, theta: Array, context: Context, window: Window | None
    ) -> Mapping[str, float]: ...


class Kept(NamedTuple):
    """A state to which a run can go back, and where the run was then."""

    state: StageState
    run: RunState


@dataclass
class Watch:
    """The clock, what is shown, what is kept, and whether somebody or a callback asks to stop.

    ``checkpoint_seconds`` pass between two checkpoints. All that takes long is waited for by ``wait``,
    which may give up; ``kept`` is the last good state that no checkpoint has.
    """

    clock: Clock = field(default_factory=Clock)
    reporter: Reporter = field(default_factory=Silent)
    store: Store = field(default_factory=Silent)
    monitor: Monitor | None = None
    asked_to_stop: Callable[[], bool] = lambda: False
    checkpoint_seconds: float = 30.0
    callbacks: Sequence[Callback] = ()
    wait: Wait = directly
    kept: Kept | None = None
    _paces: dict[int, Pace] = field(default_factory=dict)
    _stopped: bool = False
    _held: bool = False
    _last: float = field(default_factory=time.monotonic)

    def show(self, row: Row) -> None:
        """Show a row to all callbacks."""
        answers = [callback(row) for callback in self.callbacks]
        self._stopped = self._stopped or any(answers)

    def interrupted(self) -> bool:
        """Whether the training is to stop here."""
        return self._stopped or self.asked_to_stop()

    def pace(self, stage: int) -> Pace:
        """How long the steps of a stage take."""
        return self._paces.setdefault(stage, Pace())

    def keep(self, state: StageState, run: RunState) -> None:
        """Remember a state, which nothing may use up, for the case that a step must be given up."""
        self.kept = Kept(state, run.snapshot())

    def checkpoint(self, state: StageState, run: RunState, force: bool = False) -> None:
        """Store the state where it is time to, or where that is asked for."""
        self.keep(state, run)
        if force or time.monotonic() - self._last > self.checkpoint_seconds:
            self.save()

    def save(self) -> None:
        """Store the last good state, where no checkpoint has it."""
        if self.kept is not None and not self._held:
            self.store.checkpoint(*self.kept, self.clock)
            self._last = time.monotonic()
        self.kept = None

    def hold(self) -> None:
        """Store the last good state, and none after it: what follows is for the time limit alone.

        A resumed run goes on from here, as if there had been no limit.
        """
        if not self._held:
            self.save()
            self._held = True
