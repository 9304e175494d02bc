"""Values on the boundary."""

from __future__ import annotations

from dataclasses import dataclass

from jax import Array

from ..equation import Equation
from .condition import Condition, SolutionMap, Value, Wall, evaluate
from .places import Pieces, Samples


@dataclass(frozen=True)
class Dirichlet(Condition):
    """``u = value`` on a piece of the boundary (all of it for ``None``)."""

    value: Value
    on: str | tuple[str, ...] | None = None
    field: str | None = None
    weight: float | None = None
    exact: bool | None = None

    def check(self, equation: Equation) -> None:
        equation.field_named(self.field, "Dirichlet")
        equation.domain.expand(self.on)

    def label(self, equation: Equation) -> str:
        return f"dirichlet_{self.field}" if len(equation.fields) > 1 else "dirichlet"

    def place(self, equation: Equation) -> Pieces:
        return Pieces(equation.domain.expand(self.on))

    def order(self, equation: Equation) -> int:
        return 0

    def wall(self, equation: Equation) -> Wall:
        field = equation.field_named(self.field, "Dirichlet")
        return Wall(field, equation.domain.expand(self.on), 0, self.value)

    def residuals(self, equation: Equation, solution: SolutionMap, at: Samples) -> Array:
        value = solution(at.points)[:, equation.column(self.field, "Dirichlet")]
        return value - evaluate(self.value, equation.point(at.points, at.normals), value)
