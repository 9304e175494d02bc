"""The cells of a benchmark one after the other, or in several processes at once."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import jax

from ..errors import UserError
from ..run.environment import cores
from .plan import BenchRequest, Task, attempt, plan
from .table import Cell

Key = tuple[str, str, int]
Outcome = tuple[Cell | None, int | None]
"""What became of a cell, and the signal that stopped it."""


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
    with ProcessPoolExecutor(len(usable), context, _settle, (free,)) as pool:
        futures = [pool.submit(_run, request, path, task.key) for task in tasks]
        try:
            for future in as_completed(futures):
                outcome = future.result()
                yield outcome
                if outcome[1] is not None:
                    return
        except KeyboardInterrupt:
            yield None, 2
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


_last: dict[str, tuple[str, str]] = {}


def _settle(free: Any) -> None:
    """Take a core before JAX counts them."""
    core = free.get()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})


def _run(request: BenchRequest, path: Path, key: Key) -> Outcome:
    """A cell in a process of its own, which finds its configuration by itself."""
    _last["cell"] = _forget(_last.get("cell"), key)
    task = next(task for task in plan(request, path) if task.key == key)
    return attempt(task)
