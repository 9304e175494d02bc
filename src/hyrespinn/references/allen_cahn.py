"""References of the Allen–Cahn problems."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from scipy.fft import dst, idst
from scipy.interpolate import CubicSpline

from ..problems.allen_cahn import AllenCahnDirichlet
from ..problems.fields import Point
from .etdrk4 import integrate
from .imex import imex_euler
from .reference import Reference, error_axes, reference_for, stored_self_convergence

CELLS, STEPS = 2048, 4000


@reference_for(AllenCahnDirichlet)
def allen_cahn_dirichlet(problem: AllenCahnDirichlet) -> Reference:
    return paper(problem) if problem.reference == "paper" else converged(problem)


def _start(problem: AllenCahnDirichlet, x: np.ndarray) -> np.ndarray:
    with jax.enable_x64(True):
        points = jnp.stack([jnp.zeros(x.size), jnp.asarray(x)], axis=1)
        return np.asarray(problem.start(Point(points, problem.domain.coordinates)))


def converged(problem: AllenCahnDirichlet, cells: int = CELLS, steps: int = STEPS) -> Reference:
    """Sine-spectral in space (the boundary values are zero), ETDRK4 in time."""
    axes = error_axes(problem)
    x = np.linspace(-1, 1, cells + 1)
    wave = np.pi / 2 * np.arange(1, cells)

    def reaction(v: np.ndarray) -> np.ndarray:
        u = idst(v, type=1)
        return dst(problem.reaction * (u - u**3), type=1)

    start = dst(_start(problem, x)[1:-1], type=1)
    linear = -problem.epsilon * wave**2
    states = integrate(linear, reaction, start, 1.0, steps, axes["t"].size - 1)
    values = np.pad(idst(states, type=1, axis=-1), ((0, 0), (1, 1)))
    every = cells // (axes["x"].size - 1)
    default = (cells, steps) == (CELLS, STEPS)
    default &= type(problem)().parameters() == problem.parameters()
    figure = stored_self_convergence("allen-cahn-dirichlet") if default else None
    return Reference(
        axes,
        {"u": values[:, ::every]},
        f"sine-spectral ETDRK4, {cells} cells, {steps} steps",
        figure,
    )


def paper(problem: AllenCahnDirichlet, points: int = 1042, steps: int = 600) -> Reference:
    """The paper's own: IMEX Euler on 1042 points and 600 steps (decision D8)."""
    axes = error_axes(problem)
    x = np.linspace(-1, 1, points)
    states = imex_euler(
        problem.epsilon,
        lambda u: problem.reaction * (u - u**3),
        _start(problem, x),
        x[1] - x[0],
        1.0,
        steps,
    )
    every = steps // (axes["t"].size - 1)
    values = CubicSpline(x, states[::every], axis=1)(axes["x"])
    return Reference(axes, {"u": values}, f"the paper's IMEX Euler, {points} points, {steps} steps")
