"""Walls as mirrors: a solution that is odd, or even, about both ends is periodic on twice the length.

Zero at a wall makes a solution odd about it, and a zero slope even, if the equation looks the same from
behind. Then all that is known of periodic problems (exact conditions, kernels on a lattice) serves
problems between walls too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from ..derivatives import MultiIndex, Taylor, propagate
from ..errors import UserError
from ..geometry import Box
from .conditions import (
    Condition,
    Dirichlet,
    Initial,
    Neumann,
    Periodic,
    embedded,
    evaluate,
    is_zero,
)
from .fields import Field, Point
from .problem import Problem, field_of, index_of

ODD, EVEN = -1, 1


@dataclass(frozen=True)
class Mirror:
    """Walls at both ends of one coordinate, behind which a solution goes on with this parity."""

    axis: int
    lower: float
    upper: float
    parity: int

    def behind(self, x: Array) -> Array:
        """Which points are behind the upper wall."""
        return x > self.upper

    def seen(self, x: Array) -> Array:
        """The points between the walls that those behind the upper one are the image of."""
        return jnp.where(self.behind(x), 2 * self.upper - x, x)

    def sign(self, index: MultiIndex) -> int:
        """By what the mirror multiplies this derivative of a field."""
        return self.parity * (-1) ** index[self.axis]


class Mirrored(Problem):
    """A problem between walls as a periodic one on twice the length: behind the upper walls it is its
    own image.

    >>> import hyrespinn as hp
    >>> mirrored(hp.problems.Burgers()).domain
    TimeBox(t=(0, 1), x=(-1, 3))
    """

    original: Problem
    mirrors: tuple[Mirror, ...]

    @property
    def domain(self) -> Box:  # type: ignore[override]
        original = self.original.domain
        sides = dict(zip(original.coordinates, original.bounds, strict=True))
        for mirror in self.mirrors:
            length = mirror.upper - mirror.lower
            sides[original.coordinates[mirror.axis]] = mirror.lower, mirror.lower + 2 * length
        return Box(_time=original.has_time, **sides)

    @property
    def fields(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.original.fields

    def residual(self, *fields_and_point: Any) -> Any:
        *fields, p = fields_and_point
        seen = [self._seen(field, p) for field in fields]
        found = self.original.residual(*seen, self._point(p))
        sign = self._sign(p, (0,) * self.original.domain.dimension)

        def image(part: Any) -> Any:
            return sign * part

        if isinstance(found, dict):
            return {name: image(part) for name, part in found.items()}
        if isinstance(found, (tuple, list)):
            return tuple(image(part) for part in found)
        return image(found)

    def conditions(self) -> list[Condition]:
        names = self.original.domain.coordinates
        kept: list[Condition] = [Periodic(names[m.axis], exact=True) for m in self.mirrors]
        for condition in self.original.conditions():
            if isinstance(condition, Initial):
                kept.append(self._start(condition))
            elif isinstance(condition, Periodic):
                kept.append(condition)
        return kept

    def _start(self, condition: Initial) -> Initial:
        index = index_of(self.original, condition)

        def value(p: Point) -> Array:
            sign = self._sign(p, index)
            return sign * evaluate(condition.value, self._point(p), sign)

        return Initial(value, condition.field, condition.derivative, condition.weight)

    def _point(self, p: Point) -> Point:
        """The points between the walls."""
        names = self.original.domain.coordinates
        columns = {c: getattr(p, c) for c in names}
        for mirror in self.mirrors:
            c = names[mirror.axis]
            columns[c] = mirror.seen(columns[c])
        return Point.of_columns(columns)

    def _sign(self, p: Point, index: MultiIndex) -> Array:
        """By what this derivative of a field differs from the one between the walls."""
        names = self.original.domain.coordinates
        sign = jnp.ones_like(getattr(p, names[0]))
        for mirror in self.mirrors:
            behind = mirror.behind(getattr(p, names[mirror.axis]))
            sign = jnp.where(behind, mirror.sign(index) * sign, sign)
        return sign

    def _seen(self, field: Field, p: Point) -> Field:
        """A field as it is between the walls."""
        domain = self.original.domain

        def lookup(index: MultiIndex) -> Array:
            return self._sign(p, index) * field.part(index)

        return Field(lookup, domain.coordinates, domain.space)


@dataclass(frozen=True)
class MirrorAnsatz:
    """``u = ½ (N(x) ± N(x̃))`` with the mirror image ``x̃``: the conditions at all walls hold exactly.

    The network must be periodic on twice the length, as one for :class:`Mirrored` is.
    """

    mirrors: tuple[Mirror, ...]

    def __call__(self, network: Callable[[Any], Any], x: Any) -> Any:
        """The fields at coordinates ``x``, an array ``(points, d)`` or a series."""
        total: Any = None
        for chosen in product((False, True), repeat=len(self.mirrors)):
            images = [m for m, is_image in zip(self.mirrors, chosen, strict=True) if is_image]
            part = propagate(network, _reflected(x, images))
            signed = part * (0.5 ** len(self.mirrors) * np.prod([m.parity for m in images]))
            total = signed if total is None else total + signed
        return total


def _reflected(x: Any, mirrors: list[Mirror]) -> Any:
    """The images of points, each in the wall that is nearer: a point on a wall is its own image."""
    for mirror in mirrors:
        along = (x.value if isinstance(x, Taylor) else x)[..., mirror.axis]
        middle = 0.5 * (mirror.lower + mirror.upper)
        shift = jnp.where(along < middle, 2 * mirror.lower, 2 * mirror.upper)
        unit = np.eye(x.shape[-1])[mirror.axis]
        x = x * jnp.asarray(1 - 2 * unit, x.dtype) + shift[..., None] * jnp.asarray(unit, x.dtype)
    return x


def mirrored(problem: Problem) -> Mirrored:
    """The problem on twice the length along every coordinate of space that has walls.

    All fields must be zero at both walls of a coordinate, or have zero slopes there.
    """
    mirrors = mirrors_of(problem)
    if not mirrors:
        raise UserError(
            f"{problem.name} has no walls that mirror its solution: along a coordinate of a box all "
            "fields must be 0 at both ends (Dirichlet(0.0)), or have no slope (Neumann(0.0)), and "
            "beside that there may be Initial and exact Periodic conditions alone. Leave train.mirror."
        )
    return Mirrored(original=problem, mirrors=mirrors)


def mirrors_of(problem: Problem) -> tuple[Mirror, ...]:
    """The walls of a problem; none where it has other conditions too."""
    domain, conditions = problem.domain, problem.conditions()
    walls = [c for c in conditions if isinstance(c, Dirichlet | Neumann)]
    around = {c.axis for c in conditions if isinstance(c, Periodic) and embedded(c, True)}
    known = all(isinstance(c, Dirichlet | Neumann | Initial | Periodic) for c in conditions)
    plain = all(is_zero(c.value) and getattr(c, "exact", None) is not False for c in walls)
    if not (isinstance(domain, Box) and known and plain):
        return ()
    mirrors = []
    for name in (c for c in domain.space if c not in around):
        axis = domain.coordinates.index(name)
        parities = {
            (field, side): {
                ODD if isinstance(c, Dirichlet) else EVEN
                for c in walls
                if field_of(problem, c) == field and f"{name}.{side}" in domain.expand(c.on)
            }
            for field in problem.fields
            for side in ("min", "max")
        }
        first, *rest = parities.values()
        if len(first) != 1 or any(parity != first for parity in rest):
            return ()
        mirrors.append(Mirror(axis, *domain.bounds[axis], *first))
    return tuple(mirrors)
