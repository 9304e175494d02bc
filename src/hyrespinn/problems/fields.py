"""What a residual sees: fields that carry their derivatives by name, and the point."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array

from ..derivatives import MultiIndex, Taylor, parse
from ..errors import UserError


class Field:
    """A field at a batch of points. Use it as an array; ``u.t``, ``u.xx``, ``u.xy`` are derivatives.

    ``u.laplacian`` is the sum of the second derivatives in space.
    """

    def __init__(
        self,
        lookup: Callable[[MultiIndex], Array],
        coordinates: tuple[str, ...],
        space: tuple[str, ...],
    ):
        self._lookup = lookup
        self._coordinates = coordinates
        self._space = space

    @property
    def value(self) -> Array:
        return self._lookup((0,) * len(self._coordinates))

    @property
    def laplacian(self) -> Array:
        return sum(
            (getattr(self, c * 2) for c in self._space[1:]), start=self.d(self._space[0] * 2)
        )

    def d(self, name: str) -> Array:
        """The derivative of that name, such as ``u.d("xx")``."""
        return self._lookup(parse(name, self._coordinates))

    def __getattr__(self, name: str) -> Array:
        if name.startswith("_"):
            raise AttributeError(name)
        if hasattr(jnp.ndarray, name) and not set(name) <= set(self._coordinates):
            return getattr(self.value, name)
        return self.d(name)

    def __jax_array__(self) -> Array:
        return self.value

    def __neg__(self) -> Array:
        return -self.value

    def __abs__(self) -> Array:
        return jnp.abs(self.value)

    def __getitem__(self, key: Any) -> Array:
        return self.value[key]


def _value(item: Any) -> Any:
    return item.value if isinstance(item, Field) else item


def _binary(op: Callable[[Any, Any], Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    return (
        lambda self, other: op(self.value, _value(other)),
        lambda self, other: op(_value(other), self.value),
    )


for _name in ("add", "sub", "mul", "truediv", "pow", "mod", "floordiv"):
    _forward, _backward = _binary(getattr(operator, _name))
    setattr(Field, f"__{_name}__", _forward)
    setattr(Field, f"__r{_name}__", _backward)
for _name in ("lt", "le", "gt", "ge"):
    setattr(Field, f"__{_name}__", _binary(getattr(operator, _name))[0])


class Point:
    """The coordinates of a batch of points by name: ``p.t``, ``p.x``; on a boundary also the
    outward normal, ``p.nx``, ``p.ny``."""

    def __init__(self, points: Array, coordinates: Sequence[str], normals: Array | None = None):
        self._columns = {c: points[..., i] for i, c in enumerate(coordinates)}
        if normals is not None:
            self._columns |= {f"n{c}": normals[..., i] for i, c in enumerate(coordinates)}

    def __getattr__(self, name: str) -> Array:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._columns:
            raise UserError(f"A point here has no {name!r}; it has {', '.join(self._columns)}.")
        return self._columns[name]


def fields_of(
    series: Taylor | Mapping[MultiIndex, Array],
    names: Sequence[str],
    coordinates: tuple[str, ...],
    space: tuple[str, ...],
) -> list[Field]:
    """One :class:`Field` for each column of a series ``(points, fields)``."""

    def lookup(column: int) -> Callable[[MultiIndex], Array]:
        return lambda index: series[index][..., column]

    return [Field(lookup(i), coordinates, space) for i in range(len(names))]
