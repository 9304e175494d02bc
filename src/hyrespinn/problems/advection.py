"""The advection equation."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from ..geometry import TimeBox
from .conditions import Condition, Initial, Periodic
from .fields import Field, Point
from .problem import Problem, register


@register("advection")
class Advection(Problem):
    """u_t + c u_x = 0, periodic on [0, 2π), from sin x: twelve turns around the circle for c = 80."""

    speed: float = 80.0
    domain = TimeBox(t=(0, 1), x=(0, 2 * jnp.pi))
    fields = ("u",)
    description = "a sine carried around the circle, fast"
    test_grid = (201, 512)

    def residual(self, u: Field, p: Point) -> Array:
        return u.t + self.speed * u.x

    def conditions(self) -> list[Condition]:
        return [Initial(lambda p: jnp.sin(p.x)), Periodic("x")]

    def exact(self, p: Point) -> Array:
        return jnp.sin(p.x - self.speed * p.t)
