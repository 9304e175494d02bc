"""Progress for people: a live line on a terminal, plain lines elsewhere, nothing when quiet."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from ..training.records import Silent


class Meter:
    """Step rate and time left of a stage, and the window of time that it is on."""

    def __init__(self) -> None:
        self.name, self.steps, self.first, self.begin = "", 0, 0, 0.0
        self.window: dict[str, str] = {}

    def stage(self, name: str, steps: int, done: int, seconds: float) -> None:
        """``seconds`` of training so far: compilation is no part of a rate."""
        self.name, self.steps, self.first, self.begin = name, steps, done, seconds

    def enter(self, number: str, start: float, end: float) -> None:
        """Rows are of this window from now on."""
        self.window = {"window": number, "time": f"{start:.3g}–{end:.3g}"}

    def summary(self, row: Mapping[str, Any]) -> dict[str, str]:
        done = row["stage_steps"]
        elapsed = row["seconds"] - self.begin
        rate = (done - self.first) / elapsed if elapsed > 0 else 0.0
        left = (self.steps - done) / rate if rate else float("nan")
        shown = {
            **self.window,
            "stage": self.name,
            "step": f"{done}/{self.steps}",
            "rate": f"{rate:.0f}/s",
            "loss": f"{row['loss_total']:.2e}",
        }
        for key, value in row.items():
            if key.startswith("loss_") and key not in ("loss_total", "loss_penalty"):
                shown[key.removeprefix("loss_")] = f"{value:.1e}"
            elif key.startswith("phi_"):
                _, gate, block = key.split("_")
                shown[f"{'α' if gate == 'alpha' else 'β'}{block}"] = f"{value:.2f}"
            elif key.startswith("alpha_"):
                shown[f"α{key.removeprefix('alpha_')}"] = f"{value:.2f}"
            elif key.startswith("rel_l2_"):
                shown[f"error {key.removeprefix('rel_l2_')}"] = f"{value:.2e}"
        shown["left"] = f"{left:.0f} s" if left == left else "?"
        return shown


class PlainReporter:
    """A line now and then, for logs and pipes."""

    def __init__(self, console: Console, every: float = 5.0):
        self.console, self.every, self.meter, self.last = console, every, Meter(), 0.0
        self.now = ""

    def phase(self, name: str) -> None:
        if name != self.now:
            self.now = name
            self.message(f"{name} …")

    def stage(self, name: str, steps: int, done: int, seconds: float) -> None:
        self.meter.stage(name, steps, done, seconds)
        if not self.meter.window:  # of which there may be hundreds
            self.message(f"{name}: {steps - done} steps")

    def window(self, number: str, start: float, end: float) -> None:
        self.meter.enter(number, start, end)

    def row(self, row: Mapping[str, Any]) -> None:
        now = time.perf_counter()
        ends = row["stage_steps"] >= self.meter.steps and not self.meter.window
        if now - self.last < self.every and not ends:
            return
        self.last = now
        parts = (f"{k} {v}" for k, v in self.meter.summary(row).items())
        self.console.print("  ".join(parts), soft_wrap=True, highlight=False)

    def message(self, text: str) -> None:
        self.console.print(text, soft_wrap=True)

    def __enter__(self) -> PlainReporter:
        return self

    def __exit__(self, *_: object) -> None: ...


class LiveReporter:
    """A small table on a terminal, drawn anew in place."""

    def __init__(self, console: Console):
        self.console, self.meter = console, Meter()
        self.live = Live(console=console, refresh_per_second=4, transient=False)
        self.table: Table | str = ""
        self.now = ""

    def phase(self, name: str) -> None:
        if name != self.now:
            self.now = name
            self.live.update(f"{name} …", refresh=True)

    def stage(self, name: str, steps: int, done: int, seconds: float) -> None:
        self.meter.stage(name, steps, done, seconds)
        if not self.meter.window:
            self.live.update(f"{name}: {steps - done} steps …")

    def window(self, number: str, start: float, end: float) -> None:
        self.meter.enter(number, start, end)

    def row(self, row: Mapping[str, Any]) -> None:
        table = Table(box=None, pad_edge=False)
        shown = self.meter.summary(row)
        for column in shown:
            table.add_column(column, justify="right", no_wrap=True)
        table.add_row(*shown.values())
        self.table = table
        self.live.update(table)

    def message(self, text: str) -> None:
        self.console.print(text)

    def __enter__(self) -> LiveReporter:
        self.live.__enter__()
        return self

    def __exit__(self, *details: Any) -> None:
        self.live.update(self.table)  # the last row stays to be read
        self.live.__exit__(*details)


class QuietReporter(Silent):
    def __enter__(self) -> QuietReporter:
        return self

    def __exit__(self, *_: object) -> None: ...


def reporter(progress: bool, console: Console | None = None) -> Any:
    """The reporter that fits where the output goes."""
    if not progress:
        return QuietReporter()
    console = console or Console()
    return LiveReporter(console) if console.is_terminal else PlainReporter(console)
