"""References of the one-dimensional periodic equations with a term u u_x."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problems.korteweg_de_vries import KortewegDeVries
from ..problems.kuramoto_sivashinsky import KuramotoSivashinsky
from ..problems.problem import Problem
from .fourier import Torus, evolve
from .reference import initial_values, reference_for

Axes = dict[str, np.ndarray]
TEXT = "Fourier ETDRK4, {modes} modes, {steps} steps"


@reference_for(KortewegDeVries, TEXT, modes=1024, steps=16_000)
def korteweg_de_vries(problem: KortewegDeVries, axes: Axes, modes: int, steps: int) -> Any:
    torus = Torus(problem.domain.bounds[1:], modes)
    linear = -(problem.delta**2) * torus.derivative() ** 3
    return _with_transport(problem, torus, linear, problem.eta, axes, steps)


@reference_for(KuramotoSivashinsky, TEXT, modes=1024, steps=40_000)
def kuramoto_sivashinsky(problem: KuramotoSivashinsky, axes: Axes, modes: int, steps: int) -> Any:
    torus = Torus(problem.domain.bounds[1:], modes)
    linear = -problem.beta * torus.laplacian - problem.gamma * torus.laplacian**2
    return _with_transport(problem, torus, linear, problem.alpha, axes, steps)


def _with_transport(
    problem: Problem, torus: Torus, linear: np.ndarray, speed: float, axes: Axes, steps: int
) -> Any:
    """``u_t + speed · u u_x = L u``, the nonlinear term in conservation form."""
    half = -0.5 * speed * torus.derivative()

    def transport(spectrum: np.ndarray) -> np.ndarray:
        return half * torus.to_spectrum(torus.to_fields(spectrum) ** 2)

    x = torus.points()
    points = np.concatenate([np.full_like(x, axes["t"][0]), x], axis=-1)
    start = torus.to_spectrum(initial_values(problem, points)["u"])
    return {"u": evolve(torus, linear, transport, start, axes["t"], steps, axes["x"].size)}
