"""The cells of a benchmark one after the other, or in several processes at once."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

import jax

from ..errors import UserError
from ..run.environment import cores
from ..training.interrupt import Interrupt
from ..training.waiting import leave_if_busy
from .plan import BenchRequest, Task, attempt, plan
from .table import Cell

Key = tuple[str, str, int]
Outcome = tuple[Cell | None, int | None]
"""What became of a cell, and the signal that stopped it."""
TICK = 0.5
"""Seconds between two looks at whether a signal has come."""


def run_cells(
    request: BenchRequest, path: Path, tasks: Sequence[Task], verbose: bool
) -> Iterator[Outcome]:
    """The outcomes as they come; nothing more is begun after a signal."""
    usable, jobs = cores(), request.jobs
    if not 1 <= jobs <= len(usable):
        raise UserError(f"The number of jobs is between 1 and {len(usable)} here, not {jobs}.")
    if jobs == 1:
        return _in_sequence(tasks, verbose)
    return _side_by_side(request, path, tasks, usable[:jobs])


def default_jobs() -> int:
    """A cell for each core, up to four, for compilation keeps one core busy and no more.

    With a GPU, one: cells would share its memory.
    """
    return min(4, len(cores())) if jax.default_backend() == "cpu" else 1


def _in_sequence(tasks: Sequence[Task], verbose: bool) -> Iterator[Outcome]:
    before: tuple[str, str] | None = None
    for task in tasks:
        before = _forget(before, task.key)
        outcome = attempt(task, verbose)
        yield outcome
        if outcome[1] is not None:
            return


def _forget(before: tuple[str, str] | None, key: Key) -> tuple[str, str]:
    """Or the programs of all cells stay in memory to the end."""
    if before is not None and before != key[:2]:
        jax.clear_caches()
    return key[:2]


def _side_by_side(
    request: BenchRequest, path: Path, tasks: Sequence[Task], usable: Sequence[int]
) -> Iterator[Outcome]:
    """Each process on a core of its own, so that no cell slows the step of another."""
    context = multiprocessing.get_context("spawn")  # a fork of a process that runs JAX may hang
    free = context.Queue()
    for core in usable:
        free.put(core)
    with (
        ProcessPoolExecutor(len(usable), context, _settle, (free,)) as pool,
        Interrupt() as interrupt,
    ):
        running = {pool.submit(_run, request, path, task.key) for task in tasks}
        try:
            while running:
                done, running = wait(running, TICK, FIRST_COMPLETED)
                if interrupt.requested():
                    running = {future for future in running if not future.cancel()}
                    _tell_children()
                yield from _outcomes(done, interrupt)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    if interrupt.signal is not None:
        yield None, interrupt.signal


def _outcomes(done: Iterable[Future[Outcome]], interrupt: Interrupt) -> Iterator[Outcome]:
    for future in done:
        try:
            cell, number = future.result()
        except BrokenProcessPool:
            if not interrupt.requested():
                raise
            continue  # a process that had no cell yet
        interrupt.signal = interrupt.signal or number  # one that a cell alone was sent
        yield cell, interrupt.signal


def _tell_children() -> None:
    """Again and again, until each has a cell that hears it."""
    for child in multiprocessing.active_children():
        child.terminate()


_last: dict[str, tuple[str, str]] = {}
_signals: list[int] = []
"""Of this process: the cell before, and what has stopped a cell."""


def _settle(free: Any) -> None:
    """Take a core before JAX counts them; signals come from the process above, and cells hear them."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    Finalize(None, leave_if_busy, (0,), exitpriority=-100)  # when everything else is done
    core = free.get()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})


def _run(request: BenchRequest, path: Path, key: Key) -> Outcome:
    """A cell in a process of its own, which finds its configuration by itself.

    After a signal none is begun: one more than can run has been handed out by then.
    """
    if _signals:
        return None, _signals[-1]
    _last["cell"] = _forget(_last.get("cell"), key)
    task = next(task for task in plan(request, path) if task.key == key)
    cell, number = attempt(task)
    if number is not None:
        _signals.append(number)
    return cell, number
