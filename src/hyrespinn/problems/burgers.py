"""The Burgers equation."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from ..geometry import TimeBox
from .conditions import Condition, Dirichlet, Initial
from .fields import Field, Point
from .problem import Problem, register


@register("burgers")
class Burgers(Problem):
    """u_t + u u_x = ν u_xx on [−1, 1], zero at both ends, from −sin πx: a shock forms at x = 0."""

    nu: float = 0.01 / jnp.pi
    domain = TimeBox(t=(0, 1), x=(-1, 1))
    fields = ("u",)
    description = "a sine that steepens into a standing shock"
    test_grid = (201, 513)

    def residual(self, u: Field, p: Point) -> Array:
        return u.t + u * u.x - self.nu * u.xx

    def conditions(self) -> list[Condition]:
        return [Initial(lambda p: -jnp.sin(jnp.pi * p.x)), Dirichlet(0.0)]
