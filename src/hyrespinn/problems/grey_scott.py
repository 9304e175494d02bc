"""The Grey–Scott system."""

from __future__ import annotations

from typing import Literal

import jax.numpy as jnp
from jax import Array

from ..geometry import TimeBox
from .conditions import Condition, Initial, Periodic
from .fields import Field, Point
from .problem import Problem, register


@register("grey-scott")
class GreyScott(Problem):
    """u_t = ε₁ Δu + b₁(1 − u) − c uv², v_t = ε₂ Δv − b₂ v + c uv², periodic on [−1, 1)².

    ``initial="printed"`` starts v from the paper's formula 1 − exp(…), which decays to the trivial
    state before t = 0.4; the data that it compares with start from exp(…) (D7 in docs/differences.md).
    """

    epsilon_u: float = 0.2
    epsilon_v: float = 0.1
    feed: float = 40.0
    kill: float = 100.0
    reaction: float = 1000.0
    initial: Literal["gaussian", "printed"] = "gaussian"
    domain = TimeBox(t=(0, 2), x=(-1, 1), y=(-1, 1))
    fields = ("u", "v")
    description = "two reacting fields, rings that spread and split"
    test_grid = (101, 200, 200)

    def residual(self, u: Field, v: Field, p: Point) -> dict[str, Array]:
        exchange = self.reaction * u * v**2
        return {
            "u": u.t - self.epsilon_u * u.laplacian - self.feed * (1 - u) + exchange,
            "v": v.t - self.epsilon_v * v.laplacian + self.kill * v - exchange,
        }

    def start_u(self, p: Point) -> Array:
        return 1 - jnp.exp(-10 * ((p.x + 0.05) ** 2 + (p.y + 0.02) ** 2))

    def start_v(self, p: Point) -> Array:
        bump = jnp.exp(-10 * ((p.x - 0.05) ** 2 + (p.y - 0.02) ** 2))
        return 1 - bump if self.initial == "printed" else bump

    def conditions(self) -> list[Condition]:
        starts = [Initial(self.start_u, field="u"), Initial(self.start_v, field="v")]
        return [*starts, Periodic("x"), Periodic("y")]
