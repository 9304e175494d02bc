"""Reflection in walls: a solution that is odd, or even, about both ends of a side is periodic on
twice its length.

Zero at a wall makes a solution odd about it, and a zero slope even, if the equation looks the same from
behind. Then all that is known of periodic problems (exact conditions, kernels on a lattice) serves
problems between walls too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
from jax import Array

from ..derivatives import MultiIndex
from ..geometry import Box
from .calls import call
from .conditions import Condition, Initial, Periodic, Start, Wall, evaluate
from .equation import Equation
from .fields import Field, Point
from .problem import Problem


@dataclass(frozen=True)
class Reflection:
    """Walls at both ends of one coordinate, behind which a solution goes on with this parity."""

    axis: int
    lower: float
    upper: float
    parity: int

    @property
    def walls(self) -> tuple[float, float]:
        return self.lower, self.upper

    def behind(self, x: Array) -> Array:
        """Which points are behind the upper wall."""
        return x > self.upper

    def seen(self, x: Array) -> Array:
        """The points between the walls that those behind the upper one are the image of."""
        return jnp.where(self.behind(x), 2 * self.upper - x, x)

    def sign(self, index: MultiIndex) -> int:
        """By what the reflection multiplies this derivative of a field."""
        return self.parity * (-1) ** index[self.axis]


class ReflectedProblem(Problem):
    """A problem between walls as a periodic one on twice the length: behind the upper walls it is its
    own image.

    >>> import hyrespinn as hp
    >>> hp.problems.state(hp.problems.Burgers()).reflected.domain
    TimeBox(t=(0, 1), x=(-1, 3))
    """

    original: Problem
    reflections: tuple[Reflection, ...]

    @property
    def domain(self) -> Box:  # type: ignore[override]
        original = self.original.domain
        sides = dict(zip(original.coordinates, original.bounds, strict=True))
        for reflection in self.reflections:
            length = reflection.upper - reflection.lower
            name = original.coordinates[reflection.axis]
            sides[name] = reflection.lower, reflection.lower + 2 * length
        return Box(_time=original.has_time, **sides)

    @property
    def fields(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.original.fields

    def numbers(self) -> dict[str, float]:
        return self.original.numbers()

    def with_parameters(self, values: Mapping[str, Any]) -> ReflectedProblem:
        return replace(self, original=self.original.with_parameters(values))

    def residual(self, *fields_and_point: Any) -> Any:
        *fields, p = fields_and_point
        seen = [self._seen(field, p) for field in fields]
        names = ", ".join((*self.original.fields, "p"))
        found = call(self.original.residual, (*seen, self._point(p)), names)
        sign = self._sign(p, (0,) * self.original.domain.dimension)

        def image(part: Any) -> Any:
            return sign * part

        if isinstance(found, dict):
            return {name: image(part) for name, part in found.items()}
        if isinstance(found, (tuple, list)):
            return tuple(image(part) for part in found)
        return image(found)

    def conditions(self) -> list[Condition]:
        original = self.original
        names = original.domain.coordinates
        equation = Equation(original.domain, original.fields, original.residual)
        kept: list[Condition] = [Periodic(names[r.axis], exact=True) for r in self.reflections]
        for condition in original.conditions():
            start = condition.start(equation)
            if start is not None:
                kept.append(self._start(start, condition.weight))
            elif condition.seam() is not None:
                kept.append(condition)
        return kept

    def _start(self, start: Start, weight: float | None) -> Initial:
        index = start.index

        def value(p: Point) -> Array:
            sign = self._sign(p, index)
            return sign * evaluate(start.value, self._point(p), sign)

        return Initial(value, start.field, start.derivative, weight)

    def _point(self, p: Point) -> Point:
        """The points between the walls."""
        columns = p.columns(self.original.domain.coordinates)
        for reflection in self.reflections:
            c = self.original.domain.coordinates[reflection.axis]
            columns[c] = reflection.seen(columns[c])
        return Point.of_columns(columns)

    def _sign(self, p: Point, index: MultiIndex) -> Array:
        """By what this derivative of a field differs from the one between the walls."""
        columns = list(p.columns(self.original.domain.coordinates).values())
        sign = jnp.ones_like(columns[0])
        for reflection in self.reflections:
            behind = reflection.behind(columns[reflection.axis])
            sign = jnp.where(behind, reflection.sign(index) * sign, sign)
        return sign

    def _seen(self, field: Field, p: Point) -> Field:
        """A field as it is between the walls."""
        domain = self.original.domain

        def lookup(index: MultiIndex) -> Array:
            return self._sign(p, index) * field.part(index)

        return Field(lookup, domain.coordinates, domain.space)


def find_reflections(
    equation: Equation, conditions: Sequence[Condition]
) -> tuple[Reflection, ...] | str:
    """The walls of a problem along every coordinate of space that is not periodic; or why none."""
    reason = next(_obstacles(equation, conditions), None)
    if reason is not None:
        return reason
    domain = equation.domain
    walls = [w for c in conditions if (w := c.wall(equation)) is not None]
    found = []
    for name in _sides(equation, conditions):
        axis = domain.coordinates.index(name)
        parity = next(w.parity for w in walls if f"{name}.min" in w.pieces)
        found.append(Reflection(axis, *domain.bounds[axis], parity))
    return tuple(found) or "there are no walls"


def _sides(equation: Equation, conditions: Sequence[Condition]) -> list[str]:
    """The coordinates of space that are not periodic."""
    around = {c.seam() for c in conditions if c.exact is not False}
    return [name for name in equation.domain.space if name not in around]


def _obstacles(equation: Equation, conditions: Sequence[Condition]) -> Iterator[str]:
    """Everything because of which walls reflect no solution."""
    if not isinstance(equation.domain, Box):
        yield f"the domain {equation.domain!r} is not a box"
        return
    walls: list[Wall] = []
    for condition in conditions:
        wall = condition.wall(equation)
        if wall is not None:
            walls.append(wall)
            yield from _not_homogeneous(equation, condition, wall)
        elif condition.start(equation) is None and condition.seam() is None:
            yield f"there is also the condition {condition.label(equation)}"
    yield from _unlike(equation, _sides(equation, conditions), walls)


def _unlike(equation: Equation, sides: Sequence[str], walls: Sequence[Wall]) -> Iterator[str]:
    """Where a field has no parity at a wall, two of them, or another than at the first wall."""
    parities = {
        (name, side, field): {
            w.parity for w in walls if w.field == field and f"{name}.{side}" in w.pieces
        }
        for name in sides
        for field in equation.fields
        for side in ("min", "max")
    }
    for (name, side, field), found in parities.items():
        where = _place(equation, f"{name}.{side}")
        if not found:
            yield f"there is neither a value nor a slope of {field} at {where}"
        elif len(found) > 1:
            yield f"there are both a value and a slope of {field} at {where}"
        elif found != parities[name, "min", equation.fields[0]]:
            yield f"there is a value at one wall along {name} and a slope at another"


def _not_homogeneous(equation: Equation, condition: Condition, wall: Wall) -> Iterator[str]:
    where = _place(equation, wall.pieces[0])
    what = f"the slope of {wall.field}" if wall.normal_order else wall.field
    if not wall.homogeneous:
        yield f"{what} is not 0 at {where}"
    elif condition.exact is False:
        yield f"{what} at {where} is to be a term of the loss"


def _place(equation: Equation, piece: str) -> str:
    """``x = 1`` for ``x.max``."""
    name, side = piece.split(".")
    bounds = equation.domain.bounds[equation.domain.coordinates.index(name)]
    return f"{name} = {bounds[side == 'max']:g}"
