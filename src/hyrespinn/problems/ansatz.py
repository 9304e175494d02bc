"""Conditions built into the solution: ``u = g + D·N`` with ``D = 0`` where the data are given.

``g`` extends the boundary data into the box by transfinite interpolation: the Boolean sum of
the linear interpolations across each axis. It reads the data on the boundary and nowhere else.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from ..derivatives import column, concatenate, lift, propagate
from ..errors import UserError
from ..geometry import Box, Domain
from .conditions import Condition, Dirichlet, Neumann, Value, evaluate, is_zero
from .fields import Point
from .mirror import MirrorAnsatz, mirrored
from .problem import Problem, field_of


@dataclass(frozen=True)
class Ansatz:
    """Turns the raw outputs of a network into fields that satisfy the exact conditions."""

    domain: Domain
    faces: tuple[dict[tuple[int, int], Value], ...]  # for each field: (axis, side) → data

    def __call__(self, network: Callable[[Any], Any], x: Any) -> Any:
        """The fields at coordinates ``x``, an array ``(points, d)`` or a series."""
        raw = propagate(network, x)
        if not any(self.faces):
            return raw
        columns = []
        for i, faces in enumerate(self.faces):
            field = column(raw, i)
            if faces:
                field = self._distance(faces, x) * field
                if not all(is_zero(value) for value in faces.values()):
                    field = field + lift(partial(self._extension, faces), x)
            columns.append(field)
        return columns[0] if len(columns) == 1 else concatenate(columns)

    def _distance(self, faces: dict[tuple[int, int], Value], x: Any) -> Any:
        """Zero on the faces, one in the middle."""
        product: Any = None
        for axis in sorted({axis for axis, _ in faces}):
            xi = self._unit(column(x, axis), axis)
            both = (axis, 0) in faces and (axis, 1) in faces
            factor = 4 * xi * (1 - xi) if both else (xi if (axis, 0) in faces else 1 - xi)
            product = factor if product is None else product * factor
        return product

    def _unit(self, column: Any, axis: int) -> Any:
        a, b = self.domain.bounds[axis]
        return (column - a) * (1 / (b - a))

    def _extension(self, faces: dict[tuple[int, int], Value], points: Array) -> Array:
        axes = sorted({axis for axis, _ in faces})
        total = jnp.zeros_like(points[..., :1])
        for size in range(1, len(axes) + 1):
            for subset in combinations(axes, size):
                total = total + (-1) ** (size + 1) * self._interpolate(faces, points, subset)
        return total

    def _interpolate(
        self, faces: dict[tuple[int, int], Value], points: Array, axes: tuple[int, ...]
    ) -> Array:
        """Linear interpolation across all of ``axes`` at once, between faces, edges or corners."""
        # A fixed coordinate becomes a constant column, and not a point moved to the face: data
        # with an infinite slope across it would otherwise give 0·∞ in the derivatives.
        free = {c: points[..., i] for i, c in enumerate(self.domain.coordinates)}
        terms: list[tuple[Array, dict[str, Array], Value]] = [
            (jnp.ones_like(points[..., 0]), free, 0.0)
        ]
        for axis in axes:
            xi = self._unit(points[..., axis], axis)
            sides = [side for side in (0, 1) if (axis, side) in faces]
            shares = [1 - xi, xi] if len(sides) == 2 else [jnp.ones_like(xi)]
            name = self.domain.coordinates[axis]
            terms = [
                (
                    weight * share,
                    {**where, name: jnp.full_like(xi, self.domain.bounds[axis][side])},
                    faces[axis, side],
                )
                for weight, where, _ in terms
                for side, share in zip(sides, shares, strict=True)
            ]
        total = jnp.zeros_like(points[..., 0])
        for weight, where, data in terms:
            total = total + weight * evaluate(data, Point.of_columns(where), total)
        return total[..., None]


def build_ansatz(
    problem: Problem, exact: bool, mirror: bool = False
) -> tuple[Ansatz | MirrorAnsatz, list[Condition]]:
    """The ansatz, and the conditions it leaves to the loss.

    With ``mirror`` the walls are built in by the solution's mirror images, and not by a factor that is
    zero there.
    """
    if mirror:
        walls = (Dirichlet, Neumann)
        left = [c for c in problem.conditions() if not isinstance(c, walls)]
        return MirrorAnsatz(mirrored(problem).mirrors), left
    domain = problem.domain
    faces: list[dict[tuple[int, int], Value]] = [{} for _ in problem.fields]
    left = []
    taken: list[tuple[Dirichlet, int]] = []
    for condition in problem.conditions():
        wanted = isinstance(condition, Dirichlet) and (
            exact if condition.exact is None else condition.exact
        )
        if not (wanted and isinstance(condition, Dirichlet) and isinstance(domain, Box)):
            left.append(condition)
            continue
        i = problem.fields.index(field_of(problem, condition))
        for piece in domain.expand(condition.on):
            if domain.face(piece) in faces[i]:
                raise UserError(
                    f"{problem.fields[i]} has two Dirichlet conditions on {piece}; keep one."
                )
            faces[i][domain.face(piece)] = condition.value
        taken.append((condition, i))
    for i in range(len(faces)):
        if isinstance(domain, Box) and faces[i] and not _compatible(domain, faces[i]):
            warnings.warn(
                f"The boundary data of {problem.fields[i]} jump where faces meet, so they cannot "
                "be imposed exactly; they become a term of the loss.",
                stacklevel=2,
            )
            faces[i] = {}
            left += [condition for condition, field in taken if field == i]
    return Ansatz(domain, tuple(faces)), left


def _compatible(domain: Box, faces: dict[tuple[int, int], Value]) -> bool:
    """Whether the data of two faces agree where they meet."""
    rng = np.random.default_rng(0)
    lower, upper = np.asarray(domain.bounds).T
    for one, two in combinations(sorted(faces), 2):
        if one[0] == two[0]:
            continue
        points = lower + (upper - lower) * rng.random((16, domain.dimension))
        for axis, side in (one, two):
            points[:, axis] = domain.bounds[axis][side]
        where = jnp.asarray(points)
        point = Point(where, domain.coordinates)
        a, b = (np.asarray(evaluate(faces[f], point, where[:, 0])) for f in (one, two))
        if not np.allclose(a, b, rtol=1e-6, atol=1e-6 * (1 + np.abs(a).max())):
            return False
    return True
