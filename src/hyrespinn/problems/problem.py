"""The protocol of a problem, and what can be found out about one before solving it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, ClassVar, dataclass_transform
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from ..derivatives import MultiIndex, Taylor, closure, coordinates, lift, parse
from ..errors import UserError, unknown
from ..geometry import Domain
from ..geometry.sampling import kronecker
from ..registry import Registry
from ..registry import register as register
from .calls import call
from .conditions import (
    Boundary,
    Condition,
    Dirichlet,
    Initial,
    Interface,
    MeanValue,
    Neumann,
    Periodic,
)
from .fields import Field, Point, fields_of
from .principal_part import PrincipalPart, find_principal_part


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
    cell_centers: ClassVar[bool] = False  # errors are measured at cell centres, not at nodes

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
        words = re.sub(r"(?<=.)(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z]{2})", "-", cls.__name__)
        return words.lower()

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

    def derived(self, *fields_and_point: Any) -> dict[str, Any]:
        """Further quantities by name, made from the fields: an array, or a tuple for a vector.

        Called as ``residual`` is. Their errors are reported beside those of the fields.
        """
        return {}

    def parameters(self) -> dict[str, Any]:
        """The parameters and their values."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]


PROBLEMS = Registry("problem", Problem)


def problem_named(name: str) -> type[Problem]:
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


def components(result: Any, count: int, what: str = "derived") -> dict[str, tuple[Array, ...]]:
    """What ``derived`` returned, each quantity as a tuple of components, with shapes checked."""
    if not isinstance(result, dict):
        raise UserError(f"{what}() must return a dict of arrays, not {type(result).__name__}.")
    quantities = {}
    for name, quantity in result.items():
        parts = tuple(quantity) if isinstance(quantity, (tuple, list)) else (quantity,)
        parts = tuple(part.value if isinstance(part, Field) else part for part in parts)
        if not parts:
            raise UserError(f"The {what} quantity {name} is empty; return at least one array.")
        for part in parts:
            if jnp.shape(part) != (count,):
                raise UserError(
                    f"The {what} quantity {name} has shape {jnp.shape(part)}; expected ({count},), "
                    "one number for each point, or a tuple of such arrays for a vector."
                )
        quantities[name] = parts
    return quantities


@dataclass(frozen=True)
class Anatomy:
    """What the package found out about a problem by looking at its residual and conditions."""

    closure: tuple[MultiIndex, ...]  # the derivatives to carry in the interior
    requested: tuple[MultiIndex, ...]  # those the residual reads
    residual_names: tuple[str, ...]
    order: int


def requested_derivatives(
    problem: Problem, function: Callable[..., Any], what: str = "residual", normals: bool = False
) -> tuple[set[MultiIndex], tuple[str, ...]]:
    """The derivatives that ``function(*fields, p)`` reads, and the names of what it returns."""
    by_field, names = _trace(problem, function, what, normals)
    used = set().union(*by_field.values())
    if not used:
        raise UserError(f"The {what} reads no field at all; it must depend on the solution.")
    return used, names


def derived_derivatives(problem: Problem) -> tuple[set[MultiIndex], tuple[str, ...]]:
    """The derivatives that ``problem.derived`` reads, and the names of its quantities."""
    by_field, names = _trace(problem, problem.derived, "derived", False, components)
    for name in set(names) & set(problem.fields):
        raise UserError(f"derived() returns {name!r}, the name of a field; call it something else.")
    return set().union(*by_field.values()), names


def _trace(
    problem: Problem,
    function: Callable[..., Any],
    what: str,
    normals: bool,
    named: Callable[[Any, int, str], dict[str, Any]] = named_residuals,
) -> tuple[dict[str, set[MultiIndex]], tuple[str, ...]]:
    """Which derivatives of which field a function reads, found by calling it on three points."""
    domain, count = problem.domain, 3
    used: dict[str, set[MultiIndex]] = {name: set() for name in problem.fields}
    names: list[str] = []

    def trace(points: Array) -> list[Any]:
        def field(name: str) -> Field:
            def lookup(index: MultiIndex) -> Array:
                used[name].add(index)
                return jnp.zeros_like(points[:, 0])

            return Field(lookup, domain.coordinates, domain.space)

        point = Point(points, domain.coordinates, points if normals else None)
        arguments = (*(field(name) for name in problem.fields), point)
        expected = ", ".join((*problem.fields, "p"))
        vectors = named(call(function, arguments, expected), count, what)
        names.extend(vectors)
        return list(vectors.values())

    jax.eval_shape(trace, jax.ShapeDtypeStruct((count, domain.dimension), jnp.zeros(0).dtype))
    return used, tuple(names)


_FOUND: WeakKeyDictionary[Problem, Anatomy] = WeakKeyDictionary()


def anatomy(problem: Problem) -> Anatomy:
    """Check a problem and find out which derivatives it needs; once for every problem."""
    if problem not in _FOUND:
        _FOUND[problem] = _anatomy(problem)
    return _FOUND[problem]


def _anatomy(problem: Problem) -> Anatomy:
    _check_statement(problem)
    domain = problem.domain
    used, names = requested_derivatives(problem, problem.residual)
    derived_derivatives(problem)  # a mistake in it is told before training, not after
    return Anatomy(
        closure=closure(used, domain.dimension),
        requested=tuple(sorted(used)),
        residual_names=names,
        order=max(sum(i) for i in used),
    )


def principal_part(problem: Problem, anatomy: Anatomy) -> PrincipalPart | None:
    """What of the residual's derivatives is needed in linear combinations alone."""
    dtype = jnp.zeros(0).dtype
    draw = jax.jit(lambda key: problem.domain.interior(key, 64, kronecker, dtype))
    return find_principal_part(
        partial(residuals_of, problem),
        set(anatomy.requested),
        len(problem.fields),
        draw(jax.random.key(0)),
    )


def residuals_of(
    problem: Problem, values: Taylor | Mapping[MultiIndex, Any], points: Array
) -> dict[str, Array]:
    """The residuals by name, from derivatives ``(points, fields)``."""
    domain = problem.domain
    fields = fields_of(values, problem.fields, domain.coordinates, domain.space)
    result = problem.residual(*fields, Point(points, domain.coordinates))
    return named_residuals(result, points.shape[0])


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
        _check_start(problem, conditions)


def _check_start(problem: Problem, conditions: list[Condition]) -> None:
    """An equation of order m in time for a field needs its first m time derivatives at the start."""
    by_field, _ = _trace(problem, problem.residual, "residual", normals=False)
    for name, used in by_field.items():
        orders = max((index[0] for index in used), default=0)
        given = {
            c.derivative
            for c in conditions
            if isinstance(c, Initial) and field_of(problem, c) == name
        }
        for k in range(orders):
            if "t" * k not in given:
                how = f', derivative="{"t" * k}"' if k else ""
                raise UserError(
                    f"{type(problem).__name__} has a time domain and no initial condition for "
                    f"{name}{'_' + 't' * k if k else ''}; add Initial(value{how}) to its conditions."
                )


def _check_condition(problem: Problem, condition: Any) -> None:
    if not isinstance(condition, Condition):
        raise UserError(f"conditions() must return a list of conditions; it holds {condition!r}.")
    if isinstance(condition, (Initial, Dirichlet, Neumann, MeanValue)):
        field_of(problem, condition)
    if isinstance(condition, (Dirichlet, Neumann, Boundary)):
        problem.domain.expand(condition.on)
    if isinstance(condition, Interface):
        for plane in condition.planes:
            problem.domain.cut(condition.axis, plane)
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


def space_order(problem: Problem, indices: Iterable[MultiIndex]) -> int:
    """The most derivatives by space that one of these has."""
    first = int(problem.domain.has_time)
    return max((sum(index[first:]) for index in indices), default=0)


def index_of(problem: Problem, condition: Initial) -> MultiIndex:
    """The derivative that a condition at the initial time is about."""
    names = problem.domain.coordinates
    return parse(condition.derivative, names) if condition.derivative else (0,) * len(names)


def exact_fields(problem: Problem, p: Point, order: int) -> list[Field]:
    """The fields of the exact solution at points, with all derivatives up to an order."""
    domain = problem.domain
    dimension = domain.dimension
    points = jnp.stack([getattr(p, c) for c in domain.coordinates], axis=-1)

    def values(points: Array) -> Array:
        result = problem.exact(Point(points, domain.coordinates))
        several = result if isinstance(result, (tuple, list)) else (result,)
        columns = [jnp.broadcast_to(jnp.asarray(v), points.shape[:-1]) for v in several]
        return jnp.stack(columns, axis=-1)

    indices = [i for i in product(range(order + 1), repeat=dimension) if sum(i) <= order]
    series = lift(values, coordinates(points, closure(indices, dimension)))
    return fields_of(series, problem.fields, domain.coordinates, domain.space)


def residuals_at(
    problem: Problem,
    series: Callable[[Taylor], Taylor],
    anatomy: Anatomy,
    principal: PrincipalPart | None,
    points: Float[Array, "n d"],
) -> dict[str, Float[Array, " n"]]:
    """The residuals at points, for a solution that maps coordinates to its fields."""
    function = partial(residuals_of, problem)
    if principal is None:
        return function(series(coordinates(points, anatomy.closure)), points)
    operators, factors = principal.at(points)
    values = series(coordinates(points, principal.closure, operators))
    carried = {index: values[index] for index in principal.closure}
    applied = [values[k] for k in range(len(operators))]
    return principal.residuals(function, carried, applied, factors, points)
