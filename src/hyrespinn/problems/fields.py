"""What a residual sees: fields that carry their derivatives by name, and the point."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ..derivatives import MultiIndex, Taylor, parse
from ..errors import UserError


@jax.tree_util.register_pytree_node_class
class Field:
    """A field at a batch of points. Use it as an array; ``u.t``, ``u.xx``, ``u.xy`` are derivatives.

    ``u.laplacian`` is the sum of the second derivatives in space. Functions of jax.numpy take a
    field; where another function refuses one, give it ``u.value``.
    """

    __array_ufunc__ = None  # numpy leaves ``array + field`` to the field

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
    def value(self) -> Any:
        return self._lookup((0,) * len(self._coordinates))

    def part(self, index: MultiIndex) -> Any:
        """The derivative of so many orders along each coordinate."""
        return self._lookup(index)

    def tree_flatten(self) -> tuple[tuple[Any], tuple[Any, ...]]:
        """A field is its value to JAX, so that compiled functions such as jnp.sin take it."""
        return (self.value,), (self._coordinates, self._space)

    @classmethod
    def tree_unflatten(cls, names: tuple[Any, ...], children: Sequence[Any]) -> Field:
        coordinates, space = names

        def lookup(index: MultiIndex) -> Any:
            if any(index):
                raise UserError("Inside a compiled function a field has no derivatives any more.")
            return children[0]

        return cls(lookup, coordinates, space)

    @property
    def laplacian(self) -> Array:
        if not self._space:
            raise UserError("There is no Laplacian without a coordinate in space.")
        first, *others = (self.derivative(c * 2) for c in self._space)
        return sum(others, start=first)

    def derivative(self, name: str) -> Array:
        """The derivative of that name, such as ``u.derivative("xx")``."""
        return self._lookup(parse(name, self._coordinates))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if hasattr(jnp.ndarray, name) and not set(name) <= set(self._coordinates):
            return getattr(self.value, name)
        return self.derivative(name)

    def __jax_array__(self) -> Array:
        return self.value

    def __neg__(self) -> Array:
        return -self.value

    def __pos__(self) -> Array:
        return self.value

    def __bool__(self) -> bool:
        return bool(self.value)  # fails for more than one point, as an array does

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
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Field, f"__{_name}__", _binary(getattr(operator, _name))[0])


class Point:
    """The coordinates of a batch of points by name: ``p.t``, ``p.x``; on a boundary also the
    outward normal, ``p.nx``, ``p.ny``."""

    def __init__(self, points: Array, coordinates: Sequence[str], normals: Array | None = None):
        self._columns = {c: points[..., i] for i, c in enumerate(coordinates)}
        if normals is not None:
            self._columns |= {f"n{c}": normals[..., i] for i, c in enumerate(coordinates)}

    @classmethod
    def of_columns(cls, columns: Mapping[str, Array]) -> Point:
        """A point from its coordinates by name."""
        point = object.__new__(cls)
        point._columns = dict(columns)
        return point

    def columns(self, names: Sequence[str]) -> dict[str, Array]:
        """Some of the coordinates by name."""
        return {name: self._columns[name] for name in names}

    def __getattr__(self, name: str) -> Array:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._columns:
            raise UserError(f"A point here has no {name!r}; it has {', '.join(self._columns)}.")
        return self._columns[name]


def fields_of(
    series: Taylor | Mapping[MultiIndex, Any],
    names: Sequence[str],
    coordinates: tuple[str, ...],
    space: tuple[str, ...],
) -> list[Field]:
    """One :class:`Field` for each column of a series ``(points, fields)``."""

    def lookup(column: int) -> Callable[[MultiIndex], Array]:
        return lambda index: series[index][..., column]

    return [Field(lookup(i), coordinates, space) for i in range(len(names))]
