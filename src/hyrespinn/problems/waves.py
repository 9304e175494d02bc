"""The waves that a problem starts from, and whether it can make finer ones of them."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..derivatives import MultiIndex
from ..geometry.sampling import kronecker
from .conditions import Initial, evaluate
from .fields import Point
from .problem import Problem, anatomy, residuals_of

SAMPLES = 4096
"""Points at which an equation and its start are looked at: waves up to half as many."""
LEFT_OUT = 1e-9
"""The share of a start that its finest waves may be, and still be left out."""


def keeps_its_waves(problem: Problem) -> bool:
    """Whether each wave goes its own way: a linear equation with constant coefficients and no source.

    >>> import hyrespinn as hp
    >>> keeps_its_waves(hp.problems.Heat1D()), keeps_its_waves(hp.problems.Burgers())
    (True, False)
    """
    try:
        with jax.enable_x64(True), jax.debug_nans(False):
            return _keeps(problem)
    except Exception:  # whatever is wrong with the residual itself shows again in training
        return False


def _keeps(problem: Problem) -> bool:
    """Fields of any size and sign, other ones at every point; then the same at all of them."""
    draw = jax.jit(
        lambda key: problem.domain.interior(key, SAMPLES, kronecker, jnp.dtype("float64"))
    )
    points = draw(jax.random.key(0))
    requested = anatomy(problem).requested
    random = np.random.default_rng(0)
    shape = (SAMPLES, len(problem.fields))
    sizes = np.logspace(-3, 3, SAMPLES)
    one, two = (
        {i: jnp.asarray(sizes[:, None] * random.normal(size=shape)) for i in requested}
        for _ in range(2)
    )
    same = {i: jnp.broadcast_to(value[SAMPLES // 2], shape) for i, value in one.items()}

    compiled = jax.jit(partial(residuals_of, problem))

    def residuals(values: dict[MultiIndex, Array]) -> dict[str, np.ndarray]:
        return {n: np.asarray(r) for n, r in compiled(values, points).items()}

    first, second = residuals(one), residuals(two)
    sums = residuals({i: one[i] + two[i] for i in requested})
    nothing = residuals(dict.fromkeys(requested, jnp.zeros(shape)))
    everywhere = residuals(same)
    return all(
        np.all(np.abs(first[n] + second[n] - sums[n]) <= 1e-9 * (sizes + np.abs(sums[n])))
        and not nothing[n].any()
        and np.ptp(everywhere[n]) <= 1e-9 * np.abs(everywhere[n]).max()
        for n in first
    )


def finest_wave(problem: Problem) -> int:
    """The number of the finest wave in what a problem starts from, on a line that is periodic.

    >>> import hyrespinn as hp
    >>> finest_wave(hp.problems.AllenCahnPeriodic())  # a kink has waves of all lengths
    2048
    """
    with jax.enable_x64(True):
        starts = [c for c in problem.conditions() if isinstance(c, Initial)]
        return max((_finest(problem, condition) for condition in starts), default=0)


def _finest(problem: Problem, condition: Initial) -> int:
    (begin, _), (lower, upper) = problem.domain.bounds
    x = lower + (upper - lower) * np.arange(SAMPLES) / SAMPLES
    points = jnp.asarray(np.stack([np.full(SAMPLES, begin), x], axis=1))
    values: Array = evaluate(
        condition.value, Point(points, problem.domain.coordinates), points[:, 0]
    )
    sizes = np.abs(np.fft.rfft(np.asarray(values)))
    beyond = np.sqrt(np.cumsum(sizes[::-1] ** 2)[::-1])  # the norm from each wave on
    kept = np.flatnonzero(beyond > LEFT_OUT * max(beyond[0], np.finfo(float).tiny))
    return int(kept[-1]) if kept.size else 0
