"""An equation on a domain: which derivatives it reads, and its residuals from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ..derivatives import MultiIndex, Taylor, closure
from ..errors import UserError, unknown
from ..geometry import Domain
from .calls import call
from .fields import Field, Point, fields_of

Function = Callable[..., Any]
"""A person's function of the fields and the point, called as ``function(u, v, …, p)``."""
Values = Taylor | Mapping[MultiIndex, Any]
"""Derivatives of all fields, each ``(points, fields)``."""


class Reads(NamedTuple):
    """The derivatives that a function reads, field by field, and the names of what it returns."""

    by_field: dict[str, set[MultiIndex]]
    names: tuple[str, ...]

    @property
    def all(self) -> tuple[MultiIndex, ...]:
        return tuple(sorted(set().union(*self.by_field.values())))


class Equation:
    """``residual(*fields, p)`` is to vanish inside a domain.

    >>> from hyrespinn import TimeBox
    >>> heat = Equation(TimeBox(t=(0, 1), x=(0, 1)), ("u",), lambda u, p: u.t - u.xx)
    >>> heat.requested, heat.space_order, heat.time_order
    (((0, 2), (1, 0)), 2, 1)
    """

    def __init__(self, domain: Domain, fields: tuple[str, ...], residual: Function):
        self.domain, self.fields, self.residual = domain, fields, residual

    # What it reads.

    @cached_property
    def reads(self) -> Reads:
        """What the residual reads, found by calling it once."""
        return self.read_by(self.residual)

    @property
    def requested(self) -> tuple[MultiIndex, ...]:
        """The derivatives that the residual reads."""
        return self.reads.all

    @cached_property
    def closure(self) -> tuple[MultiIndex, ...]:
        """The derivatives to carry for those."""
        return closure(self.requested, self.domain.dimension)

    @property
    def residual_names(self) -> tuple[str, ...]:
        return self.reads.names

    @cached_property
    def order(self) -> int:
        """The most derivatives that one of those read has."""
        return max(sum(index) for index in self.requested)

    @cached_property
    def space_order(self) -> int:
        """The most derivatives by space."""
        return self.order_in_space(self.requested)

    @cached_property
    def time_order(self) -> int:
        """The most derivatives by time."""
        return max(index[0] for index in self.requested) if self.has_time else 0

    @property
    def has_time(self) -> bool:
        return self.domain.has_time

    def order_in_space(self, indices: Sequence[MultiIndex]) -> int:
        """The most derivatives by space that one of these has."""
        first = int(self.has_time)
        return max((sum(index[first:]) for index in indices), default=0)

    def read_by(self, function: Function, what: str = "residual", normals: bool = False) -> Reads:
        """What any ``function(*fields, p)`` reads; ``normals`` says that points carry them."""
        reads = self.trace(function, what, normals=normals)
        if not reads.all:
            raise UserError(f"The {what} reads no field at all; it must depend on the solution.")
        return reads

    def trace(
        self,
        function: Function,
        what: str,
        named: Callable[[Any, int, str], Mapping[str, Any]] | None = None,
        normals: bool = False,
    ) -> Reads:
        """Call a function on three points that only have shapes; ``named`` reads its result."""
        count = 3
        used: dict[str, set[MultiIndex]] = {name: set() for name in self.fields}
        names: list[str] = []

        def run(points: Array) -> list[Any]:
            def field(name: str) -> Field:
                def lookup(index: MultiIndex) -> Array:
                    used[name].add(index)
                    return jnp.zeros_like(points[:, 0])

                return Field(lookup, self.domain.coordinates, self.domain.space)

            point = self.point(points, points if normals else None)
            arguments = (*(field(name) for name in self.fields), point)
            expected = ", ".join((*self.fields, "p"))
            vectors = (named or named_residuals)(call(function, arguments, expected), count, what)
            names.extend(vectors)
            return list(vectors.values())

        shape = (count, self.domain.dimension)
        jax.eval_shape(run, jax.ShapeDtypeStruct(shape, jnp.zeros(0).dtype))
        return Reads(used, tuple(names))

    # What is evaluated.

    def point(self, points: Array, normals: Array | None = None) -> Point:
        """Points ``(n, d)`` as a person's functions see them."""
        return Point(points, self.domain.coordinates, normals)

    def fields_of(self, values: Values) -> list[Field]:
        """The fields as a person's functions see them, from derivatives ``(points, fields)``."""
        return fields_of(values, self.fields, self.domain.coordinates, self.domain.space)

    def residuals(
        self, values: Values, points: Array, residual: Function | None = None
    ) -> dict[str, Array]:
        """The residuals by name; ``residual`` is the same equation with other parameters."""
        arguments = (*self.fields_of(values), self.point(points))
        result = call(residual or self.residual, arguments, ", ".join((*self.fields, "p")))
        return named_residuals(result, points.shape[0])

    # The fields.

    def field_named(self, name: str | None, asked_by: str) -> str:
        """The field that something is about: the one named, or the only one there is."""
        if name is None:
            if len(self.fields) == 1:
                return self.fields[0]
            raise UserError(
                f"{asked_by} must say which field it is for, with field=…: one of "
                f"{', '.join(self.fields)}."
            )
        if name not in self.fields:
            raise unknown("field", name, self.fields)
        return name

    def column(self, name: str | None, asked_by: str) -> int:
        """The place of that field among all."""
        return self.fields.index(self.field_named(name, asked_by))


def parts_of(result: Any, count: int, what: str) -> Array | dict[str, Array]:
    """What a residual returned: one array, or several by name, with every shape checked."""
    if isinstance(result, dict):
        parts = {str(k): v for k, v in result.items()}
    elif isinstance(result, (tuple, list)):
        parts = {str(i): v for i, v in enumerate(result, start=1)}
    else:
        return _checked(result, count, what)
    if not parts:
        raise UserError(f"The {what} is empty; return at least one array.")
    return {key: _checked(part, count, f"{what}_{key}") for key, part in parts.items()}


def _checked(array: Any, count: int, name: str) -> Array:
    array = array.value if isinstance(array, Field) else array
    shape = jnp.shape(array)
    if shape != (count,):
        raise UserError(
            f"The {name} has shape {shape}; expected ({count},), one number for each of the "
            f"{count} points. Write it with the fields and p alone (u.t, p.x, …), which all "
            "have that shape, and return a tuple for a system."
        )
    if jnp.iscomplexobj(array):
        raise UserError(
            f"The {name} is complex. Take the real and the imaginary part of the solution as two fields, "
            "and return the two parts of the equation: return jnp.real(r), jnp.imag(r)."
        )
    return array


def with_names(parts: Array | Mapping[str, Array], name: str) -> dict[str, Array]:
    """One vector under a name, several under that name and their own."""
    if isinstance(parts, Mapping):
        return {f"{name}_{key}": part for key, part in parts.items()}
    return {name: parts}


def named_residuals(result: Any, count: int, what: str = "residual") -> dict[str, Array]:
    """What a residual returned, as one array a name, with every shape checked."""
    return with_names(parts_of(result, count, what), what)


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
