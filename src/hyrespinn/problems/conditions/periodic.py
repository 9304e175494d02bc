"""Both ends of an axis as one place."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from ...errors import UserError
from ..equation import Equation
from .condition import Condition, SolutionMap, values_at
from .places import LowerEnd, Samples


@dataclass(frozen=True)
class Periodic(Condition):
    """Periodic along an axis, with all derivatives that the equation reads."""

    axis: str
    weight: float | None = None
    exact: bool | None = None

    def check(self, equation: Equation) -> None:
        if self.axis not in equation.domain.space:
            axes = ", ".join(equation.domain.space)
            raise UserError(f"Periodic({self.axis!r}): the axes in space are {axes}.")

    def label(self, equation: Equation) -> str:
        return f"periodic_{self.axis}"

    def place(self, equation: Equation) -> LowerEnd:
        return LowerEnd(self.axis)

    def order(self, equation: Equation) -> int:
        return self._count(equation) - 1

    def seam(self) -> str:
        return self.axis

    def _count(self, equation: Equation) -> int:
        """How many derivatives agree, the value among them: those below the equation's order."""
        axis = equation.domain.coordinates.index(self.axis)
        return max(1, max(index[axis] for index in equation.closure))

    def residuals(self, equation: Equation, solution: SolutionMap, at: Samples) -> Array:
        domain = equation.domain
        axis = domain.coordinates.index(self.axis)
        indices = [
            tuple(n if i == axis else 0 for i in range(domain.dimension))
            for n in range(self._count(equation))
        ]
        upper = domain.bounds[axis][1]
        left = values_at(solution, at.points, indices)
        right = values_at(solution, at.points.at[:, axis].set(upper), indices)
        return jnp.concatenate([(right[i] - left[i]).reshape(-1) for i in indices])
