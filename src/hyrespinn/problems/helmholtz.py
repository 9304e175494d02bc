"""The Helmholtz equation."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from ..geometry import Box
from .conditions import Condition, Dirichlet
from .fields import Field, Point
from .problem import Problem, register


@register("helmholtz-2d")
class Helmholtz2D(Problem):
    """Δu + k²u = q on [−1, 1]², zero on the boundary, with u = sin(a πx) sin(b πy)."""

    k: float = 1.0
    a: int = 1
    b: int = 4
    domain = Box(x=(-1, 1), y=(-1, 1))
    fields = ("u",)
    description = "a wave pattern, four times finer in y than in x"
    test_grid = (201, 201)

    def residual(self, u: Field, p: Point) -> Array:
        factor = self.k**2 - (self.a**2 + self.b**2) * jnp.pi**2
        source = factor * jnp.sin(self.a * jnp.pi * p.x) * jnp.sin(self.b * jnp.pi * p.y)
        return u.laplacian + self.k**2 * u - source

    def conditions(self) -> list[Condition]:
        return [Dirichlet(0.0)]

    def exact(self, p: Point) -> Array:
        return jnp.sin(self.a * jnp.pi * p.x) * jnp.sin(self.b * jnp.pi * p.y)
