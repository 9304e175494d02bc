"""Whether a solution goes on smoothly behind its walls, found out by looking at the equation there."""

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
from .mirror import ODD, Mirror, mirrors_of
from .problem import Problem, anatomy, index_of, residuals_of

ROUNDING = 1e-9
"""Relative to what is compared, the most that two values may differ by and count as the same."""


def goes_on_smoothly(problem: Problem) -> bool:
    """Whether a solution goes on smoothly behind its walls, so that mirroring it loses nothing.

    For that the equation must be of the second order in space at most (else the mirror asks for more
    than the conditions do), at a wall look the same from both sides for any fields, and start without
    a jump or a kink there. A source that is not zero at a wall, or a wind through it, do not go on
    smoothly. Nor does what is infinite somewhere, or cannot be told.

    >>> import hyrespinn as hp
    >>> goes_on_smoothly(hp.problems.Burgers()), goes_on_smoothly(hp.problems.Poisson2D())
    (True, False)
    """
    mirrors = mirrors_of(problem)
    if not mirrors or not problem.domain.has_time:
        return False
    requested = anatomy(problem).requested
    if max(sum(index[1:]) for index in requested) > 2:
        return False
    walls = [(mirror, wall) for mirror in mirrors for wall in (mirror.lower, mirror.upper)]
    try:
        with jax.enable_x64(True), jax.debug_nans(False):
            return all(
                _looks_the_same(problem, requested, *where) and _starts_so(problem, *where)
                for where in walls
            ) and all(_is_finite(problem, requested, mirror) for mirror in mirrors)
    except Exception:  # whatever is wrong with the residual itself shows again in training
        return False


def _inside(problem: Problem, count: int = 64) -> Array:
    draw = jax.jit(lambda key: problem.domain.interior(key, count, kronecker, jnp.dtype("float64")))
    return draw(jax.random.key(0))


def _at_wall(problem: Problem, mirror: Mirror, wall: float) -> Array:
    return _inside(problem).at[:, mirror.axis].set(wall)


def _looks_the_same(
    problem: Problem, requested: tuple[MultiIndex, ...], mirror: Mirror, wall: float
) -> bool:
    """For fields of any size; a source by itself too, next to what it is elsewhere."""
    points = _at_wall(problem, mirror, wall)
    random = np.random.default_rng(0)
    sizes = np.logspace(-3, 3, len(points))
    shape = (len(points), len(problem.fields))
    values = {i: jnp.asarray(sizes[:, None] * random.normal(size=shape)) for i in requested}
    images = {index: mirror.sign(index) * value for index, value in values.items()}
    nothing = dict.fromkeys(requested, jnp.zeros(shape))

    residuals = jax.jit(partial(residuals_of, problem))
    ahead, behind, source, elsewhere = (
        {name: np.asarray(vector) for name, vector in residuals(v, where).items()}
        for v, where in (
            (values, points), (images, points), (nothing, points), (nothing, _inside(problem)),
        )
    )  # fmt: skip
    return all(
        np.isfinite(ahead[name]).all()
        and np.all(
            np.abs(mirror.parity * behind[name] - ahead[name])
            <= ROUNDING * (sizes + np.abs(ahead[name]))
        )
        and np.abs((1 - mirror.parity) * source[name]).max()
        <= ROUNDING * np.abs(elsewhere[name]).max()
        for name in ahead
    )


def _is_finite(problem: Problem, requested: tuple[MultiIndex, ...], mirror: Mirror) -> bool:
    """Whether the equation is finite at evenly spaced places, as those of a lattice are, too."""
    points = _inside(problem, 65)
    along = jnp.linspace(mirror.lower, mirror.upper, 65)
    ones = dict.fromkeys(requested, jnp.ones((65, len(problem.fields))))
    residuals = jax.jit(partial(residuals_of, problem))
    found = residuals(ones, points.at[:, mirror.axis].set(along))
    return all(np.isfinite(np.asarray(vector)).all() for vector in found.values())


def _starts_so(problem: Problem, mirror: Mirror, wall: float) -> bool:
    """Whether what is odd about a wall starts from zero there, and what is even without a slope."""
    names, begin = problem.domain.coordinates, problem.domain.bounds[0][0]
    across = jnp.zeros((1, len(names))).at[0, mirror.axis].set(mirror.upper - mirror.lower)

    def both(condition: Initial, points: Array) -> tuple[Array, Array]:
        """The data at points, and their change across the length at this rate."""

        def data(points: Array) -> Array:
            return evaluate(condition.value, Point(points, names), points[:, 0])

        points = points.at[:, 0].set(begin)
        directions = jnp.broadcast_to(across, points.shape)
        return jax.jit(lambda points: jax.jvp(data, (points,), (directions,)))(points)

    for condition in (c for c in problem.conditions() if isinstance(c, Initial)):
        odd = mirror.sign(index_of(problem, condition)) == ODD
        value, change = both(condition, _at_wall(problem, mirror, wall))
        largest = jnp.max(jnp.abs(jnp.stack(both(condition, _inside(problem)))))
        if not jnp.max(jnp.abs(value if odd else change)) <= 1e3 * ROUNDING * largest:
            return False
    return True
