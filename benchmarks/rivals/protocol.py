"""How a worker talks to ``run.py``: one JSON object a line, whatever the libraries print."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any


class Channel:
    """The standard output for JSON alone; everything else that is printed goes to the error."""

    def __init__(self) -> None:
        self.out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)

    def send(self, **content: Any) -> None:
        print(json.dumps(content), file=self.out, flush=True)


def take_turns(
    channel: Channel,
    advance: Callable[[], int],
    more: Callable[[], dict[str, Any]] = dict,
    **about: Any,
) -> None:
    """Say that all is ready; then, for every line ``seconds``, step so long and send the rate.

    ``advance`` makes a few steps and returns their number; ``more`` adds to what a turn reports.
    """
    advance()
    channel.send(**about)
    for line in sys.stdin:
        seconds, steps = float(line), 0
        begin = time.perf_counter()
        while (elapsed := time.perf_counter() - begin) < seconds:
            steps += advance()
        channel.send(steps_per_second=steps / elapsed, **more())


def versions(*names: str) -> dict[str, str]:
    return {name: version(name) for name in names}


class Over(Exception):
    """The error is small enough, or the time is used up."""


class Watch:
    """The clock of an accuracy run, from the start of the process, without error evaluations."""

    def __init__(self, begin: float, limit: float, target: float):
        self.begin, self.limit, self.target = begin, limit, target
        self.pause = 0.0
        self.imported = time.time() - begin
        self.compiled = 0.0
        self.curve: list[tuple[float, int, float]] = []

    @property
    def seconds(self) -> float:
        return time.time() - self.begin - self.pause

    @contextmanager
    def paused(self) -> Iterator[None]:
        begin = time.time()
        try:
            yield
        finally:
            self.pause += time.time() - begin

    @contextmanager
    def compiling(self) -> Iterator[None]:
        begin = time.time()
        try:
            yield
        finally:
            self.compiled += time.time() - begin

    def due(self, step: int) -> bool:
        """Whether to look at the error: every 500 steps, every 10 s, and at the limit."""
        last_seconds, last_step, _ = self.curve[-1] if self.curve else (self.imported, 0, 0.0)
        now = self.seconds
        return step - last_step >= 500 or now - last_seconds >= 10 or now >= self.limit

    def record(self, step: int, measure: Callable[[], float]) -> None:
        """Measure the error with the clock stopped; raise ``Over`` where that ends the run."""
        now = self.seconds
        with self.paused():
            error = measure()
        self.curve.append((round(now, 3), step, error))
        if error <= self.target or now >= self.limit:
            raise Over

    def result(self) -> dict[str, Any]:
        finite = [row for row in self.curve if row[2] == row[2]]
        best = min(finite, key=lambda row: row[2], default=(None, None, None))
        reached = best[2] is not None and best[2] <= self.target
        without = self.imported + self.compiled
        return {
            "status": "reached" if reached else "not reached",
            "seconds": best[0] if reached else None,
            "seconds without import and compilation": best[0] - without if reached else None,
            "limit seconds": self.limit,
            "target": self.target,
            "import seconds": self.imported,
            "compilation seconds": self.compiled,
            "evaluation seconds, not counted": self.pause,
            "best error": best[2],
            "best error at seconds": best[0],
            "last": self.curve[-1] if self.curve else None,
            "curve: seconds, step, error": self.curve,
        }


def accuracy_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("problem", choices=("burgers", "allen-cahn-periodic"))
    parser.add_argument("--begin", type=float, required=True, help="when the process was started")
    parser.add_argument("--limit", type=float, required=True)
    parser.add_argument("--target", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--method", default="")
    return parser.parse_args(arguments)
