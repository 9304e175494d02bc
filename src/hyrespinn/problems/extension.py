"""Whether a solution extends smoothly behind its walls, found out by looking at the equation there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..derivatives import MultiIndex
from .conditions import ODD, Start, evaluate
from .equation import Equation
from .reflection import Reflection

ROUNDING = 1e-9
"""Relative to what is compared, the most that two values may differ by and count as the same."""

Residuals = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Extension:
    """What is looked at: an equation and its starts between walls, at ``points`` of the domain.

    Reflecting a solution loses nothing if the equation is of the second order in space at most
    (else a reflection asks for more than the conditions do), looks the same from both sides of a wall
    for any fields, and starts without a jump or a kink there. A source that is not zero at a wall, or
    a wind through it, do not extend smoothly. Nor does what is infinite somewhere, or cannot be told.
    """

    equation: Equation
    reflections: Sequence[Reflection]
    starts: Sequence[Start]
    points: Array

    def obstacles(self) -> Iterator[str]:
        """Everything because of which a solution does not extend smoothly, in words."""
        order = self.equation.space_order
        if order > 2:
            yield f"the equation is of order {order} in space, where a reflection asks for too much"
            return
        for reflection in self.reflections:
            for wall in reflection.walls:
                yield from self._equation_at(reflection, wall)
                yield from self._starts_at(reflection, wall)
        for reflection in self.reflections:
            yield from self._infinite_along(reflection)

    def _place(self, reflection: Reflection, wall: float) -> str:
        return f"{self.equation.domain.coordinates[reflection.axis]} = {wall:g}"

    def _at(self, reflection: Reflection, wall: float) -> Array:
        return self.points.at[:, reflection.axis].set(wall)

    def _residuals(self, values: Mapping[MultiIndex, Array], points: Array) -> Residuals:
        found = self.equation.residuals(values, points)
        return {name: np.asarray(vector) for name, vector in found.items()}

    def _equation_at(self, reflection: Reflection, wall: float) -> Iterator[str]:
        """For fields of any size; a source by itself too, next to what it is elsewhere."""
        points, requested = self._at(reflection, wall), self.equation.requested
        random = np.random.default_rng(0)
        sizes = np.logspace(-3, 3, len(points))
        shape = (len(points), len(self.equation.fields))
        values = {i: jnp.asarray(sizes[:, None] * random.normal(size=shape)) for i in requested}
        images = {index: reflection.sign(index) * value for index, value in values.items()}
        nothing = dict.fromkeys(requested, jnp.zeros(shape))
        ahead, behind = self._residuals(values, points), self._residuals(images, points)
        source, elsewhere = (self._residuals(nothing, p) for p in (points, self.points))
        where = self._place(reflection, wall)
        for name in ahead:
            if not np.isfinite(ahead[name]).all():
                yield f"the {name} is not finite at {where}"
            unlike = np.abs(reflection.parity * behind[name] - ahead[name])
            most = ROUNDING * np.abs(elsewhere[name]).max()
            if not np.abs((1 - reflection.parity) * source[name]).max() <= most:
                yield f"there is a source at the wall {where}"
            if not np.all(unlike <= ROUNDING * (sizes + np.abs(ahead[name]))):
                yield self._asymmetry(reflection, where, name, values)

    def _asymmetry(
        self,
        reflection: Reflection,
        where: str,
        name: str,
        values: Mapping[MultiIndex, Array],
    ) -> str:
        """What of an equation looks different from behind a wall."""
        points = self.points
        odd = {i: v for i, v in values.items() if i[reflection.axis] % 2}
        without = {i: jnp.zeros_like(v) if i in odd else v for i, v in values.items()}
        images = {i: reflection.sign(i) * v for i, v in without.items()}
        ahead, behind = self._residuals(without, points), self._residuals(images, points)
        rest = np.abs(reflection.parity * behind[name] - ahead[name])
        if odd and np.all(rest <= ROUNDING * (1e3 + np.abs(ahead[name]))):
            return f"wind through the wall at {where}"
        return f"the {name} looks different from behind the wall at {where}"

    def _infinite_along(self, reflection: Reflection) -> Iterator[str]:
        """Whether the equation is finite at evenly spaced places, as those of a lattice are, too."""
        count = len(self.points)
        along = jnp.linspace(reflection.lower, reflection.upper, count)
        ones = dict.fromkeys(self.equation.requested, jnp.ones((count, len(self.equation.fields))))
        found = self._residuals(ones, self.points.at[:, reflection.axis].set(along))
        for name, vector in found.items():
            if not np.isfinite(vector).all():
                where = self._place(reflection, float(along[np.argmin(np.isfinite(vector))]))
                yield f"the {name} is not finite at {where}"

    def _starts_at(self, reflection: Reflection, wall: float) -> Iterator[str]:
        """What is odd about a wall must start from zero there, and what is even without a slope."""
        for start in self.starts:
            odd = reflection.sign(start.index) == ODD
            value, change = self._start(start, reflection, self._at(reflection, wall))
            everywhere = self._start(start, reflection, self.points)
            largest = max(np.abs(part).max() for part in everywhere)
            if not np.abs(value if odd else change).max() <= 1e3 * ROUNDING * largest:
                name = start.field + (f"_{start.derivative}" if start.derivative else "")
                how = "jump" if odd else "kink"
                where = self._place(reflection, wall)
                yield f"the start of {name} would have a {how} at {where}"

    def _start(
        self, start: Start, reflection: Reflection, points: Array
    ) -> tuple[np.ndarray, np.ndarray]:
        """The data at points, and their change across the length at this rate."""
        begin = self.equation.domain.bounds[0][0]
        points = points.at[:, 0].set(begin)
        length = reflection.upper - reflection.lower
        directions = jnp.zeros_like(points).at[:, reflection.axis].set(length)

        def data(points: Array) -> Array:
            return evaluate(start.value, self.equation.point(points), points[:, 0])

        value, change = jax.jvp(data, (points,), (directions,))
        return np.asarray(value), np.asarray(change)
