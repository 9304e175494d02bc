"""The wave equation."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from ..geometry import TimeBox
from .conditions import Condition, Dirichlet, Initial
from .fields import Field, Point
from .problem import Problem, register


@register("wave-1d")
class Wave1D(Problem):
    """u_tt = c² u_xx on [0, 1], zero at both ends, at rest at first: two standing waves."""

    speed: float = 2.0
    domain = TimeBox(t=(0, 1), x=(0, 1))
    fields = ("u",)
    description = "two standing waves of different frequency"
    test_grid = (201, 201)

    def residual(self, u: Field, p: Point) -> Array:
        return u.tt - self.speed**2 * u.xx

    def conditions(self) -> list[Condition]:
        def start(p: Point) -> Array:
            return jnp.sin(jnp.pi * p.x) + 0.5 * jnp.sin(4 * jnp.pi * p.x)

        return [Initial(start), Initial(0.0, derivative="t"), Dirichlet(0.0)]

    def exact(self, p: Point) -> Array:
        slow = jnp.sin(jnp.pi * p.x) * jnp.cos(self.speed * jnp.pi * p.t)
        fast = jnp.sin(4 * jnp.pi * p.x) * jnp.cos(4 * self.speed * jnp.pi * p.t)
        return slow + 0.5 * fast
