"""Slopes on the boundary."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from ...derivatives import parse
from ..equation import Equation
from .condition import Condition, SolutionMap, Value, Wall, evaluate, values_at
from .places import Pieces, Samples


@dataclass(frozen=True)
class Neumann(Condition):
    """``∂u/∂n = value`` with the outward normal, on a piece of the boundary."""

    value: Value
    on: str | tuple[str, ...] | None = None
    field: str | None = None
    weight: float | None = None

    def check(self, equation: Equation) -> None:
        equation.field_named(self.field, "Neumann")
        equation.domain.expand(self.on)

    def label(self, equation: Equation) -> str:
        return f"neumann_{self.field}" if len(equation.fields) > 1 else "neumann"

    def place(self, equation: Equation) -> Pieces:
        return Pieces(equation.domain.expand(self.on))

    def order(self, equation: Equation) -> int:
        return 1

    def wall(self, equation: Equation) -> Wall:
        field = equation.field_named(self.field, "Neumann")
        return Wall(field, equation.domain.expand(self.on), 1, self.value)

    def residuals(self, equation: Equation, solution: SolutionMap, at: Samples) -> Array:
        domain, column = equation.domain, equation.column(self.field, "Neumann")
        units = [parse(c, domain.coordinates) for c in domain.space]
        axes = [domain.coordinates.index(c) for c in domain.space]
        series = values_at(solution, at.points, units)
        normals = at.normals
        assert normals is not None
        slope = sum(
            (normals[:, a] * series[u][:, column] for a, u in zip(axes, units, strict=True)),
            start=jnp.zeros_like(at.points[:, 0]),
        )
        return slope - evaluate(self.value, equation.point(at.points, normals), slope)
