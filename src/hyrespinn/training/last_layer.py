"""Physics-informed initialisation: the last linear layer by least squares, before any training."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array

from ..errors import UserError
from ..losses.context import Context
from ..losses.objective import Objective
from ..losses.terms import Samples
from ..models.linear_part import linear_part

Fit = Literal["initial", "equation"]

# Directions weaker than this, relative to the strongest, are left alone. Features are nearly
# dependent, so they could fit a little more, with weights so large that the first steps of
# training would throw everything about.
CUT = 1e-3
COLUMNS = 8
"""Columns made at once: all of a wide layer's, with third derivatives, take tens of gigabytes."""


def fit_last_layer(
    objective: Objective, theta: Array, context: Context, key: Array, fit: Fit
) -> Array:
    """The parameters with a new last layer; a pure function, to be compiled.

    ``initial``: the fields are, as well as they can be, what they are at the initial time, at
    all times (as in PirateNet's paper). ``equation``: the weighted residuals of equation and
    conditions, linearised in the last layer, are as small as they can be; for a linear problem
    this is the least-squares solution itself.
    """
    if fit == "initial" and not objective.problem.domain.has_time:
        raise UserError(
            "initial_fit=initial needs an initial condition, and this problem has no time; "
            "use initial_fit=equation."
        )
    misfit = _from_start if fit == "initial" else _from_equation
    linear, put = linear_part(objective.assemble, theta)

    def residual(values: Array) -> Array:
        return misfit(objective, put(values), context, key)

    # Only the last layer is differentiated, so the columns cost little more than the residual.
    begin, push = jax.linearize(residual, linear)
    columns = jax.lax.map(push, jnp.eye(linear.size, dtype=linear.dtype), batch_size=COLUMNS)
    change = jnp.linalg.lstsq(columns.T, -begin, rcond=CUT)[0]
    return put(linear + change)


def _from_start(objective: Objective, theta: Array, context: Context, key: Array) -> Array:
    """How far the fields are, at any time, from what they are at the initial time."""
    samples = objective.draw(key, context)
    points = samples["interior"].points
    window = context.window
    begin = objective.problem.domain.bounds[0][0] if window is None else window.start
    values = objective.solution(theta, context)(points)
    at_start = Samples(points.at[:, 0].set(begin))
    return jnp.concatenate(
        [
            values[:, i] - objective.start_value(name, at_start, context)
            for i, name in enumerate(objective.problem.fields)
        ]
    )


def _from_equation(objective: Objective, theta: Array, context: Context, key: Array) -> Array:
    vectors = objective.residuals(theta, objective.draw(key, context), context)
    return jnp.concatenate(
        [jnp.sqrt(context.weights[name] / v.size) * v for name, v in vectors.items()]
    )
