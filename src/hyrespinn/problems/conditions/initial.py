"""Values at the initial time."""

from __future__ import annotations

from dataclasses import dataclass

from jax import Array

from ...errors import UserError
from ..equation import Equation
from .condition import Condition, SolutionMap, Start, Value
from .places import InitialTime, Samples


@dataclass(frozen=True)
class Initial(Condition):
    """``u = value`` at the initial time; with ``derivative="t"`` the same for ``u_t``."""

    value: Value
    field: str | None = None
    derivative: str = ""
    weight: float | None = None

    def check(self, equation: Equation) -> None:
        equation.field_named(self.field, "Initial")
        if not equation.has_time:
            raise UserError("An Initial condition needs a time domain, such as TimeBox(t=…, x=…).")

    def label(self, equation: Equation) -> str:
        of = f"_{self.field}" if len(equation.fields) > 1 else ""
        return f"initial{of}" + (f"_{self.derivative}" if self.derivative else "")

    def place(self, equation: Equation) -> InitialTime:
        return InitialTime()

    def start(self, equation: Equation) -> Start:
        field = equation.field_named(self.field, "Initial")
        return Start(equation, field, self.derivative, self.value)

    def residuals(self, equation: Equation, solution: SolutionMap, at: Samples) -> Array:
        return self.start(equation).residual(solution, at)
