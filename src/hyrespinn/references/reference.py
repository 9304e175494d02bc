"""What a reference is, and where the one of a problem comes from."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..problems.conditions import Periodic
from ..problems.fields import Point
from ..problems.problem import Problem


@dataclass(frozen=True)
class Reference:
    """Field values on the grid that the axes span, time first."""

    axes: dict[str, np.ndarray]
    values: dict[str, np.ndarray]
    description: str
    self_convergence: float | None = None

    @property
    def points(self) -> np.ndarray:
        """All grid points ``(n, d)``."""
        mesh = np.meshgrid(*self.axes.values(), indexing="ij")
        return np.stack([m.ravel() for m in mesh], axis=1)

    def arrays(self) -> dict[str, np.ndarray]:
        """Axes and fields by name, as ``hyrespinn reference --out`` writes them."""
        return {**self.axes, **self.values}


Maker = Callable[[Any], Reference]
REFERENCES: dict[type[Problem], Maker] = {}


def reference_for(cls: type[Problem]) -> Callable[[Maker], Maker]:
    """Declare the function that makes the reference of a problem class."""

    def decorate(maker: Maker) -> Maker:
        REFERENCES[cls] = maker
        return maker

    return decorate


DEFAULT_GRIDS = {1: 1001, 2: 201, 3: 61, 4: 21}


def error_axes(problem: Problem) -> dict[str, np.ndarray]:
    """The equispaced axes on which errors are measured; periodic ones without their right end."""
    domain = problem.domain
    per_axis = DEFAULT_GRIDS.get(domain.dimension, 11)
    counts = problem.test_grid or (per_axis,) * domain.dimension
    periodic = {c.axis for c in problem.conditions() if isinstance(c, Periodic)}
    open_axes = tuple(c in periodic for c in domain.coordinates)
    return dict(zip(domain.coordinates, domain.grid(counts, open_axes), strict=True))


def reference_of(problem: Problem) -> Reference | None:
    """The registered reference, else the exact solution on the test grid, else none."""
    maker = REFERENCES.get(type(problem))
    if maker is not None:
        return maker(problem)
    return _exact(problem)


def _exact(problem: Problem) -> Reference | None:
    axes = error_axes(problem)
    with jax.enable_x64(True):
        mesh = np.stack(np.meshgrid(*axes.values(), indexing="ij"), axis=-1)
        result = problem.exact(Point(jnp.asarray(mesh), problem.domain.coordinates))
        if result is None:
            return None
        several = result if isinstance(result, (tuple, list)) else (result,)
        values = {
            name: np.broadcast_to(np.asarray(value), mesh.shape[:-1])
            for name, value in zip(problem.fields, several, strict=True)
        }
    return Reference(axes, values, "exact solution")


def stored_self_convergence(key: str) -> float | None:
    """The figure that ``python -m hyrespinn.references.self_convergence`` stored for this key."""
    text = resources.files(__package__).joinpath("self_convergence.json").read_text()
    entry = json.loads(text).get(key)
    return None if entry is None else float(entry["relative_l2"])
