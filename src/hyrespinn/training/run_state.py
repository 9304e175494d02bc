"""Where a run is: all that a checkpoint holds besides arrays, in one schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

from .windows import Row, Status, WindowOutcome


@dataclass
class Progress:
    """Where the present window is."""

    window: int = 0  # the number of windows that are done
    stage: int = 0
    steps: int = 0  # over all windows and stages
    stage_steps: int = 0
    retries: int = 0
    next_round: int = 0  # the step of the stage at which the next round begins
    stuck_at: int = -2  # the step of the stage at which the optimiser last got stuck
    round_losses: list[float] = field(default_factory=list)
    look_at: int = 0  # the step of the stage up to which the chunk goes that was begun
    done: Status | None = None


@dataclass
class RunState:
    """A run as data: its progress, the windows tried so far, the last losses and row of the history.

    >>> run = RunState(losses={"total": 1.0})
    >>> RunState.from_json(run.to_json()) == run
    True
    """

    progress: Progress = field(default_factory=Progress)
    tried: list[WindowOutcome] = field(default_factory=list)
    losses: dict[str, float] = field(default_factory=dict)
    row: Row = field(default_factory=dict)
    message: str = ""

    def kept(self) -> list[WindowOutcome]:
        """The windows that are done."""
        return [window for window in self.tried if window.kept]

    def snapshot(self) -> RunState:
        """A copy that stays as it is; what is never changed in place is shared."""
        progress = replace(self.progress, round_losses=[*self.progress.round_losses])
        return replace(self, progress=progress, tried=[*self.tried])

    def to_json(self) -> dict[str, object]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, object]) -> RunState:
        progress, tried = content["progress"], content["tried"]
        losses, row = content["losses"], content["row"]
        assert isinstance(progress, Mapping)
        assert isinstance(tried, list)
        assert isinstance(losses, Mapping)
        assert isinstance(row, Mapping)
        return cls(
            progress=Progress(**progress),
            tried=[WindowOutcome.from_json(window) for window in tried],
            losses=dict(losses),
            row=dict(row),
            message=str(content["message"]),
        )
