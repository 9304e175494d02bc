"""The heat equation."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from ..geometry import TimeBox
from .conditions import Condition, Dirichlet, Initial
from .fields import Field, Point
from .problem import Problem, register


@register("heat-1d")
class Heat1D(Problem):
    """u_t = ν u_xx on [0, 1], zero at both ends, from sin πx."""

    nu: float = 0.05
    domain = TimeBox(t=(0, 1), x=(0, 1))
    fields = ("u",)
    description = "a sine that decays"
    test_grid = (201, 201)

    def residual(self, u: Field, p: Point) -> Array:
        return u.t - self.nu * u.xx

    def conditions(self) -> list[Condition]:
        return [Initial(lambda p: jnp.sin(jnp.pi * p.x)), Dirichlet(0.0)]

    def exact(self, p: Point) -> Array:
        return jnp.exp(-(jnp.pi**2) * self.nu * p.t) * jnp.sin(jnp.pi * p.x)
