"""Adam with the paper's learning rate: linear warm-up, then exponential decay.

Another transformation of the gradient, such as ``soap``, may take the place of Adam's moments.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import optax
from jax import Array
from jaxtyping import Float

from .line_search import ValueAndGrad


class AdamState(NamedTuple):
    theta: Array
    moments: Any
    value: Array
    steps: Array
    slowdown: Array  # multiplies the learning rate; below 1 after a divergence


def schedule(rate: float, warmup: int, decay: float, decay_steps: int) -> optax.Schedule:
    """From 0 to ``rate`` over ``warmup`` steps, then ``× decay`` every ``decay_steps``, smoothly."""
    after = optax.exponential_decay(rate, max(decay_steps, 1), decay)
    if not warmup:
        return after
    return optax.join_schedules([optax.linear_schedule(0.0, rate, warmup), after], [warmup])


ADAM = optax.scale_by_adam(b1=0.9, b2=0.999, eps=1e-8)


def start(theta: Float[Array, " n"], transform: optax.GradientTransformation = ADAM) -> AdamState:
    return AdamState(
        theta=theta,
        moments=transform.init(theta),
        value=jnp.zeros((), theta.dtype),
        steps=jnp.asarray(0),
        slowdown=jnp.ones((), theta.dtype),
    )


def step(
    function: ValueAndGrad,
    state: AdamState,
    rate: optax.Schedule,
    transform: optax.GradientTransformation = ADAM,
) -> AdamState:
    """One step along ``transform``'s direction; the state must have been started with it."""
    value, gradient = function(state.theta)
    direction, moments = transform.update(gradient, state.moments)
    # The schedule counts from 1, so that the first step of a warm-up is not wasted on a rate of 0.
    length = (state.slowdown * rate(state.steps + 1)).astype(state.theta.dtype)
    return state._replace(
        theta=state.theta - length * direction,
        moments=moments,
        value=value,
        steps=state.steps + 1,
    )
