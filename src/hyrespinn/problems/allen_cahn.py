"""The Allen–Cahn equation."""

from __future__ import annotations

from typing import Literal

import jax.numpy as jnp
from jax import Array

from ..geometry import TimeBox
from .conditions import Condition, Dirichlet, Initial, Periodic
from .fields import Field, Point
from .problem import Problem, register


@register("allen-cahn-dirichlet")
class AllenCahnDirichlet(Problem):
    """u_t = ε u_xx − 5u³ + 5u on [−1, 1], zero at both ends (section 5.1 of the paper).

    ``initial="sine"`` starts from −sin πx instead, a single front and so an easier problem.
    """

    epsilon: float = 1e-3
    reaction: float = 5.0
    initial: Literal["paper", "sine"] = "paper"
    reference: Literal["converged", "paper"] = "converged"
    domain = TimeBox(t=(0, 1), x=(-1, 1))
    fields = ("u",)
    description = "sharp fronts between smooth plateaus, zero at both ends"
    test_grid = (201, 513)

    def residual(self, u: Field, p: Point) -> Array:
        return u.t - self.epsilon * u.xx + self.reaction * u**3 - self.reaction * u

    def start(self, p: Point) -> Array:
        if self.initial == "sine":
            return -jnp.sin(jnp.pi * p.x)
        right = 2 * jnp.exp(-8 * (p.x - 0.5) ** 2)
        left = jnp.exp(-5 * (p.x + 0.5) ** 2)
        return -2 * jnp.sin(2 * jnp.pi * p.x) * (right - left)

    def conditions(self) -> list[Condition]:
        return [Initial(self.start), Dirichlet(0.0)]


@register("allen-cahn-periodic")
class AllenCahnPeriodic(Problem):
    """u_t = ε u_xx − 5u³ + 5u, periodic on [−1, 1), from x² cos πx, whose slope jumps at the seam.

    ``reference="paper"`` measures against the paper's 512 Fourier modes (D9 in docs/differences.md).
    """

    epsilon: float = 1e-4
    reaction: float = 5.0
    reference: Literal["converged", "paper"] = "converged"
    domain = TimeBox(t=(0, 1), x=(-1, 1))
    fields = ("u",)
    description = "sharp fronts, periodic, with a kink in the initial data"
    test_grid = (201, 512)

    def residual(self, u: Field, p: Point) -> Array:
        return u.t - self.epsilon * u.xx + self.reaction * u**3 - self.reaction * u

    def conditions(self) -> list[Condition]:
        return [Initial(lambda p: p.x**2 * jnp.cos(jnp.pi * p.x)), Periodic("x")]
