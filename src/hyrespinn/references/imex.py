"""The paper's reference scheme: implicit diffusion, explicit reaction, first order in time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy


def imex_euler(
    diffusion: float,
    reaction: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    spacing: float,
    duration: float,
    steps: int,
) -> np.ndarray:
    """``u_t = ε u_xx + f(u)`` with zero values at both ends; all ``steps + 1`` states."""
    h = duration / steps
    inner = start.size - 2
    ratio = diffusion * h / spacing**2
    bands = np.zeros((2, inner))
    bands[0, 1:] = -ratio
    bands[1] = 1 + 2 * ratio
    states = [start]
    for _ in range(steps):
        u = np.zeros_like(start)
        u[1:-1] = scipy.linalg.solveh_banded(bands, (states[-1] + h * reaction(states[-1]))[1:-1])
        states.append(u)
    return np.array(states)
