"""Values built into the solution: ``u = g + D·N`` with ``D = 0`` where the data are given.

``g`` extends the boundary data into the box by transfinite interpolation: the Boolean sum of
the linear interpolations across each axis. It reads the data on the boundary and nowhere else.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import ClassVar, TypeVar

import jax.numpy as jnp
import numpy as np
from jax import Array

from ...derivatives import Taylor, column, concatenate, lift, propagate
from ...errors import UserError
from ...geometry import Box
from ...models.layers import Series
from ..conditions import Condition, Value, evaluate, is_zero
from ..equation import Equation
from ..fields import Point
from ..statement import Statement
from .treatment import Ansatz, BoundaryTreatment, Imposed, Network, not_embedded

Faces = Mapping[tuple[int, int], int]
"""For faces (axis, side) of a box the place of the condition that gives the data there."""
Data = Mapping[tuple[int, int], Value]


S = TypeVar("S", Array, Taylor)


@dataclass(frozen=True)
class LiftedAnsatz(Ansatz):
    """``g + D·N``, field by field."""

    equation: Equation
    faces: tuple[Faces, ...]  # one for each field
    conditions: Sequence[Condition]

    def given(self, conditions: Sequence[Condition]) -> LiftedAnsatz:
        return replace(self, conditions=conditions)

    def __call__(self, network: Network, x: Series) -> Series:
        raw = propagate(network, x)
        if not any(self.faces):
            return raw
        fields = [self._field(column(raw, i), faces, x) for i, faces in enumerate(self.faces)]
        return fields[0] if len(fields) == 1 else concatenate(fields)

    def _field(self, raw: Series, faces: Faces, x: Series) -> Series:
        if not faces:
            return raw
        data = self._data(faces)
        field = self._distance(faces, x) * raw
        if all(is_zero(value) for value in data.values()):
            return field
        return field + lift(partial(self._extension, data), x)

    def _data(self, faces: Faces) -> Data:
        found = {}
        for face, place in faces.items():
            wall = self.conditions[place].wall(self.equation)
            assert wall is not None
            found[face] = wall.value
        return found

    def _distance(self, faces: Faces, x: Series) -> Series:
        """Zero on the faces, one in the middle."""
        product: Series | None = None
        for axis in sorted({axis for axis, _ in faces}):
            xi = self._unit(column(x, axis), axis)
            both = (axis, 0) in faces and (axis, 1) in faces
            factor = 4 * xi * (1 - xi) if both else (xi if (axis, 0) in faces else 1 - xi)
            product = factor if product is None else product * factor
        assert product is not None
        return product

    def _unit(self, column: S, axis: int) -> S:
        a, b = self.equation.domain.bounds[axis]
        return (column - a) * (1 / (b - a))

    def _extension(self, data: Data, points: Array) -> Array:
        axes = sorted({axis for axis, _ in data})
        total = jnp.zeros_like(points[..., :1])
        for size in range(1, len(axes) + 1):
            for subset in combinations(axes, size):
                total = total + (-1) ** (size + 1) * self._interpolate(data, points, subset)
        return total

    def _interpolate(self, data: Data, points: Array, axes: tuple[int, ...]) -> Array:
        """Linear interpolation across all of ``axes`` at once, between faces, edges or corners."""
        # A fixed coordinate becomes a constant column, and not a point moved to the face: data
        # with an infinite slope across it would otherwise give 0·∞ in the derivatives.
        domain = self.equation.domain
        free = {c: points[..., i] for i, c in enumerate(domain.coordinates)}
        terms: list[tuple[Array, dict[str, Array], Value]] = [
            (jnp.ones_like(points[..., 0]), free, 0.0)
        ]
        for axis in axes:
            xi = self._unit(points[..., axis], axis)
            sides = [side for side in (0, 1) if (axis, side) in data]
            shares = [1 - xi, xi] if len(sides) == 2 else [jnp.ones_like(xi)]
            name = domain.coordinates[axis]
            terms = [
                (
                    weight * share,
                    {**where, name: jnp.full_like(xi, domain.bounds[axis][side])},
                    data[axis, side],
                )
                for weight, where, _ in terms
                for side, share in zip(sides, shares, strict=True)
            ]
        total = jnp.zeros_like(points[..., 0])
        for weight, where, value in terms:
            total = total + weight * evaluate(value, Point.of_columns(where), total)
        return total[..., None]


@dataclass(frozen=True)
class Lifted(BoundaryTreatment):
    """Values on the faces of a box, and periodicity, are built in; all else is left to the loss."""

    kind: ClassVar[str] = "lifted"
    embeds: ClassVar[bool] = True

    def impose(self, statement: Statement) -> Imposed:
        return lift_values(self, statement)


def lift_values(treatment: BoundaryTreatment, statement: Statement) -> Imposed:
    """Build in the values that the treatment, or a condition itself, asks to build in."""
    domain = statement.domain
    faces: list[dict[tuple[int, int], int]] = [{} for _ in statement.fields]
    left: list[int] = []
    for place in not_embedded(treatment, statement):
        condition = statement.conditions[place]
        wall = condition.wall(statement)
        if (
            wall is None
            or wall.normal_order
            or not isinstance(domain, Box)
            or not treatment.builds_in(condition)
        ):
            left.append(place)
            continue
        own = faces[statement.fields.index(wall.field)]
        for piece in wall.pieces:
            if domain.face(piece) in own:
                raise UserError(f"{wall.field} has two Dirichlet conditions on {piece}; keep one.")
            own[domain.face(piece)] = place
    ansatz = LiftedAnsatz(statement, tuple(faces), statement.conditions)
    for i, own in enumerate(faces):
        if not _compatible(statement, ansatz._data(own)):
            warnings.warn(
                f"The boundary data of {statement.fields[i]} jump where faces meet, so they cannot "
                "be imposed exactly; they become a term of the loss.",
                stacklevel=3,
            )
            left += dict.fromkeys(own.values())
            faces[i] = {}
    return Imposed(replace(ansatz, faces=tuple(faces)), tuple(left))


def _compatible(equation: Equation, data: Data) -> bool:
    """Whether the data of two faces agree where they meet."""
    domain = equation.domain
    rng = np.random.default_rng(0)
    lower, upper = np.asarray(domain.bounds).T
    for one, two in combinations(sorted(data), 2):
        if one[0] == two[0]:
            continue
        points = lower + (upper - lower) * rng.random((16, domain.dimension))
        for axis, side in (one, two):
            points[:, axis] = domain.bounds[axis][side]
        where = jnp.asarray(points)
        a, b = (
            np.asarray(evaluate(data[face], equation.point(where), where[:, 0]))
            for face in (one, two)
        )
        if not np.allclose(a, b, rtol=1e-6, atol=1e-6 * (1 + np.abs(a).max())):
            return False
    return True
