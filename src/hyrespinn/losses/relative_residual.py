"""How well an equation holds, with no reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import Array

from ..derivatives import coordinates
from ..geometry.sampling import kronecker
from ..metrics import additive_terms
from ..problems.fields import Point, fields_of
from ..problems.problem import named_residuals
from .objective import Objective


def relative_residual(objective: Objective, theta: Array, count: int = 4096) -> dict[str, float]:
    """RMS of each residual over the RMS of its largest term, on fresh points.

    It says how well the equation is satisfied, with no reference; it is not an error.
    """
    problem, found = objective.problem, objective.anatomy
    domain = problem.domain
    points = domain.interior(jax.random.key(987654321), count, kronecker, objective.dtype)
    series = objective.solution(theta)(coordinates(points, found.closure))
    columns = {index: series[index] for index in found.closure}

    def residual_of(name: str) -> Callable[[Any], Array]:
        def evaluate(columns: Any) -> Array:
            fields = fields_of(columns, problem.fields, domain.coordinates, domain.space)
            result = problem.residual(*fields, Point(points, domain.coordinates))
            return named_residuals(result, count)[name]

        return evaluate

    def rms(array: Any) -> float:
        return float(np.sqrt(np.mean(np.square(np.asarray(array)))))

    ratios = {}
    for name in found.residual_names:
        evaluate = residual_of(name)
        largest = max(rms(term) for term in additive_terms(evaluate, columns))
        size = rms(evaluate(columns))
        ratios[name] = size / largest if largest > 0 else size
    return ratios
