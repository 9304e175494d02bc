"""Which parameters of a problem can be traced values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ..derivatives import lift
from ..geometry.sampling import uniform
from .conditions import Condition, Counts, Sampling
from .equation import Equation, components
from .problem import Problem


def traceable(
    equation: Equation, problem: Problem, conditions: Sequence[Condition]
) -> tuple[str, ...]:
    """The names of the parameters with which all functions of a problem can be traced.

    All of them together are tried first, then one after the other.
    """
    names = tuple(problem.numbers())
    trial = _Trial(equation, problem, conditions)
    if not names or trial.works(names):
        return names
    kept: tuple[str, ...] = ()
    for name in names:
        if trial.works((*kept, name)):
            kept = (*kept, name)
    return kept


class _Trial:
    """Calls everything that a loss calls, with traced parameters, and computes nothing."""

    def __init__(self, equation: Equation, problem: Problem, conditions: Sequence[Condition]):
        self.equation, self.problem, self.conditions = equation, problem, conditions

    def works(self, names: Sequence[str]) -> bool:
        dtype = jnp.zeros(0).dtype
        values = {name: jax.ShapeDtypeStruct((), dtype) for name in names}
        try:
            jax.eval_shape(self._run, values)
        except Exception:  # it may be anything: a person's functions are called
            return False
        return True

    def _run(self, values: Mapping[str, Array]) -> list[Any]:
        equation, problem = self.equation, self.problem.with_parameters(values)
        if repr(problem.domain) != repr(equation.domain):
            raise ValueError("the domain depends on a parameter")
        equation.trace(problem.residual, "residual")
        equation.trace(problem.derived, "derived", components)
        others = problem.conditions()
        if self._kinds(others) != self._kinds(self.conditions):
            raise ValueError("the kind of a condition depends on a parameter")
        return [self._residuals(condition) for condition in others]

    def _kinds(self, conditions: Sequence[Condition]) -> list[Any]:
        """What of conditions is looked at before anything is traced."""
        found = []
        for c in conditions:
            wall, start = c.wall(self.equation), c.start(self.equation)
            kept = (c.weight, c.exact, c.label(self.equation), c.seam())
            on = None if wall is None else (wall.field, wall.pieces, wall.homogeneous)
            found.append((type(c), *kept, on, None if start is None else start.derivative))
        return found

    def _residuals(self, condition: Condition) -> Any:
        equation = self.equation
        fields, dtype = len(equation.fields), jnp.zeros(0).dtype

        def nothing(x: Any) -> Any:
            return lift(lambda a: jnp.zeros((*a.shape[:-1], fields), a.dtype), x)

        sampling = Sampling(Counts(3, 3, 3), uniform, dtype)
        at = condition.place(equation).draw(jax.random.key(0), equation.domain, sampling)
        return condition.residuals(equation, nothing, at)
