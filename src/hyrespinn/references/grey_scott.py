"""The reference of the Grey–Scott system."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problems.grey_scott import GreyScott
from .fourier import Torus, evolve
from .reference import initial_values, reference_for


@reference_for(
    GreyScott,
    "Fourier ETDRK4, {modes}×{modes} modes, {steps} steps, initial data from {samples}² points",
    modes=200,
    steps=8000,
    samples=1600,
)
def grey_scott(
    problem: GreyScott, axes: dict[str, np.ndarray], modes: int, steps: int, samples: int
) -> Any:
    torus = Torus(problem.domain.bounds[1:], modes)

    def initial(x: np.ndarray) -> np.ndarray:
        t = np.full_like(x[..., :1], axes["t"][0])
        values = initial_values(problem, np.concatenate([t, x], axis=-1))
        return np.stack([values["u"], values["v"]])

    # Decay is linear, so it belongs to the part that is integrated exactly.
    linear = np.stack(
        [
            problem.epsilon_u * torus.laplacian - problem.feed,
            problem.epsilon_v * torus.laplacian - problem.kill,
        ]
    )

    def reaction(spectrum: np.ndarray) -> np.ndarray:
        u, v = torus.to_fields(spectrum)
        exchange = problem.reaction * u * v**2
        return torus.to_spectrum(np.stack([problem.feed - exchange, exchange]))

    start = torus.project(initial, samples // modes)
    states = evolve(torus, linear, reaction, start, axes["t"], steps, axes["x"].size)
    grid = np.stack(np.meshgrid(axes["x"], axes["y"], indexing="ij"), axis=-1)
    states[0] = initial(grid)  # a truncated series oscillates where the data jump at the seam
    return {"u": states[:, 0], "v": states[:, 1]}
