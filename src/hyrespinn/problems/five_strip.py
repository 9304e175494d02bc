"""Darcy flow through five strips of different permeability."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from ..errors import UserError
from ..geometry import Box
from .conditions import Boundary, Condition, Interface, MeanValue
from .fields import Field, Point
from .problem import Problem, Quantities, register


@register("darcy-five-strip")
class DarcyFiveStrip(Problem):
    """−∇·(μ∇u) = 0 on [0, 1]², μ constant in each of five horizontal strips; u = 1 − x.

    The flux −μ∇u is given on the whole boundary. Its normal component −μ u_y is continuous across
    the interfaces, which is imposed there; its x component jumps.
    """

    mu: Any = (16.0, 6.0, 1.0, 10.0, 2.0)
    domain = Box(x=(0, 1), y=(0, 1))
    fields = ("u",)
    description = "flow through five layers, the flux jumps between them"
    test_grid = (200, 200)
    cell_centers = True

    def __post_init__(self) -> None:
        try:
            mu = tuple(float(m) for m in self.mu)
        except (TypeError, ValueError):
            mu = ()
        if not mu or not all(0 < m < np.inf for m in mu):
            raise UserError(
                "problem.mu must be a list of positive numbers, one a strip from the bottom up, such "
                f"as [16, 6, 1, 10, 2], not {self.mu!r}."
            )
        object.__setattr__(self, "mu", mu)

    def strip(self, y: Array) -> Array:
        """μ at height y; on an interface, that of the strip above."""
        count = len(self.mu)
        index = jnp.clip(jnp.floor(y * count).astype(int), 0, count - 1)
        return jnp.asarray(self.mu, y.dtype)[index]

    def residual(self, u: Field, p: Point) -> Array:
        return -self.strip(p.y) * u.laplacian

    def derived(self, u: Field, p: Point) -> Quantities:
        mu = self.strip(p.y)
        return {"flux": (-mu * u.x, -mu * u.y)}

    def outflow(self, u: Field, p: Point) -> Array:
        """The flux through the boundary less that of u = 1 − x, which is (μ, 0)."""
        mu = self.strip(p.y)
        return p.nx * (-mu * u.x - mu) + p.ny * (-mu * u.y)

    def jump(self, u: Field, p: Point) -> Array:
        """What the normal flux jumps by, u and its slope being continuous."""
        half = 0.5 / len(self.mu)
        return -(self.strip(p.y + half) - self.strip(p.y - half)) * u.y

    def conditions(self) -> list[Condition]:
        heights = tuple(float(h) for h in np.arange(1, len(self.mu)) / len(self.mu))
        conditions: list[Condition] = [Boundary(self.outflow, name="flux"), MeanValue(0.5)]
        if heights:
            conditions.append(Interface(self.jump, axis="y", at=heights))
        return conditions

    def exact(self, p: Point) -> Array:
        return 1 - p.x
