"""The error of a solution that is periodic in space: the defect equation on waves, slab by slab of time.

With the residual ``r`` of a solution ``u`` and the linearised equation ``L = ∂r/∂u`` the error ``e``
(what is to be added to ``u``) satisfies ``L e = −r`` to first order, begins where the initial condition
is missed, and goes on from slab to slab with all of its growth. Here ``e`` is a polynomial of Legendre
in time and a sum of waves in space, richer than the kernels were, and ``L e = −r`` holds at Radau's
points of time and at evenly spaced points of space, few of which were trained at. With mean coefficients
every wave would be by itself; the small matrices of that precondition GMRES.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.polynomial import legendre

from ..derivatives import MultiIndex
from ..geometry.lattice import radau_points
from ..losses.context import Context
from ..losses.objective import Objective
from ..problems.conditions import Samples, Start
from ..problems.conditions.condition import values_at
from ..problems.reflection import Reflection
from .part import Part

TOLERANCE, ITERATIONS = 1e-3, 30
"""Where GMRES ends. What is lost in one slab is lost for all that come after it, and there are hundreds."""


class Sizes(NamedTuple):
    """Mean squares on a slab, by field: of the error, and of the solution without it."""

    error: Array
    solution: Array
    tail: Array  # the share of the error's square in the finest third of waves
    worst: Array  # the point where the error is largest


@dataclass(frozen=True)
class Waves:
    """``levels`` polynomials in time and waves on ``counts`` places of space."""

    objective: Objective
    levels: int
    counts: tuple[int, ...]
    reflections: tuple[Reflection, ...] = ()
    """The walls in which the solution is reflected, on twice the length that the counts are for."""
    on_grid: bool = False
    """Whether the solution is best evaluated on all points of a grid together."""

    def __post_init__(self) -> None:
        assert self.objective.statement.has_time

    @property
    def _starts(self) -> tuple[Start, ...]:
        return self.objective.statement.starts

    @property
    def _times(self) -> np.ndarray:
        """Of the equations, in (−1, 1]: as many as make the number of equations that of unknowns."""
        return 2 * radau_points(self.levels - self.objective.statement.time_order) - 1

    def _basis(self, times: np.ndarray, order: int) -> np.ndarray:
        """Derivatives of the polynomials at times in [−1, 1]: ``(times, levels)``."""
        unit = np.eye(self.levels)
        columns = [legendre.legval(times, legendre.legder(row, order)) for row in unit]
        return np.stack([np.broadcast_to(c, times.shape) for c in columns], axis=1)

    def _numbers(self) -> list[np.ndarray]:
        """The wave numbers along each coordinate, those of real transforms along the last."""
        bounds = self.objective.statement.domain.bounds[1:]
        found = []
        for a, ((lower, upper), n) in enumerate(zip(bounds, self.counts, strict=True)):
            whole = np.fft.fftfreq(n, 1 / n)
            chosen = np.fft.rfftfreq(n, 1 / n) if a == len(self.counts) - 1 else whole
            found.append(2 * np.pi / (upper - lower) * chosen)
        return found

    def _symbol(self, index: Sequence[int]) -> np.ndarray:
        """``Π (i k_a)^n_a`` on all waves; what has no sign (half of the places) has no odd slope."""
        product = np.ones((1,) * len(self.counts), complex)
        for a, (n, k) in enumerate(zip(index, self._numbers(), strict=True)):
            factor = (1j * k) ** n
            if n % 2 and self.counts[a] % 2 == 0:
                factor = np.where(np.isclose(np.abs(k), np.abs(k).max()), 0, factor)
            shape = [1] * len(self.counts)
            shape[a] = -1
            product = product * factor.reshape(shape)
        return product

    @property
    def _axes(self) -> tuple[int, ...]:
        return tuple(range(1, 1 + len(self.counts)))

    def _derivative(
        self, values: Array, index: MultiIndex, times: np.ndarray, rate: Array
    ) -> Array:
        """Of ``(levels, *space, fields)`` at times: ``(times, *space, fields)``."""
        basis = jnp.asarray(self._basis(times, index[0])) * rate ** index[0]
        moved = values
        if any(index[1:]):
            waves = jnp.fft.rfftn(values, axes=self._axes)
            waves = waves * jnp.asarray(self._symbol(index[1:]))[None, ..., None]
            moved = jnp.fft.irfftn(waves, s=self.counts, axes=self._axes)
        return jnp.tensordot(basis, moved, axes=(1, 0))

    def _points(self, slab: Part, times: np.ndarray) -> Array:
        """A grid of these times and the places of space: ``(n, d)``."""
        bounds = self.objective.statement.domain.bounds[1:]
        along = [
            a + (b - a) * np.arange(n) / n for (a, b), n in zip(bounds, self.counts, strict=True)
        ]
        moments = slab.start + slab.length * jnp.asarray(0.5 + 0.5 * times)
        mesh = jnp.meshgrid(moments, *map(jnp.asarray, along), indexing="ij")
        return jnp.stack([m.reshape(-1) for m in mesh], axis=1)

    def _values(
        self,
        theta: Array,
        context: Context,
        points: Array,
        times: int,
        indices: Sequence[MultiIndex],
    ) -> dict[MultiIndex, Array]:
        grid = (times, *self.counts) if self.on_grid else ()
        return values_at(self.objective.solution(theta, context), points, indices, grid)

    def begin(self) -> tuple[Array, Array]:
        """No error so far, and no preconditioner yet."""
        fields = len(self.objective.statement.fields)
        size = self.levels * fields
        waves = math.prod(self.counts[:-1]) * (self.counts[-1] // 2 + 1)
        starts = jnp.zeros((len(self._starts), *self.counts))
        return starts, jnp.zeros((waves, size, size), complex)

    def step(
        self, starts: Array, factors: Array, slab: Part, renew: Array
    ) -> tuple[Array, Array, Sizes]:
        """The error on a slab that begins with ``starts``, one array for each initial condition."""
        statement = self.objective.statement
        times, rate = self._times, 2 / slab.length
        points = self._points(slab, times)
        values = self._values(slab.theta, slab.context, points, len(times), statement.requested)
        residuals = statement.residuals_with(slab.context.parameters)
        vectors, pull = jax.vjp(lambda v: residuals(v, points), values)
        shape = (len(times), *self.counts)
        slopes: list[dict[MultiIndex, Array]] = []
        for name in vectors:
            ones = {
                n: (jnp.ones_like if n == name else jnp.zeros_like)(v) for n, v in vectors.items()
            }
            slopes.append({k: s.reshape(*shape, -1) for k, s in pull(ones)[0].items()})
        scales = [_scale(slope, slab.length) for slope in slopes]
        right = [v.reshape(shape) / s for v, s in zip(vectors.values(), scales, strict=True)]
        missed = self._missed(slab) - starts
        fields = len(statement.fields)
        first = np.array([-1.0])

        def rows(unknown: Array) -> Array:
            error = unknown.reshape(self.levels, *self.counts, fields)
            parts = {k: self._derivative(error, k, times, rate) for k in statement.requested}
            equations = [
                sum((jnp.sum(slope[k] * parts[k], -1) for k in parts), start=jnp.zeros(())) / scale
                for slope, scale in zip(slopes, scales, strict=True)
            ]
            begins = [
                self._derivative(error, (s.index[0], *(0 for _ in self.counts)), first, rate)[
                    0, ..., statement.fields.index(s.field)
                ]
                / rate ** s.index[0]
                for s in self._starts
            ]
            return jnp.concatenate([v.reshape(-1) for v in (*equations, *begins)])

        target = jnp.concatenate(
            [
                *(v.reshape(-1) for v in right),
                *(
                    (m / rate ** s.index[0]).reshape(-1)
                    for m, s in zip(missed, self._starts, strict=True)
                ),
            ]
        )
        factors = jax.lax.cond(renew, lambda: self._factors(slopes, scales, rate), lambda: factors)
        error, _ = jax.scipy.sparse.linalg.gmres(
            rows,
            -target,
            M=lambda vector: self._applied(factors, vector),
            tol=TOLERANCE,
            restart=ITERATIONS,
            maxiter=1,
            solve_method="incremental",
        )
        error = error.reshape(self.levels, *self.counts, fields)
        last = np.array([1.0])
        ends = [
            self._derivative(error, (s.index[0], *(0 for _ in self.counts)), last, rate)[
                0, ..., statement.fields.index(s.field)
            ]
            for s in self._starts
        ]
        zero = (0,) * (1 + len(self.counts))
        inside = self._shown(self._derivative(error, zero, times, rate))
        solution = (
            values[zero]
            if zero in values
            else self._values(slab.theta, slab.context, points, len(times), [zero])[zero]
        )
        total = jnp.sum(inside**2, -1).reshape(-1)
        sizes = Sizes(
            jnp.mean(inside.reshape(-1, fields) ** 2, 0),
            jnp.mean((solution + inside.reshape(-1, fields)) ** 2, 0),
            self._tail(inside),
            points[jnp.argmax(total)],
        )
        return jnp.stack(ends), factors, sizes

    def _shown(self, error: Array) -> Array:
        """What of an error is seen between reflecting walls: a solution is shown odd or even."""
        for reflection in self.reflections:
            image = jnp.roll(jnp.flip(error, reflection.axis), 1, reflection.axis)
            error = 0.5 * (error + reflection.parity * image)
        return error

    def _missed(self, slab: Part) -> Array:
        """By how much the solution of a slab misses where it should begin."""
        points = self._points(slab, np.array([-1.0]))
        samples = Samples(points)
        found = []
        for start in self._starts:
            grid = (1, *self.counts) if self.on_grid else ()
            now = start.observe(self.objective.solution(slab.theta, slab.context), samples, grid)
            before = start.observe(
                self.objective.solution(slab.theta_before, slab.context_before), samples, grid
            )
            given = jnp.where(slab.is_first, start.given(samples), before)
            found.append((now - given).reshape(self.counts))
        return jnp.stack(found)

    def _factors(
        self, slopes: list[dict[MultiIndex, Array]], scales: list[Array], rate: Array
    ) -> Array:
        """``R⁻¹`` of the matrix of every wave, with coefficients that are means over space."""
        fields = len(self.objective.statement.fields)
        times = self._times
        space = tuple(range(1, 1 + len(self.counts)))
        blocks = []
        for slope, scale in zip(slopes, scales, strict=True):
            block = jnp.zeros(())
            for index, coefficient in slope.items():
                mean = jnp.mean(coefficient, space) / scale  # (times, fields)
                basis = jnp.asarray(self._basis(times, index[0])) * rate ** index[0]
                small = jnp.einsum("qf,qk->qkf", mean, basis).reshape(len(times), -1)
                symbol = jnp.asarray(np.broadcast_to(self._symbol(index[1:]), self._half)).reshape(
                    -1
                )
                block = block + symbol[:, None, None] * small
            blocks.append(block)
        for start in self._starts:
            row = np.zeros((1, self.levels, fields))
            row[0, :, self.objective.statement.fields.index(start.field)] = self._basis(
                np.array([-1.0]), start.index[0]
            )[0]
            blocks.append(
                jnp.broadcast_to(row.reshape(1, 1, -1), (*blocks[0].shape[:1], 1, row.size))
            )
        return jnp.linalg.inv(jnp.concatenate(blocks, axis=1))

    @property
    def _half(self) -> tuple[int, ...]:
        return (*self.counts[:-1], self.counts[-1] // 2 + 1)

    def _applied(self, factors: Array, vector: Array) -> Array:
        """The unknowns that have these rows, with mean coefficients."""
        waves = jnp.fft.rfftn(vector.reshape(-1, *self.counts), axes=self._axes)
        waves = jnp.moveaxis(waves, 0, -1).reshape(-1, waves.shape[0])
        mixed = jnp.einsum("kij,kj->ki", factors, waves).reshape(*self._half, self.levels, -1)
        back = jnp.fft.irfftn(jnp.moveaxis(mixed, -2, 0), s=self.counts, axes=self._axes)
        return back.reshape(-1)

    def _tail(self, error: Array) -> Array:
        """The share of the square in waves of the finest third along any coordinate."""
        waves = jnp.abs(jnp.fft.rfftn(error, axes=self._axes)) ** 2
        fine = np.zeros(self._half, bool)
        for a, k in enumerate(self._numbers()):
            shape = [1] * len(self.counts)
            shape[a] = -1
            fine |= (np.abs(k) > 2 / 3 * np.abs(k).max()).reshape(shape)
        total = jnp.sum(waves)
        return jnp.sum(waves * fine[None, ..., None]) / jnp.where(total > 0, total, 1)


def _scale(slope: dict[MultiIndex, Array], length: Array) -> Array:
    """By which an equation is divided, so that it counts as an initial condition does."""
    sizes = [
        jnp.sqrt(jnp.mean(s**2)) / length ** index[0] for index, s in slope.items() if index[0]
    ]
    return jnp.maximum(sum(sizes, start=jnp.zeros(())), jnp.finfo(float).tiny)
