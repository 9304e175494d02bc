"""Waiting for long computations without becoming deaf to signals and time limits.

What is compiled or computed by XLA cannot be cut, and Python hears of no signal while its main thread
is in it. So it is done in a thread of its own, and whoever waits for it looks up ten times a second.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, NoReturn, Protocol, TypeVar, runtime_checkable

from .stopping import End

T = TypeVar("T")

TICK = 0.1
"""Seconds between two looks at whether to go on waiting."""
GRACE = 2.5
"""Seconds that a computation which cannot be cut gets to end by itself, once it is to stop."""
NAME = "hyrespinn"
"""Of the threads."""


class Due(NamedTuple):
    """Why to stop, and since when (of ``time.monotonic``)."""

    end: End
    since: float


class Stopped(Exception):
    """What was waited for did not end in time, and was left alone; ``end`` says why."""

    def __init__(self, end: End):
        super().__init__(end.message)
        self.end = end


@runtime_checkable
class Wait(Protocol):
    """Calls a function and returns what it returns, or raises :class:`Stopped`."""

    def __call__(self, function: Callable[[], T], /) -> T: ...


def directly(function: Callable[[], T], /) -> T:
    """A plain call, which nothing can stop."""
    return function()


class Waiter:
    """Calls functions in a thread of its own, one after the other, and waits for each.

    Args:
        due: Whether it is time to stop, and why.
        around: A context for every call, for settings that each thread has to itself.
        grace: How many seconds a call may go on after that; then :class:`Stopped` is raised, and the
            call is left to itself.
    """

    def __init__(
        self,
        due: Callable[[], Due | None] = lambda: None,
        around: Callable[[], AbstractContextManager[None]] = nullcontext,
        grace: float = GRACE,
    ):
        self.due, self.around, self.grace = due, around, grace
        self._worker = worker()

    def __call__(self, function: Callable[[], T], /) -> T:
        def work() -> T:
            with self.around():
                return function()

        return self._result(self._worker.submit(work))

    def _result(self, future: Future[T]) -> T:
        while True:
            try:
                return future.result(timeout=TICK)
            except TimeoutError:
                if future.done():  # the function itself has raised it
                    raise
            due = self.due()
            if due is not None and time.monotonic() - due.since > self.grace:
                self.close()
                self._worker = worker()
                raise Stopped(due.end)

    def close(self) -> None:
        """Begin nothing more; what is running is left to itself."""
        self._worker.shutdown(wait=False, cancel_futures=True)


def worker() -> ThreadPoolExecutor:
    """A thread for calls in the background."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix=NAME)


def leave(code: int) -> NoReturn:
    """End the process with an exit code, at once: everything is written.

    Python itself would take half a second to take JAX apart, and wait for a thread that is busy with
    what nobody needs, which may compile for another minute. Profilers and debuggers, which have
    something to do at the end, are waited for.
    """
    if sys.getprofile() is not None or sys.gettrace() is not None:
        sys.exit(code)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def leave_if_busy(code: int) -> None:
    """End the process at once where a thread is still busy."""
    until = time.monotonic() + 2 * TICK
    threads = [thread for thread in threading.enumerate() if thread.name.startswith(NAME)]
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    if any(thread.is_alive() for thread in threads):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
