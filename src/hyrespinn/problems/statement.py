"""What can be found out about a problem before solving it, each thing once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..derivatives import coordinates
from ..errors import UserError
from ..geometry import Box
from .checks import (
    Caution,
    cautions,
    check_exact,
    check_parts,
    check_together,
    conditions_of,
)
from .conditions import Condition, SolutionMap, Start
from .equation import Equation, Reads, components
from .extension import Extension
from .parameters import traceable
from .principal_part import (
    PrincipalPart,
    Residuals,
    find_principal_part,
    is_linear_with_constant_coefficients,
)
from .problem import Problem
from .reflection import ReflectedProblem, Reflection, find_reflections
from .spectrum import bandwidth_of

POINTS = 65
"""Points at which an equation is looked at: an odd number, so that evenly spaced ones have a middle."""

Parameters: TypeAlias = Mapping[str, float | Array]
"""Values of some parameters by name; they may be traced."""


class Posed(NamedTuple):
    """A problem with given values of its parameters, and its conditions."""

    problem: Problem
    conditions: Sequence[Condition]


class Statement(Equation):
    """A problem that has been read and checked: :func:`state` makes it, once for every problem.

    What is cheap is found at once (domain, fields, conditions, which derivatives are read), with all
    mistakes in them; the rest when it is asked for. Where the answer is no, a method says why:

    >>> import hyrespinn as hp
    >>> burgers = state(hp.problems.Burgers())
    >>> burgers.space_order, burgers.is_periodic, burgers.extends_smoothly
    (2, False, True)
    >>> burgers.why_not_periodic()
    'there is no Periodic condition along x'
    """

    def __init__(self, problem: Problem):
        check_parts(problem)
        super().__init__(problem.domain, tuple(problem.fields), problem.residual)
        self.problem = problem
        self.conditions: tuple[Condition, ...] = conditions_of(problem)
        for condition in self.conditions:
            condition.check(self)
        _ = self.reads
        self._check_starts()
        self.derived = self._derived()
        check_exact(problem, self)

    def _check_starts(self) -> None:
        """An equation of order m in time for a field needs its first m time derivatives at the start."""
        if not self.has_time:
            return
        for name, used in self.reads.by_field.items():
            given = {start.derivative for start in self.starts if start.field == name}
            for k in range(max((index[0] for index in used), default=0)):
                if "t" * k not in given:
                    how = f', derivative="{"t" * k}"' if k else ""
                    raise UserError(
                        f"{type(self.problem).__name__} has a time domain and no initial condition "
                        f"for {name}{'_' + 't' * k if k else ''}; add Initial(value{how}) to its "
                        "conditions."
                    )

    def _derived(self) -> Reads:
        """What ``problem.derived`` reads; a mistake in it is told before training, not after."""
        reads = self.trace(self.problem.derived, "derived", components)
        for name in set(reads.names) & set(self.fields):
            raise UserError(
                f"derived() returns {name!r}, the name of a field; call it something else."
            )
        return reads

    # Conditions.

    def check_together(self) -> None:
        """Refuse conditions that are missing or contradict each other: such a problem can be looked at
        and evaluated, and not be solved."""
        check_together(self, self.conditions)

    @cached_property
    def starts(self) -> tuple[Start, ...]:
        """The values given at the initial time."""
        found = (condition.start(self) for condition in self.conditions)
        return tuple(start for start in found if start is not None)

    @cached_property
    def periodic(self) -> tuple[str, ...]:
        """The axes that conditions make periodic, and may make so exactly."""
        axes = {c.seam() for c in self.conditions if c.exact is not False}
        return tuple(name for name in self.domain.space if name in axes)

    @property
    def is_periodic(self) -> bool:
        """Whether a box in space is periodic along all of its sides, and nothing but starts is given."""
        return self.why_not_periodic() is None

    def why_not_periodic(self) -> str | None:
        return next(self._not_periodic(), None)

    def _not_periodic(self) -> Iterator[str]:
        if not isinstance(self.domain, Box):
            yield f"the domain {self.domain!r} is not a box"
        for name in self.domain.space:
            if name not in self.periodic:
                yield f"there is no Periodic condition along {name}"
        for condition in self.conditions:
            if condition.start(self) is None and condition.seam() is None:
                yield f"there is also the condition {condition.label(self)}"

    @property
    def is_started(self) -> bool:
        """Whether every field has as many starts as the equation's order in time, and an equation."""
        return self.why_not_started() is None

    def why_not_started(self) -> str | None:
        return next(self._not_started(), None)

    def _not_started(self) -> Iterator[str]:
        if not self.has_time:
            yield "there is no time"
        equations, fields = len(self.residual_names), len(self.fields)
        if equations != fields:
            yield f"{_counted(equations, 'equation')} for {_counted(fields, 'field')}"
        for field in self.fields:
            found = sum(start.field == field for start in self.starts)
            if not found and self.time_order:
                yield f"{field} has no initial condition"
            elif found != self.time_order:
                yield (
                    f"{field} has {_counted(found, 'initial condition')}, and the equations are of "
                    f"order {self.time_order} in time"
                )

    @cached_property
    def cautions(self) -> tuple[Caution, ...]:
        """What is possible in the statement, and seldom meant."""
        return tuple(cautions(self, self.conditions))

    # Walls.

    @cached_property
    def _reflections(self) -> tuple[Reflection, ...] | str:
        return find_reflections(self, self.conditions)

    @property
    def reflections(self) -> tuple[Reflection, ...]:
        """The walls in which a solution is reflected; none where there are other conditions too."""
        return () if isinstance(self._reflections, str) else self._reflections

    def why_not_reflected(self) -> str | None:
        return self._reflections if isinstance(self._reflections, str) else None

    def required_reflections(self) -> tuple[Reflection, ...]:
        """The reflections, for what cannot do without them."""
        if not self.reflections:
            raise UserError(
                f"{self.problem.name} has no walls that reflect its solution: "
                f"{self.why_not_reflected()}. The boundary treatment 'reflected' needs all fields to be "
                "0 at both ends of a coordinate of a box (Dirichlet(0.0)), or to have no slope there "
                "(Neumann(0.0)), and Initial and exact Periodic conditions alone beside that; take "
                "'lifted' or 'penalty'."
            )
        return self.reflections

    @cached_property
    def reflected(self) -> Statement:
        """The problem on twice the length along every coordinate of space that has walls."""
        reflections = self.required_reflections()
        return state(ReflectedProblem(original=self.problem, reflections=reflections))

    @property
    def extends_smoothly(self) -> bool:
        """Whether a solution has a smooth periodic extension behind its walls."""
        return self._not_smooth is None

    def why_not_smooth(self) -> str | None:
        return self._not_smooth

    @cached_property
    def _not_smooth(self) -> str | None:
        if not self.reflections:
            return self.why_not_reflected()
        if not self.has_time:
            return "there is no time"
        try:
            with jax.enable_x64(True), jax.debug_nans(False):
                extension = Extension(self, self.reflections, self.starts, self._points())
                return next(extension.obstacles(), None)
        except Exception as error:  # what is wrong with the residual itself shows again in training
            return f"the equation cannot be looked at behind its walls ({type(error).__name__})"

    # The equation.

    def _points(self) -> Array:
        """Points of the domain, always the same."""
        return jnp.asarray(self.domain.cover(POINTS, np.random.default_rng(0)))

    @cached_property
    def linear_constant_coefficients(self) -> bool:
        """Whether each wave goes its own way: linear, constant coefficients, no source."""
        try:
            with jax.enable_x64(True), jax.debug_nans(False):
                return is_linear_with_constant_coefficients(
                    self.residuals, self.requested, len(self.fields), self._points()
                )
        except Exception:  # whatever is wrong with the residual itself shows again in training
            return False

    @cached_property
    def bandwidth(self) -> int:
        """The number of the finest wave that a solution on a line has, where that is known, else 0.

        It is known where waves stay what they are, on a periodic line or one between walls; then it
        is the number on twice the length.
        """
        if not self.is_started or self.domain.dimension != 2:
            return 0
        if not (self.is_periodic or self.extends_smoothly) or not self.linear_constant_coefficients:
            return 0
        return bandwidth_of(self.starts if self.is_periodic else self.reflected.starts)

    @cached_property
    def principal_part(self) -> PrincipalPart | None:
        """What of the residual's derivatives is needed in linear combinations alone."""
        numbers = self.problem.numbers()
        # Constants are read off it, in full precision whatever the loss is computed in.
        with jax.enable_x64(True):
            return find_principal_part(
                self.residuals_with,
                self.requested,
                len(self.fields),
                self._points(),
                {name: numbers[name] for name in self.traced_parameters},
            )

    # Parameters.

    @cached_property
    def traced_parameters(self) -> tuple[str, ...]:
        """The parameters whose values may be traced: another value compiles nothing new.

        Not those that the problem's functions look at as numbers (``if self.nu > 0``), or by which
        its domain or the kind of its conditions changes.
        """
        return traceable(self, self.problem, self.conditions)

    def posed(self, parameters: Parameters | None = None) -> Posed:
        """The problem with other values of its traced parameters."""
        if not parameters:
            return Posed(self.problem, self.conditions)
        problem = self.problem.with_parameters(parameters)
        return Posed(problem, problem.conditions())

    def residuals_with(self, parameters: Parameters | None) -> Residuals:
        """The residuals as a function of derivatives and points, for values of the parameters."""
        residual = self.posed(parameters).problem.residual
        return lambda values, points: self.residuals(values, points, residual)

    # A solution.

    def residuals_at(
        self, solution: SolutionMap, points: Array, parameters: Parameters | None = None
    ) -> dict[str, Array]:
        """The residuals at points, for a solution that maps coordinates to its fields."""
        function, principal = self.residuals_with(parameters), self.principal_part
        if principal is None:
            return function(solution(coordinates(points, self.closure)), points)
        operators, factors = principal.at(function, points)
        values = solution(coordinates(points, principal.closure, operators))
        carried = {index: values[index] for index in principal.closure}
        applied = [values[k] for k in range(len(operators))]
        return principal.residuals(function, carried, applied, factors, points)


def state(problem: Problem) -> Statement:
    """Check a problem and find out what it needs; the same object for the same problem.

    >>> import hyrespinn as hp
    >>> heat = hp.problems.Heat1D()
    >>> state(heat) is state(heat)
    True
    """
    # Kept with the problem itself, so that both go together.
    known = vars(problem).get("_statement")
    if known is None or known.problem is not problem:
        known = Statement(problem)
        object.__setattr__(problem, "_statement", known)
    return known


WORDS = ("no", "one", "two", "three", "four", "five", "six")


def _counted(number: int, noun: str) -> str:
    word = WORDS[number] if number < len(WORDS) else str(number)
    return f"{word} {noun}" + ("" if number == 1 else "s")
