"""The finest wave in the data at the initial time."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from .conditions import Start, evaluate

SAMPLES = 4096
"""Points at which a start is looked at: waves up to half as many."""
LEFT_OUT = 1e-9
"""The share of a start that its finest waves may be, and still be left out."""


def bandwidth_of(starts: Sequence[Start]) -> int:
    """The number of the finest wave in these data, on a line that is periodic.

    >>> import hyrespinn as hp
    >>> bandwidth_of(hp.problems.state(hp.problems.AllenCahnPeriodic()).starts)  # a kink has all
    2048
    """
    with jax.enable_x64(True):
        return max((_bandwidth(start) for start in starts), default=0)


def _bandwidth(start: Start) -> int:
    (begin, _), (lower, upper) = start.equation.domain.bounds
    x = lower + (upper - lower) * np.arange(SAMPLES) / SAMPLES
    points = jnp.asarray(np.stack([np.full(SAMPLES, begin), x], axis=1))
    values = evaluate(start.value, start.equation.point(points), points[:, 0])
    sizes = np.abs(np.fft.rfft(np.asarray(values)))
    beyond = np.sqrt(np.cumsum(sizes[::-1] ** 2)[::-1])  # the norm from each wave on
    kept = np.flatnonzero(beyond > LEFT_OUT * max(beyond[0], np.finfo(float).tiny))
    return int(kept[-1]) if kept.size else 0
