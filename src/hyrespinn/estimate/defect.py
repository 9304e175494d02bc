"""The error of a solution on any domain: the defect equation in a space of splines.

With the residual ``r`` of a solution ``u`` and the linearised equation ``L = ∂r/∂u``, the error ``e``
(what is to be added to ``u``) satisfies ``L e = −r``, and every condition likewise, to first order. Splines
are local, so that least squares on fresh points give ``e`` in a space that is richer than the model's for
a small part of what its training took; one digit of ``e`` is enough.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jax import Array

from ..derivatives import MultiIndex
from ..geometry import Box
from ..geometry.sampling import kronecker
from ..losses.objective import Objective
from ..losses.terms import Counts, Sampling, Term, Weights, terms_of
from ..problems.boundary.treatment import Ansatz, BoundaryTreatment, Imposed, not_embedded
from ..problems.conditions import Samples
from .banded import Least
from .linearise import Linear, linearise
from .part import Part
from .spaces import Choice, Space

OVERSAMPLING = 3.0
"""Points for each function."""
SLIVER, HELD = 0.02, 1e-3
"""Of a spline that lies nearly outside of the domain, the share of its square that is left inside, and
how strongly its coefficient is held at zero, in lengths of a usual column: no point may hit it."""
CHECKED = 4096
"""Points at which sizes are measured."""


class Found(NamedTuple):
    """The error on a part: ``error``, and ``solution`` without it, are mean squares by field."""

    coefficients: np.ndarray
    error: np.ndarray
    solution: np.ndarray
    worst: np.ndarray  # the point where the error is largest
    left: float  # the share of the residual that the splines do not take away
    weakest: float  # the least size that the operators give a function of size one
    natural: float  # what they give a smooth function of size one
    residual: float  # the root mean square of the equations


class Defects:
    """Finds errors part by part, with programs compiled once for all parts."""

    def __init__(self, objective: Objective, boundary: BoundaryTreatment, choice: Choice):
        self.objective, self.statement, self.choice = objective, objective.statement, choice
        embedded = boundary.embedded(self.statement)
        names = self.statement.domain.coordinates
        self.periodic = tuple(name in embedded for name in names)
        share = self.statement.domain.volume / math.prod(
            b - a for a, b in self.statement.domain.bounds
        )
        inside = max(64, round(OVERSAMPLING * choice.inside * share))
        around = max(16, round(OVERSAMPLING * choice.around))
        sampling = Sampling(Counts(inside, around, around), kronecker, jnp.dtype("float64"))
        left = tuple(not_embedded(boundary, self.statement))
        self.terms: list[Term] = terms_of(
            self.statement, Imposed(Ansatz(), left), sampling, Weights()
        )
        self.evaluate = jax.jit(self._evaluate)
        self.sizes = jax.jit(self._sizes)

    def _moved(self, points: Array, part: Part) -> Array:
        if not self.statement.has_time:
            return points
        begin, end = self.statement.domain.bounds[0]
        share = (points[:, 0] - begin) / (end - begin)
        return points.at[:, 0].set(part.start + share * part.length)

    def _samples(self, term: Term, key: Array, part: Part) -> Samples:
        drawn = term.draw(key)
        samples = drawn._replace(points=self._moved(drawn.points, part))
        if not term.is_start:
            return samples
        start = term.start(part.context.parameters)
        before = self.objective.solution(part.theta_before, part.context_before)
        data = jnp.where(part.is_first, start.given(samples), start.observe(before, samples))
        return samples._replace(data=data)

    def _evaluate(self, part: Part, key: Array) -> list[dict[str, Linear]]:
        solution = self.objective.solution(part.theta, part.context)
        found = []
        for i, term in enumerate(self.terms):
            samples = self._samples(term, jax.random.fold_in(key, i), part)
            found.append(linearise(term, solution, samples, part.context.parameters))
        return found

    def _sizes(self, part: Part, key: Array) -> tuple[Array, Array]:
        """Points of a part, and the solution there."""
        drawn = self.statement.domain.interior(key, CHECKED, kronecker, jnp.dtype("float64"))
        points = self._moved(drawn, part)
        return points, self.objective.solution(part.theta, part.context)(points)

    def space(self, part: Part) -> Space:
        bounds = list(self.statement.domain.bounds)
        if self.statement.has_time:
            bounds[0] = float(part.start), float(part.start + part.length)
        fields = len(self.statement.fields)
        return self.choice.space(tuple(bounds), self.periodic, fields)

    def find(self, part: Part, before: tuple[Space, np.ndarray] | None, key: Array) -> Found:
        """The error on a part that begins with the error of the part before it."""
        space, pieces = self.space(part), []
        for term, vectors in zip(self.terms, self.evaluate(part, key), strict=True):
            for linear in vectors.values():
                vector = np.asarray(linear.vector)
                if term.is_start and before is not None:
                    vector = vector - linear.rows(before[0]) @ before[1]
                read = linear.reads[0]
                slopes = {k: np.asarray(v) for k, v in read.slopes.items()}
                pieces.append(_Piece(linear.rows(space), vector, np.asarray(read.points), slopes))
        inner = pieces[0].height
        matrix = scipy.sparse.vstack([p.matrix * p.weight(inner) for p in pieces]).tocsr()
        right = np.concatenate([p.vector * p.weight(inner) for p in pieces])
        if not isinstance(self.statement.domain, Box):
            held_rows = held(space, pieces[0].points, matrix)
            matrix = scipy.sparse.vstack([matrix, held_rows]).tocsr()
            right = np.concatenate([right, np.zeros(held_rows.shape[0])])
        least = Least.of(matrix)
        unknown = least.solve(-right)
        rest = right + matrix @ unknown
        points, values = map(np.asarray, self.sizes(part, jax.random.fold_in(key, 1000)))
        zero = (0,) * points.shape[1]
        every = [space.values(points, zero, f) for f in range(space.fields)]
        error = np.stack([v @ unknown for v in every], axis=1)
        stacked = scipy.sparse.vstack(every).tocsr() / math.sqrt(len(points))
        size = float(np.linalg.norm(right))
        return Found(
            unknown,
            np.mean(error**2, axis=0),
            np.mean((values + error) ** 2, axis=0),
            points[np.argmax(np.sum(error**2, axis=1))],
            float(np.linalg.norm(rest)) / size if size else 0.0,
            least.weakest(stacked),
            self._natural(pieces[0]),
            float(np.sqrt(np.mean(pieces[0].vector ** 2))),
        )

    def _natural(self, equation: _Piece) -> float:
        """The size of the terms of the equation for waves of a few radians across the domain."""
        points, slopes = equation.points, equation.slopes
        total = 0.0
        for index, slope in slopes.items():
            wave = np.ones(len(points))
            for a, (n, (lower, upper)) in enumerate(
                zip(index, self.statement.domain.bounds, strict=True)
            ):
                rate = 2 / (upper - lower)
                phase = rate * (points[:, a] - lower) + n * np.pi / 2
                wave = wave * rate**n * math.sqrt(2) * np.sin(phase + 0.5)
            total += float(np.sqrt(np.mean((slope * wave[:, None]) ** 2)))
        return total


def held(
    space: Space, points: np.ndarray, matrix: scipy.sparse.csr_array
) -> scipy.sparse.csr_array:
    """Rows that hold splines which lie nearly outside of the domain."""
    inside = np.zeros(matrix.shape[1])
    for field in range(space.fields):
        values = space.values(points, (0,) * points.shape[1], field)
        inside += np.asarray(values.multiply(values).sum(axis=0)).ravel()
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=0)).ravel())
    usual = inside > SLIVER * np.median(inside[inside > 0])
    (slivers,) = np.nonzero(~usual)
    size = HELD * float(np.median(lengths[usual]))
    rows = np.arange(slivers.size)
    shape = (slivers.size, matrix.shape[1])
    return scipy.sparse.csr_array((np.full(slivers.size, size), (rows, slivers)), shape=shape)


class _Piece(NamedTuple):
    matrix: scipy.sparse.csr_array
    vector: np.ndarray
    points: np.ndarray
    slopes: dict[MultiIndex, np.ndarray]

    @property
    def height(self) -> float:
        """The mean length of a row."""
        rows = max(self.matrix.shape[0], 1)
        return float(np.sqrt(self.matrix.multiply(self.matrix).sum() / rows))

    def weight(self, inner: float) -> float:
        """All vectors count alike; conditions, whose rows are shorter, as much as the equation."""
        own = self.height
        return (inner / own if own > 0 else 1.0) / math.sqrt(max(self.vector.size, 1))
