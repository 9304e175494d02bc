"""A strong-Wolfe line search that runs inside a compiled loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

ValueAndGrad = Callable[[Array], tuple[Array, Array]]


class LineSearchResult(NamedTuple):
    step: Array
    value: Array
    gradient: Array
    evaluations: Array
    success: Array


class _Search(NamedTuple):
    trial: Array  # the step length to try next
    low: Array  # the best point so far that decreases enough: (step, value, slope)
    low_gradient: Array
    high: Array  # the other end of the bracket
    bracketed: Array
    done: Array
    evaluations: Array


def strong_wolfe(
    function: ValueAndGrad,
    theta: Float[Array, " n"],
    value: Float[Array, ""],
    gradient: Float[Array, " n"],
    direction: Float[Array, " n"],
    first: Float[Array, ""],
    *,
    decrease: float = 1e-4,
    curvature: float = 0.9,
    evaluations: int | Array = 20,
) -> LineSearchResult:
    """A step with ``f(a) ≤ f(0) + c₁ a f'(0)`` and ``|f'(a)| ≤ c₂ |f'(0)|``.

    Near the rounding error of ``f`` the first condition cannot be seen any more and is replaced
    by its form in slopes (Hager and Zhang's approximate Wolfe condition). A trial whose value or
    slope is not finite counts as far too high. Where no such step is found in time, the best
    point with enough decrease is taken; with none at all, ``success`` is false.
    """
    slope = jnp.vdot(gradient, direction)
    noise = 4 * jnp.finfo(value.dtype).eps * jnp.abs(value)

    def evaluate(search: _Search) -> _Search:
        a = search.trial
        f, g = function(theta + a * direction)
        d = jnp.vdot(g, direction)
        here = jnp.stack([a, f, d])
        finite = jnp.isfinite(f) & jnp.isfinite(d)
        enough = f <= value + decrease * a * slope
        enough |= (f <= value + noise) & (d <= (2 * decrease - 1) * slope)
        too_high = ~finite | ~enough | ((f >= search.low[1]) & (search.low[0] > 0))
        flat = ~too_high & (jnp.abs(d) <= curvature * jnp.abs(slope))
        # Past the minimum as seen from the low end: the low end closes the bracket.
        beyond = ~too_high & ~flat & (d * (search.high[0] - search.low[0]) >= 0)
        high = jnp.where(too_high, here, jnp.where(beyond, search.low, search.high))
        low = jnp.where(too_high, search.low, here)
        low_gradient = jnp.where(too_high, search.low_gradient, g)
        bracketed = search.bracketed | too_high | beyond
        trial = jnp.where(bracketed, _inside(low, high), 4 * a)
        return _Search(trial, low, low_gradient, high, bracketed, flat, search.evaluations + 1)

    def unfinished(search: _Search) -> Array:
        apart = jnp.abs(search.high[0] - search.low[0]) > 1e-14 * jnp.abs(search.high[0])
        return ~search.done & (search.evaluations < evaluations) & (~search.bracketed | apart)

    start = _Search(
        trial=first,
        low=jnp.stack([jnp.zeros_like(value), value, slope]),
        low_gradient=gradient,
        high=jnp.stack([jnp.full_like(value, jnp.inf), value, slope]),
        bracketed=jnp.asarray(False),
        done=jnp.asarray(False),
        evaluations=jnp.asarray(0),
    )
    end = jax.lax.while_loop(unfinished, evaluate, start)
    return LineSearchResult(
        end.low[0], end.low[1], end.low_gradient, end.evaluations, (end.low[0] > 0) & (slope < 0)
    )


def _inside(low: Float[Array, 3], high: Float[Array, 3]) -> Float[Array, ""]:
    """The minimum of the cubic through two values and slopes, kept away from both ends."""
    a, fa, da = low
    b, fb, db = high
    width = b - a
    d1 = da + db - 3 * (fb - fa) / width
    radicand = d1 * d1 - da * db
    d2 = jnp.sign(width) * jnp.sqrt(jnp.maximum(radicand, 0))
    cubic = b - width * (db + d2 - d1) / (db - da + 2 * d2)
    middle = a + 0.5 * width
    usable = (radicand >= 0) & jnp.isfinite(cubic)
    # With nothing gained yet the first step may be far too long: come down fast.
    least = jnp.where(a == 0, 0.02, 0.1).astype(a.dtype)
    fraction = jnp.clip((jnp.where(usable, cubic, middle) - a) / width, least, 0.9)
    return a + jnp.where(jnp.isfinite(fb) & jnp.isfinite(db), fraction, least) * width


@runtime_checkable
class Searching(Protocol):
    """The state of an optimiser that searches along lines: a point with its value and gradient, the
    last ``decrease``, and ``fresh`` where nothing is known of the curvature yet."""

    @property
    def theta(self) -> Array: ...
    @property
    def value(self) -> Array: ...
    @property
    def gradient(self) -> Array: ...
    @property
    def decrease(self) -> Array: ...
    @property
    def fresh(self) -> Array: ...


def search_along(function: ValueAndGrad, state: Searching, direction: Array) -> LineSearchResult:
    """A search from the point of an optimiser's state; no success where it does not go downhill."""
    gradient = state.gradient
    slope = jnp.vdot(gradient, direction)
    downhill = jnp.isfinite(slope) & (slope < 0)
    # Without curvature there is no scale: begin with a step of length one at most.
    # Later the last decrease says how far the next one may go (Nocedal and Wright 3.60).
    likely = jnp.where(state.decrease > 0, jnp.minimum(1, -2.02 * state.decrease / slope), 1)
    unknown = jnp.minimum(1, 1 / jnp.linalg.norm(gradient))
    found = strong_wolfe(
        function,
        state.theta,
        state.value,
        gradient,
        jnp.where(downhill, direction, 0),
        jnp.where(state.fresh, unknown, likely).astype(gradient.dtype),
        evaluations=jnp.where(downhill, 20, 0),
    )
    return found._replace(success=found.success & downhill)
