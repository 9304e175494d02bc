"""The protocol of a problem: an equation, its domain and its conditions, stated once."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, ClassVar, TypeAlias, dataclass_transform

import jax.numpy as jnp
from jax import Array

from ..derivatives import closure, coordinates, lift
from ..errors import UserError, unknown
from ..geometry import Domain
from ..registry import Registry
from ..registry import register as register
from .calls import call
from .conditions import Condition
from .fields import Field, Point, fields_of

Equations: TypeAlias = "Array | tuple[Array, ...] | list[Array] | dict[str, Array]"
"""What a residual returns: what is to vanish, one array or several."""
Quantities: TypeAlias = "dict[str, Array | tuple[Array, ...]]"
"""What ``derived`` returns: arrays by name, several for a vector."""


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

    def __init_subclass__(cls, **keywords: object) -> None:
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

    if TYPE_CHECKING:  # each problem has its own number of fields
        residual: Callable[..., Equations]  # type: ignore[explicit-any]
        derived: Callable[..., Quantities]  # type: ignore[explicit-any]

    def residual(self, *fields_and_point):  # type: ignore[no-redef, no-untyped-def]
        """What is to vanish inside the domain: one array, or several as a tuple or dict.

        Called as ``residual(u, v, …, p)`` with one argument for each field, then the point.
        """
        raise UserError(f"{type(self).__name__} has no residual: define residual(self, u, p).")

    def conditions(self) -> Sequence[Condition]:
        """Initial, boundary and other side conditions."""
        raise UserError(f"{type(self).__name__} has no conditions: define conditions(self).")

    def exact(self, p: Point) -> Array | float | tuple[Array | float, ...] | None:
        """The exact solution, where there is one; only errors are measured with it."""
        return None

    def derived(self, *fields_and_point):  # type: ignore[no-redef, no-untyped-def]
        """Further quantities by name, made from the fields: an array, or a tuple for a vector.

        Called as ``residual`` is. Their errors are reported beside those of the fields.
        """
        return {}

    def parameters(self) -> dict[str, object]:
        """The parameters and their values."""
        return {name: vars(self)[name] for name in self._annotations()}

    def numbers(self) -> dict[str, float]:
        """The parameters that are annotated as ``float``: those that may become traced values."""
        return {
            name: vars(self)[name]
            for name, annotation in self._annotations().items()
            if annotation in (float, "float") and isinstance(vars(self)[name], (int, float))
        }

    def with_parameters(self, values: Mapping[str, object]) -> Problem:
        """The problem with other values of some parameters, which may be traced.

        Where a check of the values themselves cannot work on what is traced, it is left out: the
        values of the problem at hand have passed it.
        """
        for name in values:
            if name not in self.parameters():
                raise unknown("parameter", name, self.parameters())
        try:
            return dataclasses.replace(self, **values)  # type: ignore[type-var]
        except Exception:
            other = object.__new__(type(self))
            # The parameters alone: what was made from other values must not go along.
            vars(other).update(self.parameters() | dict(values))
            return other

    def _annotations(self) -> dict[str, object]:
        return {f.name: f.type for f in dataclasses.fields(self)}  # type: ignore[arg-type]

    def __getstate__(self) -> dict[str, object]:
        """What was found out about a problem (:mod:`.statement`) stays out of its files."""
        return {name: value for name, value in vars(self).items() if name != "_statement"}


PROBLEMS = Registry("problem", Problem)


def problem_named(name: str) -> type[Problem]:
    return PROBLEMS[name]


def derived_of(problem: Problem, fields: Sequence[Field], p: Point) -> object:
    """What ``derived`` returns of fields at points, as it is."""
    found: object = call(problem.derived, (*fields, p), ", ".join((*problem.fields, "p")))
    return found


def exact_fields(problem: Problem, p: Point, order: int) -> list[Field]:
    """The fields of the exact solution at points, with all derivatives up to an order."""
    domain = problem.domain
    dimension = domain.dimension
    points = jnp.stack([*p.columns(domain.coordinates).values()], axis=-1)

    def values(points: Array) -> Array:
        result = call(problem.exact, (Point(points, domain.coordinates),), "p")
        several = result if isinstance(result, (tuple, list)) else (result,)
        columns = [jnp.broadcast_to(jnp.asarray(v), points.shape[:-1]) for v in several]
        return jnp.stack(columns, axis=-1)

    indices = [i for i in product(range(order + 1), repeat=dimension) if sum(i) <= order]
    series = lift(values, coordinates(points, closure(indices, dimension)))
    return fields_of(series, problem.fields, domain.coordinates, domain.space)
