"""The Korteweg–de Vries equation."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from ..geometry import TimeBox
from .conditions import Condition, Initial, Periodic
from .fields import Field, Point
from .problem import Problem, register


@register("korteweg-de-vries")
class KortewegDeVries(Problem):
    """u_t + η u u_x + δ² u_xxx = 0, periodic on [−1, 1), from cos πx: a wave that breaks into solitons."""

    eta: float = 1.0
    delta: float = 0.022
    domain = TimeBox(t=(0, 1), x=(-1, 1))
    fields = ("u",)
    description = "a cosine that breaks into solitons, third order"
    test_grid = (201, 512)

    def residual(self, u: Field, p: Point) -> Array:
        return u.t + self.eta * u * u.x + self.delta**2 * u.xxx

    def conditions(self) -> list[Condition]:
        return [Initial(lambda p: jnp.cos(jnp.pi * p.x)), Periodic("x")]
