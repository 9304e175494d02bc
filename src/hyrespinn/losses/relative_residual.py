"""How well an equation holds, with no reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..derivatives import MultiIndex, coordinates
from ..geometry.sampling import kronecker
from ..metrics import additive_terms
from .context import Context
from .objective import Objective


def relative_residual(
    objective: Objective, parts: Sequence[tuple[Array, Context]], count: int = 4096
) -> dict[str, float]:
    """RMS of each residual over the RMS of its largest term, on fresh points.

    It says how well the equation is satisfied, with no reference; it is not an error. ``parts``
    are the parameters of every window of time, with its context; each gets an equal share of the
    points.
    """
    statement = objective.statement
    drawn = statement.domain.interior(
        jax.random.key(987654321), -(-count // len(parts)), kronecker, objective.dtype
    )

    @jax.jit  # once for all windows
    def within(theta: Array, context: Context) -> tuple[Array, dict[MultiIndex, Array]]:
        points = objective.into_window(drawn, context.window)
        series = objective.solution(theta, context)(coordinates(points, statement.closure))
        return points, {index: series[index] for index in statement.closure}

    several = [within(theta, context) for theta, context in parts]
    points, columns = jax.tree.map(lambda *arrays: jnp.concatenate(arrays), *several)

    parameters = parts[0][1].parameters

    def residual_of(name: str) -> Callable[..., Array]:
        return lambda columns, points, own: statement.residuals_with(own)(columns, points)[name]

    def rms(array: Any) -> float:
        return float(np.sqrt(np.mean(np.square(np.asarray(array)))))

    ratios = {}
    for name in statement.residual_names:
        terms = additive_terms(residual_of(name), columns, points, parameters)
        largest = max(rms(term) for term in terms)
        size = rms(sum(terms))
        ratios[name] = size / largest if largest > 0 else size
    return ratios
