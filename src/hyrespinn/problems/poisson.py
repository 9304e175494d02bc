"""The Poisson equation."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from ..geometry import Box
from .conditions import Condition, Dirichlet
from .fields import Field, Point
from .problem import Problem, register


@register("poisson-2d")
class Poisson2D(Problem):
    """−Δu = f on the unit square, zero on its boundary, with u = sin πx sin πy."""

    domain = Box(x=(0, 1), y=(0, 1))
    fields = ("u",)
    description = "a smooth bump on the unit square"
    test_grid = (201, 201)

    def residual(self, u: Field, p: Point) -> Array:
        source = 2 * jnp.pi**2 * jnp.sin(jnp.pi * p.x) * jnp.sin(jnp.pi * p.y)
        return -u.laplacian - source

    def conditions(self) -> list[Condition]:
        return [Dirichlet(0.0)]

    def exact(self, p: Point) -> Array:
        return jnp.sin(jnp.pi * p.x) * jnp.sin(jnp.pi * p.y)
