"""The terms of a loss: the equation, and each condition that is not built into the solution."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ..derivatives import lift
from ..problems.boundary import Imposed
from ..problems.conditions import Condition, Counts, Samples, Sampling, SolutionMap, Start
from ..problems.conditions.condition import values_at
from ..problems.conditions.places import Interior, Place
from ..problems.equation import with_names
from ..problems.statement import Parameters, Statement

__all__ = [
    "Counts",
    "Samples",
    "Sampling",
    "SolutionMap",
    "Term",
    "Weights",
    "keys_for",
    "terms_of",
]


@dataclass(frozen=True)
class Weights:
    """The weights of conditions that do not bring their own.

    ``boundary`` is that of a condition one order below the equation. Each further order below it
    multiplies by ``per_order``: of an error with wave number k an equation of order p sees k^p, a
    condition of order q sees k^q, and both count alike with a weight of k^2(p − q).
    """

    residual: float = 1.0
    initial: float = 100.0
    boundary: float = 100.0
    per_order: float = 1.0

    def of(self, condition: Condition, statement: Statement) -> float:
        """The weight of a condition."""
        if condition.weight is not None:
            return float(condition.weight)
        if condition.start(statement) is not None:
            return self.initial
        order = condition.order(statement)
        below = 0 if order is None else max(statement.space_order - order - 1, 0)
        return self.boundary * self.per_order**below


class Term(ABC):
    """``weight`` multiplies the mean square of every vector that ``residuals`` returns.

    ``names`` are those of the vectors, ``time_order`` is the most derivatives by time in them.
    """

    names: tuple[str, ...]
    time_order: int = 0

    def __init__(
        self, name: str, weight: float, place: Place, statement: Statement, sampling: Sampling
    ):
        self.name, self.weight, self.place = name, weight, place
        self.statement, self.sampling = statement, sampling
        self.grid = place.grid(sampling)

    def draw(self, key: Array) -> Samples:
        """Fresh points."""
        return self.place.draw(key, self.statement.domain, self.sampling)

    def residuals(
        self, solution: SolutionMap, samples: Samples, parameters: Parameters | None = None
    ) -> dict[str, Array]:
        """The residual vectors by name, for other values of the problem's parameters too, times the
        factors of the points where they have any."""
        vectors = self._residuals(solution, samples, parameters)
        factors = samples.factors
        if factors is None:
            return vectors
        return {name: factors.astype(v.dtype) * v for name, v in vectors.items()}

    @abstractmethod
    def _residuals(
        self, solution: SolutionMap, samples: Samples, parameters: Parameters | None
    ) -> dict[str, Array]:
        """The residual vectors themselves."""

    @property
    def is_start(self) -> bool:
        """Whether it is a condition at the initial time, by which a window begins where the one
        before it ended."""
        return False

    def start(self, parameters: Parameters | None = None) -> Start:
        """What is given at the initial time."""
        raise TypeError(f"{self.name} is no condition at the initial time")


class EquationTerm(Term):
    """The equation itself; with a lattice a solution is evaluated on all of its points at once."""

    def __init__(self, statement: Statement, sampling: Sampling, weight: float):
        super().__init__("interior", weight, Interior(), statement, sampling)
        self.names, self.time_order = statement.residual_names, statement.time_order

    def _residuals(
        self, solution: SolutionMap, samples: Samples, parameters: Parameters | None
    ) -> dict[str, Array]:
        statement, points = self.statement, samples.points
        if not self.grid:
            return statement.residuals_at(solution, points, parameters)
        values = values_at(solution, points, statement.requested, self.grid)
        return statement.residuals_with(parameters)(values, points)


class ConditionTerm(Term):
    """A condition by its place in the statement."""

    def __init__(
        self, statement: Statement, number: int, name: str, sampling: Sampling, weight: float
    ):
        self.number = number
        condition = statement.conditions[number]
        super().__init__(name, weight, condition.place(statement), statement, sampling)
        start = condition.start(statement)
        self._is_start = start is not None
        self.time_order = 0 if start is None else start.index[0]
        self.names = self._names()

    def _names(self) -> tuple[str, ...]:
        """The names of the vectors, found by evaluating them for shapes alone."""
        fields = len(self.statement.fields)

        def nothing(x: Any) -> Any:
            return lift(lambda a: jnp.zeros((*a.shape[:-1], fields), a.dtype), x)

        shapes = jax.eval_shape(
            lambda key: self.residuals(nothing, self.draw(key)), jax.random.key(0)
        )
        return tuple(shapes)

    @property
    def is_start(self) -> bool:
        return self._is_start

    def _condition(self, parameters: Parameters | None) -> Condition:
        return self.statement.posed(parameters).conditions[self.number]

    def start(self, parameters: Parameters | None = None) -> Start:
        start = self._condition(parameters).start(self.statement)
        return super().start() if start is None else start

    def _residuals(
        self, solution: SolutionMap, samples: Samples, parameters: Parameters | None
    ) -> dict[str, Array]:
        if self.is_start:
            return {self.name: self.start(parameters).residual(solution, samples, self.grid)}
        condition = self._condition(parameters)
        return with_names(condition.residuals(self.statement, solution, samples), self.name)


def terms_of(
    statement: Statement, imposed: Imposed, sampling: Sampling, weights: Weights
) -> list[Term]:
    """The equation, then the conditions that are left to the loss."""
    terms: list[Term] = [EquationTerm(statement, sampling, weights.residual)]
    taken = {"interior", "residual", "penalty", "total", *statement.residual_names}
    for number in imposed.left:
        condition = statement.conditions[number]
        name = _free(condition.label(statement), taken)
        taken.add(name)
        weight = weights.of(condition, statement)
        terms.append(ConditionTerm(statement, number, name, sampling, weight))
    return terms


def _free(base: str, taken: set[str]) -> str:
    """A column name that is not taken: ``initial``, ``dirichlet_v``, ``neumann#2``."""
    candidates = [base, *(f"{base}#{i}" for i in range(2, len(taken) + 3))]
    return next(name for name in candidates if name not in taken)


def keys_for(key: Array, terms: Sequence[Term]) -> dict[str, Array]:
    """A key for each term."""
    return {term.name: jax.random.fold_in(key, i) for i, term in enumerate(terms)}
