"""What conditions on the boundary and on planes inside the domain share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jax import Array

from ..calls import call
from ..equation import Equation, parts_of
from .condition import Condition, SolutionMap, values_at
from .places import Samples


class OnSurface(Condition):
    """``residual(*fields, p)`` is to vanish at points that carry the normal of a surface."""

    residual: Callable[..., Any]
    name: str

    def label(self, equation: Equation) -> str:
        return self.name

    def order(self, equation: Equation) -> int:
        used = equation.read_by(self.residual, self.name, normals=True).all
        return equation.order_in_space(used)

    def residuals(
        self, equation: Equation, solution: SolutionMap, at: Samples
    ) -> Array | dict[str, Array]:
        used = equation.read_by(self.residual, self.name, normals=True).all
        fields = equation.fields_of(values_at(solution, at.points, used))
        arguments = (*fields, equation.point(at.points, at.normals))
        result = call(self.residual, arguments, ", ".join((*equation.fields, "p")))
        return parts_of(result, at.points.shape[0], self.name)
