"""The residuals of a solution, and the operators that they are to first order in its error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jax import Array

from ..derivatives import MultiIndex, Taylor, column
from ..derivatives.taylor import Key
from ..losses.terms import EquationTerm, Term
from ..models.layers import Series
from ..problems.conditions import Samples, SolutionMap
from ..problems.conditions.condition import values_at
from ..problems.statement import Parameters
from .spaces import Space

Values = dict[MultiIndex, Array]
FEW = 4
"""A vector of so few rows may depend on all points, as a mean does."""


class Read(NamedTuple):
    """What a vector of residuals reads of a solution in one call, and its slopes by that.

    ``slopes`` are ``(rows, fields)``, and ``places`` the number of the point of each row; or, for rows
    that depend on all points, ``(rows, points, fields)`` without places.
    """

    points: Array
    slopes: Values
    places: Array | None


class Linear(NamedTuple):
    """A vector of residuals, ``vector + Σ slopes · error``."""

    vector: Array
    reads: tuple[Read, ...]

    def rows(self, space: Space) -> scipy.sparse.csr_array:
        """What the splines of a space make of it."""
        total = scipy.sparse.csr_array((self.vector.shape[0], space.size))
        for read in self.reads:
            points = np.asarray(read.points)
            slopes = {k: np.asarray(s) for k, s in read.slopes.items()}
            if read.places is not None:
                total = total + space.rows(points[np.asarray(read.places)], slopes)
                continue
            for row in range(self.vector.shape[0]):
                summed = space.rows(points, {k: s[row] for k, s in slopes.items()}).sum(axis=0)
                unit = np.zeros((self.vector.shape[0], 1))
                unit[row] = 1
                total = total + scipy.sparse.csr_array(unit * np.asarray(summed)[None])
        return scipy.sparse.csr_array(total)


def linearise(
    term: Term, solution: SolutionMap, samples: Samples, parameters: Parameters | None
) -> dict[str, Linear]:
    """Every vector of a term by name; inside compiled code."""
    if isinstance(term, EquationTerm):
        function = term.statement.residuals_with(parameters)
        values = [values_at(solution, samples.points, term.statement.requested)]
        places = [samples.points]

        def vectors(values: Sequence[Values]) -> dict[str, Array]:
            return function(values[0], samples.points)
    else:
        recorded = _recorded(term, solution, samples, parameters)
        if recorded is None:
            return _locally(term, solution, samples, parameters)
        places, values = recorded

        def vectors(values: Sequence[Values]) -> dict[str, Array]:
            return term.residuals(cast(SolutionMap, _replayed(values)), samples, parameters)

    def one(name: str) -> Callable[[Sequence[Values]], Array]:
        return lambda values: vectors(values)[name].reshape(-1)

    return {name: _linear(one(name), values, places) for name in jax.eval_shape(vectors, values)}


def _recorded(
    term: Term, solution: SolutionMap, samples: Samples, parameters: Parameters | None
) -> tuple[list[Array], list[Values]] | None:
    """The points at which a term asks for the solution, and what it is told there.

    None for one that differentiates the solution by itself: what it asks for then is nothing that can
    be kept.
    """
    places: list[Array] = []
    values: list[Values] = []

    def recording(x: Series) -> Series:
        if isinstance(x, Taylor):
            series = solution(x)
            places.append(x.value)
            values.append({index: series[index] for index in x.indices})
            return series
        array = solution(x)
        places.append(x)
        values.append({(0,) * x.shape[-1]: array})
        return array

    term.residuals(cast(SolutionMap, recording), samples, parameters)
    outside = type(samples.points)
    return (places, values) if all(type(p) is outside for p in places) else None


def _locally(
    term: Term, solution: SolutionMap, samples: Samples, parameters: Parameters | None
) -> dict[str, Linear]:
    """The slopes of rows that depend on the solution near their own point, whatever they do with it:
    what they make of the monomials ``(x − point)^α / α!``."""
    dimension, fields = samples.points.shape[1], len(term.statement.fields)
    order = term.statement.order
    indices = [i for i in product(range(order + 1), repeat=dimension) if sum(i) <= order]
    base = term.residuals(solution, samples, parameters)

    def at_point(alone: Samples, index: MultiIndex, field: int) -> dict[str, Array]:
        centre, one = alone.points, jnp.zeros((1, fields)).at[0, field].set(1)

        def rows(size: Array) -> dict[str, Array]:
            def moved(x: Series) -> Series:
                monomial = _monomial(x, centre, index) * (size * one)
                if isinstance(x, Taylor):
                    return solution(x) + monomial
                return solution(x) + monomial

            return term.residuals(cast(SolutionMap, moved), alone, parameters)

        return jax.jvp(rows, (jnp.zeros(()),), (jnp.ones(()),))[1]

    slopes: dict[str, Values] = {name: {} for name in base}
    for index in indices:
        columns = []
        for field in range(fields):
            every = jax.vmap(
                lambda s, i=index, f=field: at_point(jax.tree.map(lambda a: a[None], s), i, f)
            )(samples)
            columns.append(every)
        for name in base:
            slopes[name][index] = jnp.stack([c[name].reshape(-1) for c in columns], axis=1)
    places = jnp.arange(samples.points.shape[0])
    return {
        name: Linear(vector.reshape(-1), (Read(samples.points, slopes[name], places),))
        for name, vector in base.items()
    }


def _monomial(x: Series, centre: Array, index: MultiIndex) -> Any:
    """``Π (x_a − c_a)^n_a / n_a!``, one column."""
    found = column(x, 0) * 0 + 1
    for a, n in enumerate(index):
        for k in range(n):
            found = found * (column(x, a) - centre[0, a]) * (1 / (k + 1))
    return found


def _replayed(values: Sequence[Values]) -> Callable[[Series], Series]:
    """A solution that answers calls with these values, in their order."""
    answers = iter(values)

    def replaying(x: Series) -> Series:
        answer = next(answers)
        if isinstance(x, Taylor):
            parts: dict[Key, Array] = dict(answer.items())
            return Taylor(parts, x.indices)
        return next(iter(answer.values()))

    return replaying


def _linear(
    vector: Callable[[Sequence[Values]], Array], values: list[Values], places: list[Array]
) -> Linear:
    found, pull = jax.vjp(vector, values)
    if found.size <= FEW:
        (slopes,) = jax.vmap(pull)(jnp.eye(found.size, dtype=found.dtype))
        reads = [Read(p, s, None) for p, s in zip(places, slopes, strict=True)]
        return Linear(found, tuple(reads))
    if all(p.shape[0] == found.size for p in places):
        (slopes,) = pull(jnp.ones_like(found))
        rows = jnp.arange(found.size)
        reads = [Read(p, s, rows) for p, s in zip(places, slopes, strict=True)]
        return Linear(found, tuple(reads))
    return Linear(found, tuple(_probed(vector, values, places)))


def _probed(
    vector: Callable[[Sequence[Values]], Array], values: list[Values], places: list[Array]
) -> list[Read]:
    """Slopes of rows in any order, each of which depends on one point: which one, a change by the
    number of the point tells, compared to a change by one."""
    reads = []
    for call, (points, told) in enumerate(zip(places, values, strict=True)):
        number = jnp.arange(1.0, points.shape[0] + 1)[:, None]
        slopes: Values = {}
        place = jnp.zeros((), jnp.int64)
        for index, array in told.items():
            columns = []
            for field in range(array.shape[1]):
                unit = jnp.zeros_like(array).at[:, field].set(1)

                def changed(by: Array, call: int = call, index: MultiIndex = index) -> Array:
                    tangent = [{k: jnp.zeros_like(a) for k, a in v.items()} for v in values]
                    tangent[call][index] = by
                    return jax.jvp(vector, (values,), (tangent,))[1]

                slope, moment = changed(unit), changed(unit * number)
                columns.append(slope)
                ratio = jnp.where(slope != 0, moment / jnp.where(slope != 0, slope, 1), 1)
                place = jnp.maximum(place, jnp.round(ratio).astype(jnp.int64) - 1)
            slopes[index] = jnp.stack(columns, axis=1)
        reads.append(Read(points, slopes, jnp.clip(place, 0, points.shape[0] - 1)))
    return reads
