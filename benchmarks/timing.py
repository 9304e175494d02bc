"""Side-by-side timing: the candidates take turns, so that a slow moment hits all of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax


def time_together(
    candidates: dict[str, Callable[[], Any]], seconds: float = 4.0, calls: int = 5
) -> dict[str, float]:
    """The best seconds a call of each candidate, over turns that fill about ``seconds`` each."""
    for run in candidates.values():
        jax.block_until_ready(run())
    best = dict.fromkeys(candidates, float("inf"))
    end = time.perf_counter() + seconds * len(candidates)
    while time.perf_counter() < end:
        for name, run in candidates.items():
            begin = time.perf_counter()
            for _ in range(calls):
                result = run()
            jax.block_until_ready(result)
            best[name] = min(best[name], (time.perf_counter() - begin) / calls)
    return best
