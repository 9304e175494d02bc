"""What a loss depends on besides points and parameters: weights, causality, a window of time."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array


class Window(NamedTuple):
    """A window of time that is solved by itself, from the state in which the last one ended.

    All of it are arrays, so that code compiled for one window serves every other.
    """

    start: Array
    length: Array
    is_first: Array  # the first begins with the problem's own initial condition
    before: Array  # the parameters of the window before
    before_start: Array
    before_length: Array


class Context(NamedTuple):
    """``weights`` by the name of a residual vector; ``level`` counts the causal tolerances passed.

    ``causal`` holds causal weights that stay as they are, for optimisers that search along a line
    and so need one function from one evaluation to the next; ``None`` follows the residuals.
    ``parameters`` are those of the problem that are traced: other values compile nothing new.
    """

    weights: dict[str, Array]
    level: Array
    causal: Array | None = None
    window: Window | None = None
    parameters: dict[str, Array] | None = None


def first_window(theta: Array, start: float, length: float) -> Window:
    """The window at the initial time; nothing comes before it."""
    start_, length_ = jnp.asarray(start, theta.dtype), jnp.asarray(length, theta.dtype)
    return Window(start_, length_, jnp.asarray(True), theta, start_, length_)


def next_window(last: Window, theta: Array, start: float, length: float) -> Window:
    """The window after ``last``, which ended with the parameters ``theta``."""
    dtype = theta.dtype
    return Window(
        jnp.asarray(start, dtype),
        jnp.asarray(length, dtype),
        jnp.asarray(False),
        theta,
        last.start,
        last.length,
    )
