"""The Kuramoto–Sivashinsky equation."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from ..geometry import TimeBox
from .conditions import Condition, Initial, Periodic
from .fields import Field, Point
from .problem import Problem, register


@register("kuramoto-sivashinsky")
class KuramotoSivashinsky(Problem):
    """u_t + α u u_x + β u_xx + γ u_xxxx = 0, periodic on [0, 2π), from cos x (1 + sin x).

    Chaotic: a small error at first grows about ten thousandfold by t = 1 (D11 in docs/differences.md).
    """

    alpha: float = 100 / 16
    beta: float = 100 / 16**2
    gamma: float = 100 / 16**4
    domain = TimeBox(t=(0, 1), x=(0, 2 * jnp.pi))
    fields = ("u",)
    description = "spatio-temporal chaos, fourth order"
    test_grid = (251, 512)

    def residual(self, u: Field, p: Point) -> Array:
        return u.t + self.alpha * u * u.x + self.beta * u.xx + self.gamma * u.xxxx

    def conditions(self) -> list[Condition]:
        return [Initial(lambda p: jnp.cos(p.x) * (1 + jnp.sin(p.x))), Periodic("x")]
