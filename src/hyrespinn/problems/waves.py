"""The waves that a problem starts from, and whether it can make finer ones of them."""

from __future__ import annotations

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
"""Points at which a start is looked at: waves up to half as many."""
LEFT_OUT = 1e-9
"""The share of a start that its finest waves may be, and still be left out."""


def keeps_its_waves(problem: Problem) -> bool:
    """Whether each wave goes its own way: a linear equation with constant coefficients and no source.

    >>> import hyrespinn as hp
    >>> keeps_its_waves(hp.problems.Heat1D()), keeps_its_waves(hp.problems.Burgers())
    (True, False)
    """
    with jax.enable_x64(True):
        points = problem.domain.interior(jax.random.key(0), 16, kronecker, jnp.dtype("float64"))
        random = np.random.default_rng(0)
        requested = anatomy(problem).requested

        def residuals(values: dict[MultiIndex, np.ndarray]) -> dict[str, np.ndarray]:
            everywhere = {
                index: jnp.broadcast_to(jnp.asarray(value), (points.shape[0], value.size))
                for index, value in values.items()
            }
            found = residuals_of(problem, everywhere, points)
            return {name: np.asarray(vector) for name, vector in found.items()}

        one, two = ({i: random.normal(size=len(problem.fields)) for i in requested} for _ in "12")
        none = {i: 0 * value for i, value in one.items()}
        first, second, sums, zero = map(
            residuals, (one, two, {i: one[i] + two[i] for i in requested}, none)
        )
        return all(
            np.allclose(first[name] + second[name], sums[name], rtol=1e-9)
            and np.ptp(first[name]) <= 1e-9 * np.abs(first[name]).max()
            and not zero[name].any()
            for name in first
        )


def finest_wave(problem: Problem) -> int:
    """The number of the finest wave in what a problem starts from, on a line that is periodic.

    >>> import hyrespinn as hp
    >>> finest_wave(hp.problems.AllenCahnPeriodic())  # a kink has waves of all lengths
    2048
    """
    with jax.enable_x64(True):
        starts = [c for c in problem.conditions() if isinstance(c, Initial)]
        return max(_finest(problem, condition) for condition in starts)


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
