"""The reference of the Burgers equation: the Cole–Hopf formula, by quadrature."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from ..problems.burgers import Burgers
from .reference import reference_for


@reference_for(Burgers, "Cole–Hopf formula, {nodes} Gauss–Hermite nodes", nodes=256)
def burgers(problem: Burgers, axes: dict[str, np.ndarray], nodes: int) -> Any:
    """``u = −∫ sin πy f(y) e^{−η²/4νt} dη / ∫ f(y) e^{−η²/4νt} dη``, ``y = x − η``.

    ``f(y) = exp(−cos πy / 2πν)``, divided by its largest value so that nothing overflows.
    """
    z, weights = scipy.special.roots_hermite(nodes)
    x = axes["x"]
    values = np.empty((axes["t"].size, x.size))
    for i, t in enumerate(axes["t"]):
        y = x[:, None] - np.sqrt(4 * problem.nu * t) * z
        exponent = -np.cos(np.pi * y) / (2 * np.pi * problem.nu)
        f = weights * np.exp(exponent - exponent.max(axis=1, keepdims=True))
        values[i] = -(f * np.sin(np.pi * y)).sum(axis=1) / f.sum(axis=1)
    return {"u": values}
