"""The residuals of a solution, and the operators that they are to first order in its error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jax import Array

from ..derivatives import MultiIndex, Taylor
from ..derivatives.taylor import Key
from ..losses.terms import EquationTerm, Term
from ..models.layers import Series
from ..problems.conditions import Samples, SolutionMap
from ..problems.conditions.condition import values_at
from ..problems.statement import Parameters
from .splines import SplineSpace

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

    def rows(self, space: SplineSpace) -> scipy.sparse.csr_array:
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
        places, values = _recorded(term, solution, samples, parameters)

        def vectors(values: Sequence[Values]) -> dict[str, Array]:
            return term.residuals(cast(SolutionMap, _replayed(values)), samples, parameters)

    def one(name: str) -> Callable[[Sequence[Values]], Array]:
        return lambda values: vectors(values)[name].reshape(-1)

    return {name: _linear(one(name), values, places) for name in jax.eval_shape(vectors, values)}


def _recorded(
    term: Term, solution: SolutionMap, samples: Samples, parameters: Parameters | None
) -> tuple[list[Array], list[Values]]:
    """The points at which a term asks for the solution, and what it is told there."""
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
    return places, values


def _replayed(values: Sequence[Values]) -> Callable[[Series], Series]:
    """A solution that answers calls with these values, in their order."""
    answers = iter(values)

    def replaying(x: Series) -> Series:
        answer = next(answers)
        if isinstance(x, Taylor):
            parts: dict[Key, Array] = {index: part for index, part in answer.items()}
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
