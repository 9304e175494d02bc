"""How much larger a residual is at points that training has never seen."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np
from jax import Array

from .context import Context
from .objective import Objective

SEED = 424242
"""Of a key that training never uses."""


def fresh_gap(
    objective: Objective, parts: Sequence[tuple[Array, Context]], trained: Sequence[float]
) -> float | None:
    """The root mean square of the weighted residual at fresh points over that of the training.

    Args:
        objective: The loss at uniform points.
        parts: The parameters of every window with its context.
        trained: The last loss of each.
    """

    @jax.jit  # once for all windows
    def loss(theta: Array, context: Context, key: Array) -> Array:
        return objective.value(theta, objective.draw(key, context), context)

    key = jax.random.key(SEED)
    fresh = [loss(*part, jax.random.fold_in(key, k)) for k, part in enumerate(parts)]
    before, now = float(np.mean(trained)), float(np.mean(np.asarray(fresh)))
    if not (before > 0 and np.isfinite(now)):
        return None
    return float(np.sqrt(now / before))
