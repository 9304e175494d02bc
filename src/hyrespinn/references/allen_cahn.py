"""References of the Allen–Cahn problems."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from ..problems.allen_cahn import AllenCahnDirichlet, AllenCahnPeriodic
from ..problems.problem import Problem
from .etdrk4 import integrate_to
from .fourier import Torus, evolve
from .imex import imex_euler
from .reference import initial_values, reference_for

Axes = dict[str, np.ndarray]


def _start(problem: Problem, x: np.ndarray) -> np.ndarray:
    t = problem.domain.bounds[0][0]
    return initial_values(problem, np.stack([np.full_like(x, t), x], axis=-1))["u"]


@reference_for(
    AllenCahnDirichlet, "sine-spectral ETDRK4, {cells} cells, {steps} steps", cells=2048, steps=4000
)
def dirichlet(problem: AllenCahnDirichlet, axes: Axes, cells: int, steps: int) -> Any:
    """Sine-spectral in space (the boundary values are zero), ETDRK4 in time."""
    x = np.linspace(-1, 1, cells + 1)
    wave = np.pi / 2 * np.arange(1, cells)

    def reaction(v: np.ndarray) -> np.ndarray:
        u = scipy.fft.idst(v, type=1)
        return scipy.fft.dst(problem.reaction * (u - u**3), type=1)

    start = scipy.fft.dst(_start(problem, x)[1:-1], type=1)
    times, count = axes["t"], axes["x"].size - 1
    states = integrate_to(-problem.epsilon * wave**2, reaction, start, times, steps)
    every = -(-cells // count)
    fine = np.pad(states, ((0, 0), (0, every * count - cells))) * (every * count / cells)
    values = np.pad(scipy.fft.idst(fine, type=1, axis=-1), ((0, 0), (1, 1)))
    return {"u": values[:, ::every]}


@reference_for(
    AllenCahnDirichlet,
    "the paper's IMEX Euler, {points} points, {steps} steps",
    variant="paper",
    points=1042,
    steps=600,
)
def dirichlet_of_the_paper(problem: AllenCahnDirichlet, axes: Axes, points: int, steps: int) -> Any:
    """The paper's own (D8 in docs/differences.md)."""
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
    return {"u": scipy.interpolate.CubicSpline(x, states[::every], axis=1)(axes["x"])}


PERIODIC = "Fourier ETDRK4, {modes} modes, {steps} steps"


@reference_for(
    AllenCahnPeriodic, PERIODIC + ", initial data projected from {samples} points",
    modes=4096, steps=4000, samples=2**19,
)  # fmt: skip
def periodic(problem: AllenCahnPeriodic, axes: Axes, modes: int, steps: int, samples: int) -> Any:
    """The kink of the initial data at the seam enters through finely sampled coefficients alone."""
    values = _periodic(problem, axes, modes, steps, samples // modes)
    values[0] = _start(problem, axes["x"])  # a truncated series rounds the kink off
    return {"u": values}


@reference_for(AllenCahnPeriodic, f"the paper's {PERIODIC}", variant="paper", modes=512, steps=2000)
def periodic_of_the_paper(problem: AllenCahnPeriodic, axes: Axes, modes: int, steps: int) -> Any:
    """The paper's own (D9 in docs/differences.md)."""
    return {"u": _periodic(problem, axes, modes, steps, 1)}


def _periodic(
    problem: AllenCahnPeriodic, axes: Axes, modes: int, steps: int, finer: int
) -> np.ndarray:
    torus = Torus(problem.domain.bounds[1:], modes)

    def reaction(spectrum: np.ndarray) -> np.ndarray:
        u = torus.to_fields(spectrum)
        return torus.to_spectrum(problem.reaction * (u - u**3))

    start = torus.project(lambda x: _start(problem, x[..., 0]), finer)
    linear = problem.epsilon * torus.laplacian
    return evolve(torus, linear, reaction, start, axes["t"], steps, axes["x"].size)
