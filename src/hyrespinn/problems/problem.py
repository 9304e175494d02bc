"""The protocol of a problem, and what can be found out about one before solving it."""

from __future__ import annotations

import dataclasses
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from ..derivatives import MultiIndex, Taylor, closure, coordinates
from ..errors import UserError, unknown
from ..geometry import Domain
from .conditions import Boundary, Condition, Dirichlet, Initial, MeanValue, Neumann, Periodic
from .fields import Field, Point, fields_of


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Problem:
    """An equation to solve. Subclass it; annotated attributes are its parameters.

    >>> import hyrespinn as hp
    >>> class Heat(hp.Problem):
    ...     nu: float = 0.05
    ...     domain = hp.Box(x=(0, 1))
    ...     fields = ("u",)
    ...     def residual(self, u, p):
    ...         return self.nu * u.xx - 1
    ...     def conditions(self):
    ...         return [hp.Dirichlet(0.0)]
    >>> Heat(nu=0.1).name
    'heat'
    """

    domain: ClassVar[Domain]
    fields: ClassVar[tuple[str, ...]]
    description: ClassVar[str] = ""
    test_grid: ClassVar[tuple[int, ...] | None] = None

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        dataclass(frozen=True, kw_only=True, eq=False)(cls)

    @property
    def name(self) -> str:
        """The class's name in lower case with hyphens; registered problems have their own."""
        cls = type(self)
        for name, registered in PROBLEMS.items():
            if registered is cls:
                return name
        parts = [f"-{c.lower()}" if c.isupper() else c for c in cls.__name__]
        return "".join(parts).strip("-")

    def residual(self, *fields_and_point: Any) -> Any:
        """What is to vanish inside the domain: one array, or several as a tuple or dict.

        Called as ``residual(u, v, …, p)`` with one argument for each field, then the point.
        """
        raise UserError(f"{type(self).__name__} has no residual: define residual(self, u, p).")

    def conditions(self) -> list[Condition]:
        """Initial, boundary and other side conditions."""
        raise UserError(f"{type(self).__name__} has no conditions: define conditions(self).")

    def exact(self, p: Point) -> Any:
        """The exact solution, where there is one; only errors are measured with it."""
        return None

    def parameters(self) -> dict[str, Any]:
        """The parameters and their values."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]


P = TypeVar("P", bound=type[Problem])
PROBLEMS: dict[str, type[Problem]] = {}


def register(name: str) -> Callable[[P], P]:
    """Make a problem known by name to the command line and to the benchmark."""

    def decorate(cls: P) -> P:
        PROBLEMS[name] = cls
        return cls

    return decorate


def problem_named(name: str) -> type[Problem]:
    if name not in PROBLEMS:
        raise unknown("problem", name, PROBLEMS)
    return PROBLEMS[name]


def named_residuals(result: Any, count: int, what: str = "residual") -> dict[str, Array]:
    """What a residual returned, as one array a name, with every shape checked."""
    if isinstance(result, dict):
        named = {f"{what}_{k}": v for k, v in result.items()}
    elif isinstance(result, (tuple, list)):
        named = {f"{what}_{i}": v for i, v in enumerate(result, start=1)}
    else:
        named = {what: result}
    if not named:
        raise UserError(f"The {what} is empty; return at least one array.")
    arrays = {}
    for name, array in named.items():
        array = array.value if isinstance(array, Field) else array
        shape = jnp.shape(array)
        if shape != (count,):
            raise UserError(
                f"The {name} has shape {shape}; expected ({count},), one number for each of the "
                f"{count} points. Write it with the fields and p alone (u.t, p.x, …), which all "
                "have that shape, and return a tuple for a system."
            )
        arrays[name] = array
    return arrays


@dataclass(frozen=True)
class Anatomy:
    """What the package found out about a problem by looking at its residual and conditions."""

    closure: tuple[MultiIndex, ...]  # the derivatives to carry in the interior
    requested: tuple[MultiIndex, ...]  # those the residual reads
    residual_names: tuple[str, ...]
    order: int
    periodic: tuple[bool, ...]  # which coordinates are periodic


def requested_derivatives(
    problem: Problem, function: Callable[..., Any], normals: bool = False
) -> tuple[set[MultiIndex], tuple[str, ...]]:
    """The derivatives that ``function(*fields, p)`` reads, and the names of what it returns."""
    domain = problem.domain
    used: set[MultiIndex] = set()
    count = 3

    def trace(points: Array) -> dict[str, Array]:
        def lookup(index: MultiIndex) -> Array:
            used.add(index)
            return jnp.zeros_like(points[:, 0])

        fields = [Field(lookup, domain.coordinates, domain.space) for _ in problem.fields]
        point = Point(points, domain.coordinates, points if normals else None)
        return named_residuals(_call(problem, function, fields, point), count)

    points = jax.ShapeDtypeStruct((count, domain.dimension), jnp.zeros(0).dtype)
    shapes = jax.eval_shape(trace, points)
    return used, tuple(shapes)


def _call(problem: Problem, function: Callable[..., Any], fields: list[Field], point: Point) -> Any:
    """Call a person's function; what goes wrong in it is told in terms of that function."""
    try:
        return function(*fields, point)
    except UserError:
        raise
    except Exception as error:
        arguments = ", ".join((*problem.fields, "p"))
        frame = traceback.extract_tb(error.__traceback__)[-1]
        raise UserError(
            f"{getattr(function, '__qualname__', function)}({arguments}) raised "
            f"{type(error).__name__}: {error} ({Path(frame.filename).name}, line {frame.lineno}). "
            "It is called with one argument for each field, then the point, and works on whole "
            "arrays of points: use jax.numpy, and jnp.where instead of if."
        ) from error


def anatomy(problem: Problem) -> Anatomy:
    """Check a problem and find out which derivatives it needs."""
    _check_statement(problem)
    domain = problem.domain
    used, names = requested_derivatives(problem, problem.residual)
    if not used:
        raise UserError("The residual reads no field at all; it must depend on the solution.")
    periodic_axes = {c.axis for c in problem.conditions() if isinstance(c, Periodic)}
    return Anatomy(
        closure=closure(used, domain.dimension),
        requested=tuple(sorted(used)),
        residual_names=names,
        order=max(sum(i) for i in used),
        periodic=tuple(c in periodic_axes for c in domain.coordinates),
    )


def _check_statement(problem: Problem) -> None:
    cls = type(problem).__name__
    for attribute, example in (("domain", "Box(x=(0, 1))"), ("fields", '("u",)')):
        if not hasattr(problem, attribute):
            raise UserError(f"{cls} has no {attribute}; write {attribute} = {example}.")
    if isinstance(problem.fields, str):
        raise UserError(f'{cls}.fields must be a tuple of names, such as ("{problem.fields}",).')
    conditions = problem.conditions()
    for condition in conditions:
        _check_condition(problem, condition)
    if problem.domain.has_time:
        started = {field_of(problem, c) for c in conditions if isinstance(c, Initial)}
        missing = [f for f in problem.fields if f not in started]
        evolving = _evolving(problem)
        missing = [f for f in missing if f in evolving]
        if missing:
            raise UserError(
                f"{cls} has a time domain and no initial condition for {', '.join(missing)}; add "
                "Initial(value) to its conditions."
            )


def _evolving(problem: Problem) -> set[str]:
    """The fields whose time derivative the residual reads: those that need a start."""
    domain, found = problem.domain, set()
    for name in problem.fields:

        def trace(points: Array, name: str = name) -> dict[str, Array]:
            def lookup_of(field: str) -> Callable[[MultiIndex], Array]:
                def lookup(index: MultiIndex) -> Array:
                    if field == name and index[0]:
                        found.add(name)
                    return jnp.zeros_like(points[:, 0])

                return lookup

            fields = [Field(lookup_of(f), domain.coordinates, domain.space) for f in problem.fields]
            return named_residuals(
                _call(problem, problem.residual, fields, Point(points, domain.coordinates)), 3
            )

        jax.eval_shape(trace, jax.ShapeDtypeStruct((3, domain.dimension), jnp.zeros(0).dtype))
    return found


def _check_condition(problem: Problem, condition: Any) -> None:
    if not isinstance(condition, Condition):
        raise UserError(f"conditions() must return a list of conditions; it holds {condition!r}.")
    if isinstance(condition, (Initial, Dirichlet, Neumann, MeanValue)):
        field_of(problem, condition)
    if isinstance(condition, (Dirichlet, Neumann, Boundary)):
        problem.domain.expand(condition.on)
    if isinstance(condition, Initial) and not problem.domain.has_time:
        raise UserError("An Initial condition needs a time domain, such as TimeBox(t=…, x=…).")
    if isinstance(condition, Periodic) and condition.axis not in problem.domain.space:
        raise UserError(
            f"Periodic({condition.axis!r}): the axes in space are {', '.join(problem.domain.space)}."
        )


def field_of(problem: Problem, condition: Any) -> str:
    """The name of the field that a condition is about."""
    if condition.field is None:
        if len(problem.fields) == 1:
            return problem.fields[0]
        raise UserError(
            f"{type(condition).__name__} must say which field it is for, with field=…: one of "
            f"{', '.join(problem.fields)}."
        )
    if condition.field not in problem.fields:
        raise unknown("field", condition.field, problem.fields)
    return condition.field


def residuals_at(
    problem: Problem,
    series: Callable[[Taylor], Taylor],
    anatomy: Anatomy,
    points: Float[Array, "n d"],
) -> dict[str, Float[Array, " n"]]:
    """The residuals at points, for a solution that maps coordinates to its fields."""
    domain = problem.domain
    values = series(coordinates(points, anatomy.closure))
    fields = fields_of(values, problem.fields, domain.coordinates, domain.space)
    result = problem.residual(*fields, Point(points, domain.coordinates))
    return named_residuals(result, points.shape[0])
