"""Exponential time differencing with fourth-order Runge–Kutta (Cox–Matthews, Kassam–Trefethen)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Coefficients:
    full: np.ndarray  # exp(hL)
    half: np.ndarray  # exp(hL/2)
    stage: np.ndarray
    first: np.ndarray
    middle: np.ndarray
    last: np.ndarray


def coefficients(linear: np.ndarray, step: float, contour: int = 64) -> Coefficients:
    """The ETDRK4 weights for ``v' = L v + N(v)`` with diagonal ``L``.

    Each weight is a mean over a circle around ``hL``, where the formulas do not cancel. For a
    real ``L`` the mean is real; for a complex one it is kept complex, because dropping its
    imaginary part would make the scheme first order for dispersive equations.
    """
    roots = np.exp(2j * np.pi * (np.arange(contour) + 0.5) / contour)
    z = step * linear[..., None] + roots
    e = np.exp(z)

    def mean(values: np.ndarray) -> np.ndarray:
        result = step * values.mean(axis=-1)
        return result if np.iscomplexobj(linear) else result.real

    return Coefficients(
        full=np.exp(step * linear),
        half=np.exp(step * linear / 2),
        stage=mean((np.exp(z / 2) - 1) / z),
        first=mean((-4 - z + e * (4 - 3 * z + z**2)) / z**3),
        middle=mean((2 + z + e * (z - 2)) / z**3),
        last=mean((-4 - 3 * z - z**2 + e * (4 - z)) / z**3),
    )


def integrate(
    linear: np.ndarray,
    nonlinear: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    duration: float,
    steps: int,
    saves: int,
) -> np.ndarray:
    """``saves + 1`` equispaced states from the start to the end, the start included."""
    if steps % saves:
        raise ValueError(f"{steps} steps cannot be saved {saves} times at equal distances")
    c = coefficients(linear, duration / steps)
    v, states = start, [start]
    for i in range(1, steps + 1):
        n0 = nonlinear(v)
        a = c.half * v + c.stage * n0
        na = nonlinear(a)
        b = c.half * v + c.stage * na
        nb = nonlinear(b)
        d = c.half * a + c.stage * (2 * nb - n0)
        v = c.full * v + c.first * n0 + 2 * c.middle * (na + nb) + c.last * nonlinear(d)
        if i % (steps // saves) == 0:
            states.append(v)
    return np.array(states)


def integrate_to(
    linear: np.ndarray,
    nonlinear: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    times: np.ndarray,
    steps: int,
) -> np.ndarray:
    """The states at equispaced times, with at least so many steps in all."""
    saves = times.size - 1
    return integrate(
        linear, nonlinear, start, float(times[-1] - times[0]), -(-steps // saves) * saves, saves
    )
