"""Adam with the paper's learning rate: linear warm-up, then exponential decay.

Another transformation of the gradient, such as ``soap``, may take the place of Adam's moments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from ..errors import UserError
from .line_search import ValueAndGrad
from .optimiser import Optimiser, System

if TYPE_CHECKING:  # optax takes a while to import, and few runs need it
    import optax


class AdamState(NamedTuple):
    theta: Array
    moments: optax.OptState
    value: Array
    steps: Array
    slowdown: Array  # multiplies the learning rate; below 1 after a divergence
    failed: Array  # never: every step goes somewhere


def schedule(rate: float, warmup: int, decay: float, decay_steps: int) -> optax.Schedule:
    """From 0 to ``rate`` over ``warmup`` steps, then ``× decay`` every ``decay_steps``, smoothly."""
    import optax

    after = optax.exponential_decay(rate, max(decay_steps, 1), decay)
    if not warmup:
        return after
    return optax.join_schedules([optax.linear_schedule(0.0, rate, warmup), after], [warmup])


def moments() -> optax.GradientTransformation:
    """Adam's own direction, with the usual constants."""
    import optax

    return optax.scale_by_adam(b1=0.9, b2=0.999, eps=1e-8)


def start(theta: Float[Array, " n"], transform: optax.GradientTransformation) -> AdamState:
    return AdamState(
        theta=theta,
        moments=transform.init(theta),
        value=jnp.zeros((), theta.dtype),
        steps=jnp.asarray(0),
        slowdown=jnp.ones((), theta.dtype),
        failed=jnp.asarray(False),
    )


def step(
    function: ValueAndGrad,
    state: AdamState,
    rate: optax.Schedule,
    transform: optax.GradientTransformation,
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


@dataclass(frozen=True)
class Adam(Optimiser[AdamState]):
    """Adam on new points at every step (the paper's optimiser).

    Args:
        steps: The number of steps at most.
        batch: The number of points inside the domain, new ones at every step.
        rate: The learning rate after the warm-up.
        warmup: Over so many steps the rate rises from 0.
        decay: By which factor the rate then falls every ``decay_steps`` steps, smoothly.
        decay_steps: See ``decay``.

    >>> Adam(steps=100, rate=1e-2).decay
    0.9
    """

    batch: int = 1024
    rate: float = 5e-3
    warmup: int = 100
    decay: float = 0.9
    decay_steps: int = 50

    fresh_points: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.rate > 0:
            raise UserError(f"The rate of {type(self).__name__} is positive, not {self.rate}.")
        if self.batch < 1:
            raise UserError(f"A batch has at least one point, not {self.batch}.")
        if self.warmup < 0:
            raise UserError(f"A warm-up of {self.warmup} steps makes no sense; 0 is none.")
        if self.decay_steps < 1:
            raise UserError(f"decay_steps must be at least 1, not {self.decay_steps}.")

    @property
    def batch_size(self) -> int:
        return self.batch

    @property
    def look_every(self) -> int:
        return min(200, max(100, self.steps // 100))

    def transform(self, system: System, theta: Array) -> optax.GradientTransformation:
        """What makes a direction of a gradient."""
        return moments()

    def init(self, system: System, theta: Array) -> AdamState:
        return start(theta, self.transform(system, theta))

    def step(self, system: System, state: AdamState) -> AdamState:
        rate = schedule(self.rate, self.warmup, self.decay, self.decay_steps)
        return step(system.value_and_grad, state, rate, self.transform(system, state.theta))

    def renew(self, system: System, state: AdamState) -> AdamState:
        return state

    def forget(self, state: AdamState) -> AdamState:
        """With a quarter of the rate from here on."""
        return state._replace(slowdown=state.slowdown / 4)
