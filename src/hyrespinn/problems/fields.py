"""What a residual sees: fields that carry their derivatives by name, and the point."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import TYPE_CHECKING, Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..derivatives import MultiIndex, Taylor, parse
from ..errors import UserError

Plain: TypeAlias = Array | np.ndarray | np.number | float
Operand: TypeAlias = "Plain | Field"
Names: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
Index: TypeAlias = int | slice | EllipsisType | Array | None
if TYPE_CHECKING:
    Attribute: TypeAlias = Array  # what a residual reads is a derivative
else:
    Attribute = object  # what an array has beside, such as ``u.shape``, is of any type


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
    def value(self) -> Array:
        return self._lookup((0,) * len(self._coordinates))

    def part(self, index: MultiIndex) -> Array:
        """The derivative of so many orders along each coordinate."""
        return self._lookup(index)

    def tree_flatten(self) -> tuple[tuple[Array], Names]:
        """A field is its value to JAX, so that compiled functions such as jnp.sin take it."""
        return (self.value,), (self._coordinates, self._space)

    @classmethod
    def tree_unflatten(cls, names: Names, children: Sequence[Array]) -> Field:
        coordinates, space = names

        def lookup(index: MultiIndex) -> Array:
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

    def __getattr__(self, name: str) -> Attribute:
        if name.startswith("_"):
            raise AttributeError(name)
        if hasattr(jnp.ndarray, name) and not set(name) <= set(self._coordinates):
            return getattr(self.value, name)  # such as u.shape
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

    def __getitem__(self, key: Index) -> Array:
        return self.value[key]

    def __add__(self, other: Operand) -> Array:
        return self.value + _value(other)

    def __radd__(self, other: Operand) -> Array:
        return jnp.add(_value(other), self.value)

    def __sub__(self, other: Operand) -> Array:
        return self.value - _value(other)

    def __rsub__(self, other: Operand) -> Array:
        return jnp.subtract(_value(other), self.value)

    def __mul__(self, other: Operand) -> Array:
        return self.value * _value(other)

    def __rmul__(self, other: Operand) -> Array:
        return jnp.multiply(_value(other), self.value)

    def __truediv__(self, other: Operand) -> Array:
        return self.value / _value(other)

    def __rtruediv__(self, other: Operand) -> Array:
        return jnp.true_divide(_value(other), self.value)

    def __pow__(self, other: Operand) -> Array:
        return self.value ** _value(other)

    def __rpow__(self, other: Operand) -> Array:
        return jnp.power(_value(other), self.value)

    def __mod__(self, other: Operand) -> Array:
        return self.value % _value(other)

    def __rmod__(self, other: Operand) -> Array:
        return jnp.remainder(_value(other), self.value)

    def __floordiv__(self, other: Operand) -> Array:
        return self.value // _value(other)

    def __rfloordiv__(self, other: Operand) -> Array:
        return jnp.floor_divide(_value(other), self.value)

    def __lt__(self, other: Operand) -> Array:  # type: ignore[misc]
        return self.value < _value(other)

    def __le__(self, other: Operand) -> Array:  # type: ignore[misc]
        return self.value <= _value(other)

    def __gt__(self, other: Operand) -> Array:  # type: ignore[misc]
        return self.value > _value(other)

    def __ge__(self, other: Operand) -> Array:  # type: ignore[misc]
        return self.value >= _value(other)

    def __eq__(self, other: Operand) -> Array:  # type: ignore[override]
        return self.value == _value(other)

    def __ne__(self, other: Operand) -> Array:  # type: ignore[override]
        return self.value != _value(other)


def _value(item: Operand) -> Plain:
    """A field's values; anything else as it is, so that ``u**3`` stays a power of a whole number."""
    return item.value if isinstance(item, Field) else item


def _column(points: Array, i: int) -> Array:
    """A coordinate of points; of known ones without a program for each coordinate and shape."""
    if isinstance(points, jax.core.Tracer) or not isinstance(points, jax.Array):
        return points[..., i]
    return jnp.asarray(np.asarray(points)[..., i])


class Point:
    """The coordinates of a batch of points by name: ``p.t``, ``p.x``; on a boundary also the
    outward normal, ``p.nx``, ``p.ny``."""

    def __init__(self, points: Array, coordinates: Sequence[str], normals: Array | None = None):
        self._columns = {c: _column(points, i) for i, c in enumerate(coordinates)}
        if normals is not None:
            self._columns |= {f"n{c}": _column(normals, i) for i, c in enumerate(coordinates)}

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


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Columns:
    """Fields apart from each other, read as the columns of an array are."""

    fields: tuple[Any, ...]  # JAX also builds it around what are not arrays

    def __getitem__(self, place: tuple[EllipsisType, int]) -> Array:
        return self.fields[place[-1]]


def fields_of(
    series: Taylor | Mapping[MultiIndex, Array | Columns],
    names: Sequence[str],
    coordinates: tuple[str, ...],
    space: tuple[str, ...],
) -> list[Field]:
    """One :class:`Field` for each column of a series ``(points, fields)``."""

    def lookup(column: int) -> Callable[[MultiIndex], Array]:
        return lambda index: series[index][..., column]

    return [Field(lookup(i), coordinates, space) for i in range(len(names))]
