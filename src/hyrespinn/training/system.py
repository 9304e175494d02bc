"""The loss of a problem on some points, as optimisers see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import equinox as eqx
import jax
import numpy as np
from jax import Array

from ..algebra import Columns, NormalEquations, Triangle
from ..losses.context import Context
from ..losses.jacobian import linearised, pulled, weighted_rows
from ..losses.normal import normal_equations, triangle
from ..losses.objective import Objective, SampleSet
from ..models.linear_part import linear_mask
from ..models.parameters import trained_shapes
from ..optim.optimiser import Linearised, Preconditioner, Sketch
from .circulant import check_lattice, circulant_preconditioner


@dataclass(frozen=True)
class LossSystem:
    """A :class:`~hyrespinn.optim.optimiser.System` made of an objective, its points and weights.

    ``key`` is for random sketches.
    """

    objective: Objective
    samples: SampleSet
    context: Context
    key: Array

    @cached_property
    def _both(self) -> Callable[[Array], tuple[Array, Array]]:
        return self.objective.value_and_grad(self.samples, self.context)

    def value(self, theta: Array) -> Array:
        return self.objective.value(theta, self.samples, self.context)

    def value_and_grad(self, theta: Array) -> tuple[Array, Array]:
        return self._both(theta)

    def rows(self, theta: Array) -> Array:
        return weighted_rows(self.objective, theta, self.samples, self.context)

    def pull(self, theta: Array, vector: Array) -> Array:
        return pulled(self.objective, theta, self.samples, self.context, vector)

    def linearise(self, theta: Array, sketch: Sketch | None = None) -> Linearised:
        if sketch is None:
            return Linearised(*linearised(self.objective, theta, self.samples, self.context))
        drawn = jax.random.fold_in(jax.random.fold_in(self.key, 2), sketch.step)
        found = linearised(
            self.objective, theta, self.samples, self.context, sketch=sketch.rows, key=drawn
        )
        return Linearised(*found)

    def normal_equations(self, theta: Array, columns: Columns | None = None) -> NormalEquations:
        return normal_equations(self.objective, theta, self.samples, self.context, columns)

    def triangle(self, theta: Array, columns: Columns | None = None) -> Triangle:
        return triangle(self.objective, theta, self.samples, self.context, columns)

    def draw_columns(self, count: int, theta: Array, step: Array) -> Columns:
        key = jax.random.fold_in(jax.random.fold_in(self.key, 3), step)
        return Columns.draw(key, theta.size, count, theta.dtype)

    def check_preconditioner(self, theta: Array) -> None:
        check_lattice(self.objective, theta)

    def precondition(self, theta: Array) -> Preconditioner:
        return circulant_preconditioner(self.objective, theta, self.samples, self.context)

    def linear_parameters(self, theta: Array) -> np.ndarray:  # type: ignore[explicit-any]
        return linear_mask(self.objective.assemble, theta)

    def shapes(self, theta: Array) -> Sequence[tuple[int, ...]]:
        return trained_shapes(eqx.filter_eval_shape(self.objective.assemble, theta))
