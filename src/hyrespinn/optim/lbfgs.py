"""L-BFGS: a quasi-Newton method that keeps the last few steps in place of a matrix.

Its interface is that of ``ssbroyden``; a step needs ``4·memory·n`` operations, where a dense
matrix needs ``n²``. The pairs are kept by hand: optax's ``scale_by_lbfgs`` stores the difference
of any two gradients it is shown in turn, so that it can neither leave out a pair without
curvature nor be given a new function.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from ..errors import UserError
from .line_search import ValueAndGrad, search_along
from .optimiser import GrowingRounds, System


class Memory(NamedTuple):
    """The last pairs ``s``, ``y`` with ``ρ = 1/yᵀs``, in a ring; an empty place has ``ρ = 0``."""

    s: Array
    y: Array
    rho: Array
    gamma: Array  # the scale of the inverse Hessian in the newest pair
    taken: Array  # pairs so far; the next one goes to this place of the ring


class LbfgsState(NamedTuple):
    """A point with its value and gradient, and the steps that led there."""

    theta: Array
    value: Array
    decrease: Array  # of the value in the last step; 0 where there was none
    gradient: Array
    memory: Memory
    fresh: Array  # the memory is empty
    steps: Array
    evaluations: Array
    failed: Array  # the last line search found no lower point


def empty(theta: Float[Array, " n"], memory: int) -> Memory:
    return Memory(
        s=jnp.zeros((memory, theta.size), theta.dtype),
        y=jnp.zeros((memory, theta.size), theta.dtype),
        rho=jnp.zeros(memory, theta.dtype),
        gamma=jnp.ones((), theta.dtype),
        taken=jnp.asarray(0),
    )


def remember(
    memory: Memory, s: Float[Array, " n"], y: Float[Array, " n"], success: bool | Array = True
) -> tuple[Memory, Array]:
    """The memory with a pair, and whether it was let in: only after ``success``, with curvature."""
    ys, yy = jnp.vdot(y, s), jnp.vdot(y, y)
    rho, gamma = 1 / ys, ys / yy
    eps = jnp.finfo(s.dtype).eps
    usable = success & (ys > eps * jnp.linalg.norm(y) * jnp.linalg.norm(s))
    usable &= jnp.isfinite(rho) & jnp.isfinite(gamma)
    place = memory.taken % memory.rho.size

    def put(ring: Array, new: Array) -> Array:
        return ring.at[place].set(jnp.where(usable, new, ring[place]))

    return Memory(
        s=put(memory.s, s),
        y=put(memory.y, y),
        rho=put(memory.rho, rho),
        gamma=jnp.where(usable, gamma, memory.gamma),
        taken=memory.taken + usable,
    ), usable


def apply(memory: Memory, x: Float[Array, " n"]) -> Float[Array, " n"]:
    """The inverse Hessian times ``x``: the two loops of Nocedal and Wright's Algorithm 7.4."""
    size = memory.rho.size
    newest_first = (memory.taken - 1 - jnp.arange(size)) % size

    def down(q: Array, i: Array) -> tuple[Array, Array]:
        alpha = memory.rho[i] * jnp.vdot(memory.s[i], q)
        return q - alpha * memory.y[i], alpha

    def up(r: Array, pair: tuple[Array, Array]) -> tuple[Array, None]:
        i, alpha = pair
        beta = memory.rho[i] * jnp.vdot(memory.y[i], r)
        return r + (alpha - beta) * memory.s[i], None

    q, alphas = jax.lax.scan(down, x, newest_first)
    return jax.lax.scan(up, memory.gamma * q, (newest_first, alphas), reverse=True)[0]


def blank(theta: Float[Array, " n"], memory: int = 20) -> LbfgsState:
    """An empty memory of ``memory`` pairs at ``theta``, with nothing evaluated yet."""
    if memory < 1:
        raise UserError(f"L-BFGS needs a memory of at least one pair, got {memory}.")
    return LbfgsState(
        theta=theta,
        value=jnp.zeros((), theta.dtype),
        decrease=jnp.zeros((), theta.dtype),
        gradient=jnp.zeros_like(theta),
        memory=empty(theta, memory),
        fresh=jnp.asarray(True),
        steps=jnp.asarray(0),
        evaluations=jnp.asarray(0),
        failed=jnp.asarray(False),
    )


def start(function: ValueAndGrad, theta: Float[Array, " n"], memory: int = 20) -> LbfgsState:
    return renewed(function, blank(theta, memory))


def renewed(function: ValueAndGrad, state: LbfgsState) -> LbfgsState:
    """The same point and memory under a new function.

    A pair is the change along one step of one function, so nothing of the change from the old
    function to the new one comes into the memory.
    """
    value, gradient = function(state.theta)
    return state._replace(
        value=value,
        decrease=jnp.zeros_like(state.decrease),
        gradient=gradient,
        failed=jnp.asarray(False),
    )


def forget(state: LbfgsState) -> LbfgsState:
    """The same point with an empty memory."""
    return state._replace(
        memory=empty(state.theta, state.memory.rho.size),
        fresh=jnp.asarray(True),
        failed=jnp.asarray(False),
    )


def step(function: ValueAndGrad, state: LbfgsState) -> LbfgsState:
    """One line search and one pair; after a failed search the state stays as it was."""
    g = state.gradient
    p = -apply(state.memory, g)
    found = search_along(function, state, p)
    success = found.success
    s = jnp.where(success, found.step * p, 0)
    memory, usable = remember(state.memory, s, found.gradient - g, success)
    return LbfgsState(
        theta=state.theta + s,
        value=jnp.where(success, found.value, state.value),
        decrease=jnp.where(success, state.value - found.value, 0),
        gradient=jnp.where(success, found.gradient, g),
        memory=memory,
        fresh=state.fresh & ~usable,
        steps=state.steps + 1,
        evaluations=state.evaluations + found.evaluations,
        failed=~success,
    )


def minimise(
    function: ValueAndGrad, theta: Float[Array, " n"], steps: int, memory: int = 20
) -> LbfgsState:
    """A plain loop for small functions; training uses the stages instead.

    >>> quadratic = jax.value_and_grad(lambda x: jnp.sum(jnp.array([1.0, 100.0]) * x**2))
    >>> bool(jnp.all(jnp.abs(minimise(quadratic, jnp.ones(2), 30).theta) < 1e-3))
    True
    """

    def unfinished(state: LbfgsState) -> Array:
        return (state.steps < steps) & ~state.failed & jnp.any(state.gradient != 0)

    state = start(function, theta, memory)
    return jax.lax.while_loop(unfinished, lambda s: step(function, s), state)


@dataclass(frozen=True)
class LBFGS(GrowingRounds[LbfgsState]):
    """L-BFGS, for networks too large for a matrix.

    Args:
        memory: The number of past steps from which it knows the curvature.
    """

    memory: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.memory < 1:
            raise UserError(f"LBFGS needs a memory of at least one pair, not {self.memory}.")

    def init(self, system: System, theta: Array) -> LbfgsState:
        return blank(theta, self.memory)

    def step(self, system: System, state: LbfgsState) -> LbfgsState:
        return step(system.value_and_grad, state)

    def renew(self, system: System, state: LbfgsState) -> LbfgsState:
        return renewed(system.value_and_grad, state)

    def forget(self, state: LbfgsState) -> LbfgsState:
        return forget(state)
