"""The mean of a field over the domain."""

from __future__ import annotations

from dataclasses import dataclass

from jax import Array

from ..equation import Equation
from .condition import Condition, SolutionMap
from .places import Quadrature, Samples


@dataclass(frozen=True)
class MeanValue(Condition):
    """The mean of a field over the domain; fixes the constant of a pure Neumann problem."""

    value: float | Array
    field: str | None = None
    weight: float | None = None

    def check(self, equation: Equation) -> None:
        equation.field_named(self.field, "MeanValue")

    def label(self, equation: Equation) -> str:
        return f"meanvalue_{self.field}" if len(equation.fields) > 1 else "meanvalue"

    def place(self, equation: Equation) -> Quadrature:
        return Quadrature()

    def residuals(self, equation: Equation, solution: SolutionMap, at: Samples) -> Array:
        assert at.shares is not None
        column = equation.column(self.field, "MeanValue")
        return (at.shares @ solution(at.points)[:, column] - self.value)[None]
