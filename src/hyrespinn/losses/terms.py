"""The terms of a loss: where each is sampled and which residual vectors it gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ..derivatives import MultiIndex, closure, coordinates, parse
from ..geometry.lattice import Lattice
from ..geometry.patch import draw as draw_points
from ..geometry.sampling import Sampler
from ..problems.conditions import (
    Boundary,
    Condition,
    Dirichlet,
    Initial,
    Interface,
    MeanValue,
    Neumann,
    Periodic,
    evaluate,
)
from ..problems.fields import Point, fields_of
from ..problems.problem import (
    Anatomy,
    Problem,
    field_of,
    index_of,
    named_residuals,
    principal_part,
    requested_derivatives,
    residuals_at,
    residuals_of,
    space_order,
)


class Samples(NamedTuple):
    """Points ``(n, d)`` of one term, with outward normals where they lie on a boundary.

    ``data`` are values to meet in place of those that the condition itself gives.
    """

    points: Array
    normals: Array | None = None
    data: Array | None = None


Series = Callable[[Any], Any]
"""A solution: coordinates, as an array or a series, to fields ``(points, fields)``."""


@dataclass(frozen=True)
class Term:
    """``weight`` multiplies the mean square of every vector that ``residuals`` returns.

    ``names`` are those of the vectors. A condition at the initial time can ``observe`` what it is
    about in another solution, and knows what is ``given``: so a window of time begins where the
    one before it ended. ``start_of`` is the field whose initial value it is, ``time_order`` the most
    derivatives by time in it.
    """

    name: str
    weight: float
    draw: Callable[[Array], Samples]
    residuals: Callable[[Series, Samples], dict[str, Array]]
    names: tuple[str, ...]
    observe: Callable[[Series, Samples], Array] | None = None
    given: Callable[[Samples], Array] | None = None
    start_of: str | None = None
    time_order: int = 0


@dataclass(frozen=True)
class Counts:
    """How many points a term gets."""

    interior: int
    initial: int
    boundary: int


@dataclass(frozen=True)
class Weights:
    """The weights of conditions that do not bring their own.

    ``boundary`` is that of a condition one order below the equation. Each further order below it
    multiplies by ``per_order``: of an error with wave number k an equation of order p sees k^p, a
    condition of order q sees k^q, and both count alike with a weight of k^2(p − q).
    """

    residual: float = 1.0
    initial: float = 100.0
    boundary: float = 100.0
    per_order: float = 1.0


@dataclass(frozen=True)
class TermBuilder:
    """Makes the terms of a problem, given how to sample it.

    With a lattice the equation and the initial conditions have its points, and a solution is
    evaluated on all of them as on a grid.
    """

    problem: Problem
    anatomy: Anatomy
    counts: Counts
    weights: Weights
    sampler: Sampler
    dtype: Any
    lattice: Lattice | None = None

    def interior(self) -> Term:
        if self.lattice is not None:
            return self._interior_lattice(self.lattice)
        domain, count = self.problem.domain, self.counts.interior
        principal = principal_part(self.problem, self.anatomy)

        def draw(key: Array) -> Samples:
            return Samples(domain.interior(key, count, self.sampler, self.dtype))

        def residuals(solution: Series, samples: Samples) -> dict[str, Array]:
            return residuals_at(self.problem, solution, self.anatomy, principal, samples.points)

        return self._equation(draw, residuals)

    def _interior_lattice(self, lattice: Lattice) -> Term:
        points = lattice.points()

        def draw(key: Array) -> Samples:
            return Samples(jnp.asarray(points, self.dtype))

        def residuals(solution: Series, samples: Samples) -> dict[str, Array]:
            values = values_at(solution, samples.points, self.anatomy.requested, lattice.shape)
            return residuals_of(self.problem, values, samples.points)

        return self._equation(draw, residuals)

    def _equation(
        self,
        draw: Callable[[Array], Samples],
        residuals: Callable[[Series, Samples], dict[str, Array]],
    ) -> Term:

        names = self.anatomy.residual_names
        has_time = self.problem.domain.has_time
        order = max(index[0] for index in self.anatomy.requested) if has_time else 0
        return Term("interior", self.weights.residual, draw, residuals, names, time_order=order)

    def condition(self, condition: Condition, name: str) -> Term:
        """The term of one condition that is not built into the solution."""
        match condition:
            case Initial():
                return self._initial(condition, name)
            case Dirichlet():
                return self._dirichlet(condition, name)
            case Neumann():
                return self._neumann(condition, name)
            case Boundary():
                return self._surface(condition, name, self._draw_boundary(condition.on))
            case Interface():
                return self._surface(condition, name, self._draw_planes(condition))
            case Periodic():
                return self._periodic(condition, name)
            case MeanValue():
                return self._mean(condition, name)
        raise TypeError(f"no loss term for {condition!r}")

    def _weight(self, condition: Any, default: float) -> float:
        return default if condition.weight is None else float(condition.weight)

    def _boundary_weight(self, condition: Any, order: int) -> float:
        """The weight of a condition in which derivatives by space have this order at most."""
        equation = space_order(self.problem, self.anatomy.requested)
        below = max(equation - order - 1, 0)
        return self._weight(condition, self.weights.boundary * self.weights.per_order**below)

    def _column(self, condition: Any) -> int:
        return self.problem.fields.index(field_of(self.problem, condition))

    def _draw_boundary(self, on: Any) -> Callable[[Array], Samples]:
        domain = self.problem.domain
        pieces = domain.expand(on)
        return lambda key: Samples(
            *domain.boundary(key, self.counts.boundary, pieces, self.sampler, self.dtype)
        )

    def _draw_planes(self, condition: Interface) -> Callable[[Array], Samples]:
        planes = tuple(self.problem.domain.cut(condition.axis, at) for at in condition.planes)

        def draw(key: Array) -> Samples:
            placed = draw_points(planes, key, self.counts.boundary, self.sampler, self.dtype)
            return Samples(placed.points, placed.normals)

        return draw

    def _initial(self, condition: Initial, name: str) -> Term:
        domain, i = self.problem.domain, self._column(condition)
        index = index_of(self.problem, condition)

        lattice = self.lattice
        grid = () if lattice is None else lattice.space
        points = None if lattice is None else lattice.start()

        def observe(solution: Series, samples: Samples) -> Array:
            return values_at(solution, samples.points, [index], grid)[index][:, i]

        def given(samples: Samples) -> Array:
            point = Point(samples.points, domain.coordinates)
            return evaluate(condition.value, point, samples.points[:, 0])

        def residuals(solution: Series, samples: Samples) -> dict[str, Array]:
            data = given(samples) if samples.data is None else samples.data
            return {name: observe(solution, samples) - data}

        def draw(key: Array) -> Samples:
            if points is not None:
                return Samples(jnp.asarray(points, self.dtype))
            return Samples(domain.initial(key, self.counts.initial, self.sampler, self.dtype))

        weight = self._weight(condition, self.weights.initial)
        field = None if condition.derivative else field_of(self.problem, condition)
        return Term(name, weight, draw, residuals, (name,), observe, given, field, index[0])

    def _dirichlet(self, condition: Dirichlet, name: str) -> Term:
        domain, i = self.problem.domain, self._column(condition)

        def residuals(solution: Series, samples: Samples) -> dict[str, Array]:
            value = solution(samples.points)[:, i]
            point = Point(samples.points, domain.coordinates, samples.normals)
            return {name: value - evaluate(condition.value, point, value)}

        weight = self._boundary_weight(condition, order=0)
        return Term(name, weight, self._draw_boundary(condition.on), residuals, (name,))

    def _neumann(self, condition: Neumann, name: str) -> Term:
        domain, i = self.problem.domain, self._column(condition)
        units = [parse(c, domain.coordinates) for c in domain.space]
        axes = [domain.coordinates.index(c) for c in domain.space]

        def residuals(solution: Series, samples: Samples) -> dict[str, Array]:
            series = values_at(solution, samples.points, units)
            normals = samples.normals
            assert normals is not None
            slope = sum(
                (normals[:, a] * series[u][:, i] for a, u in zip(axes, units, strict=True)),
                start=jnp.zeros_like(samples.points[:, 0]),
            )
            point = Point(samples.points, domain.coordinates, normals)
            return {name: slope - evaluate(condition.value, point, slope)}

        weight = self._boundary_weight(condition, order=1)
        return Term(name, weight, self._draw_boundary(condition.on), residuals, (name,))

    def _surface(
        self, condition: Boundary | Interface, name: str, draw: Callable[[Array], Samples]
    ) -> Term:
        domain = self.problem.domain
        used, names = requested_derivatives(self.problem, condition.residual, name, normals=True)

        def residuals(solution: Series, samples: Samples) -> dict[str, Array]:
            series = values_at(solution, samples.points, list(used))
            fields = fields_of(series, self.problem.fields, domain.coordinates, domain.space)
            point = Point(samples.points, domain.coordinates, samples.normals)
            return named_residuals(
                condition.residual(*fields, point), samples.points.shape[0], name
            )

        weight = self._boundary_weight(condition, space_order(self.problem, used))
        return Term(name, weight, draw, residuals, names)

    def _periodic(self, condition: Periodic, name: str) -> Term:
        """Values and derivatives below the equation's order along the axis agree at both ends."""
        domain = self.problem.domain
        axis = domain.coordinates.index(condition.axis)
        order = max(1, max(index[axis] for index in self.anatomy.closure))
        indices = [
            tuple(n if i == axis else 0 for i in range(domain.dimension)) for n in range(order)
        ]
        lower, upper = domain.bounds[axis]

        def residuals(solution: Series, samples: Samples) -> dict[str, Array]:
            left = values_at(solution, samples.points, indices)
            right = values_at(solution, samples.points.at[:, axis].set(upper), indices)
            jumps = [(right[i] - left[i]).reshape(-1) for i in indices]
            return {name: jnp.concatenate(jumps)}

        def draw(key: Array) -> Samples:
            pieces = (f"{condition.axis}.min",)
            points, _ = domain.boundary(key, self.counts.boundary, pieces, self.sampler, self.dtype)
            return Samples(points.at[:, axis].set(lower))

        weight = self._boundary_weight(condition, order - 1)
        return Term(name, weight, draw, residuals, (name,))

    def _mean(self, condition: MeanValue, name: str) -> Term:
        """The mean by quadrature: an error of random points would move the whole solution."""
        i = self._column(condition)
        nodes, shares = self.problem.domain.body.quadrature(self.counts.interior)
        points, weights = jnp.asarray(nodes, self.dtype), jnp.asarray(shares, self.dtype)

        def residuals(solution: Series, samples: Samples) -> dict[str, Array]:
            return {name: (weights @ solution(samples.points)[:, i] - condition.value)[None]}

        weight = self._weight(condition, self.weights.boundary)
        return Term(name, weight, lambda key: Samples(points), residuals, (name,))


def keys_for(key: Array, terms: list[Term]) -> dict[str, Array]:
    """A key for each term."""
    return {term.name: jax.random.fold_in(key, i) for i, term in enumerate(terms)}


def values_at(
    solution: Series,
    points: Array,
    indices: Sequence[MultiIndex],
    grid: tuple[int, ...] = (),
) -> dict[MultiIndex, Array]:
    """Derivatives ``(points, fields)``; those of all points of a grid together, as on a grid."""
    count, dimension = points.shape
    if math.prod(grid) == count and grid:
        points = points.reshape(*grid, dimension)
    series = solution(coordinates(points, closure(indices, dimension)))
    return {index: series[index].reshape(count, -1) for index in indices}
