"""What a reference is, and where the one of a problem comes from."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import resources

import jax
import jax.numpy as jnp
import numpy as np

from ..metrics import relative_l2, split_components, vector_errors
from ..problems.calls import call
from ..problems.conditions import evaluate
from ..problems.equation import components
from ..problems.fields import Point
from ..problems.problem import Problem, derived_of, exact_fields
from ..problems.statement import state
from . import cache


@dataclass(frozen=True)
class Reference:
    """Field values on the grid that the axes span, time first; not a number outside the domain.

    ``derived`` holds further quantities, such as a flux, with their components on a last axis.
    """

    axes: dict[str, np.ndarray]
    values: dict[str, np.ndarray]
    description: str
    self_convergence: float | None = None
    derived: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def mesh(self) -> np.ndarray:
        """All points of the grid, the coordinates on a last axis."""
        return np.stack(np.meshgrid(*self.axes.values(), indexing="ij"), axis=-1)

    @cached_property
    def inside(self) -> np.ndarray:
        """Which points of the grid lie in the domain."""
        return np.isfinite(next(iter(self.values.values())))

    @property
    def points(self) -> np.ndarray:
        """The grid points in the domain, ``(n, d)``."""
        return self.mesh[self.inside]

    def until(self, time: float) -> Reference:
        """The part of it up to a time."""
        name, times = next(iter(self.axes.items()))
        count = int(np.searchsorted(times, time + 1e-9 * (times[-1] - times[0]), side="right"))
        return replace(
            self,
            axes={**self.axes, name: times[:count]},
            values={k: v[:count] for k, v in self.values.items()},
            derived={k: v[:count] for k, v in self.derived.items()},
        )

    def flat(self) -> dict[str, np.ndarray]:
        """The fields at ``points``."""
        return {name: value[self.inside] for name, value in self.values.items()}

    def errors(
        self, values: Mapping[str, np.ndarray], derived: Mapping[str, np.ndarray]
    ) -> dict[str, float]:
        """The relative ℓ2 errors of fields and derived quantities on the grid, inside the domain.

        Where the reference ends earlier than they do, so do the errors.
        """
        inside, count = self.inside, len(self.inside)
        known = {name: value[inside] for name, value in self.derived.items()}
        found = {name: derived[name][:count][inside] for name in known}
        return {
            **{f: relative_l2(values[f][:count][inside], v) for f, v in self.flat().items()},
            **vector_errors(self.axes, found, known),
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """What ``hyrespinn reference --out`` writes: axes and fields, all by name.

        Where the domain does not fill its bounding box, coordinates and fields are lists of points.
        """
        parts = split_components(self.axes, self.derived)
        if self.inside.all():
            return {**self.axes, **self.values, **parts}
        columns = dict(zip(self.axes, self.points.T, strict=True))
        return {**columns, **{k: v[self.inside] for k, v in {**self.values, **parts}.items()}}


Maker = Callable[..., dict[str, np.ndarray]]


@dataclass(frozen=True)
class Recipe:
    """How a reference is made: ``make(problem, axes, **settings)`` gives the fields on the grid."""

    make: Maker
    description: str
    settings: Mapping[str, int]


REFERENCES: dict[type[Problem], dict[str, Recipe]] = {}
CHOICE = "reference"
"""The parameter of a problem that says which variant is meant."""


def reference_for(
    cls: type[Problem], description: str, variant: str = "converged", **settings: int
) -> Callable[[Maker], Maker]:
    """Declare the function that makes the reference of a problem class, and its resolution.

    Each setting is a resolution: its self-convergence is measured by doubling one after the other
    and adding up the differences. A problem with a parameter ``reference`` chooses the
    variant by it.
    """

    def decorate(maker: Maker) -> Maker:
        REFERENCES.setdefault(cls, {})[variant] = Recipe(maker, description, settings)
        return maker

    return decorate


DEFAULT_GRIDS = {1: 1001, 2: 201, 3: 61, 4: 21}


def error_axes(problem: Problem) -> dict[str, np.ndarray]:
    """The equispaced axes on which errors are measured; periodic ones without their right end."""
    domain = problem.domain
    per_axis = DEFAULT_GRIDS.get(domain.dimension, 11)
    counts = problem.test_grid or (per_axis,) * domain.dimension
    periodic = {c.seam() for c in state(problem).conditions}
    cells = {c for c in domain.space if problem.cell_centers}
    open_axes = tuple(c in periodic | cells for c in domain.coordinates)
    axes = dict(zip(domain.coordinates, domain.grid(counts, open_axes), strict=True))
    for c in cells:
        a, b = domain.bounds[domain.coordinates.index(c)]
        axes[c] = axes[c] + 0.5 * (b - a) / axes[c].size
    return axes


def reference_of(problem: Problem, say: Callable[[str], None] | None = None) -> Reference | None:
    """The registered reference, else the exact solution on the test grid, else none.

    A registered one is kept on disk (:mod:`hyrespinn.references.cache`); ``say`` is told when it
    has to be made.
    """
    recipe = recipe_of(problem)
    if recipe is None:
        return _exact(problem)

    def compute() -> dict[str, np.ndarray]:
        if say is not None:
            text = recipe.description.format(**recipe.settings)
            say(f"making the reference of {problem.name}: {text}")
        return make_reference(problem).values

    values = cache.recall(cache_key(problem, recipe), compute)
    return _described(problem, recipe, values, stored_self_convergence(problem))


def reference_of_the_paper(problem: Problem) -> Reference | None:
    """The paper's own reference, where it is another one than the problem's (decisions D8, D9)."""
    if "paper" not in REFERENCES.get(type(problem), {}) or problem.parameters()[CHOICE] == "paper":
        return None
    return reference_of(type(problem)(**{**problem.parameters(), CHOICE: "paper"}))


def recipe_of(problem: Problem) -> Recipe | None:
    """The recipe of a problem's class, of the variant that the problem asks for."""
    variants = REFERENCES.get(type(problem))
    if variants is None:
        return None
    return variants[getattr(problem, CHOICE, "converged")]


def make_reference(problem: Problem, **settings: int) -> Reference:
    """The registered reference, made afresh, with other settings than the usual ones where given."""
    recipe = recipe_of(problem)
    if recipe is None:
        raise ValueError(f"{problem.name} has no recipe for a reference")
    used = Recipe(recipe.make, recipe.description, {**recipe.settings, **settings})
    values = used.make(problem, error_axes(problem), **used.settings)
    figure = None if settings else stored_self_convergence(problem)
    return _described(problem, used, values, figure)


def _described(
    problem: Problem, recipe: Recipe, values: dict[str, np.ndarray], figure: float | None
) -> Reference:
    text = recipe.description.format(**recipe.settings)
    return Reference(error_axes(problem), values, text, figure)


def cache_key(problem: Problem, recipe: Recipe) -> str:
    """A hash of all that determines a reference: the problem, the grid, the settings, the code."""
    description = {
        "problem": problem.name,
        "parameters": {k: repr(v) for k, v in problem.parameters().items()},
        "domain": repr(problem.domain),
        "axes": {c: [float(a[0]), float(a[-1]), a.size] for c, a in error_axes(problem).items()},
        "settings": dict(recipe.settings),
    }
    modules = (type(problem).__module__, recipe.make.__module__)
    return f"{problem.name}-{cache.digest(description, modules)}"


def initial_values(problem: Problem, points: np.ndarray) -> dict[str, np.ndarray]:
    """What the initial conditions say of each field at points ``(..., d)``, in double precision."""
    with jax.enable_x64(True):
        where = jnp.asarray(points)
        point = Point(where, problem.domain.coordinates)
        return {
            start.field: np.asarray(evaluate(start.value, point, where[..., 0]))
            for start in state(problem).starts
            if not start.derivative
        }


def _exact(problem: Problem) -> Reference | None:
    axes = error_axes(problem)
    mesh = np.stack(np.meshgrid(*axes.values(), indexing="ij"), axis=-1)
    inside = problem.domain.contains(mesh)

    def whole(values: np.ndarray) -> np.ndarray:
        grid = np.full((*inside.shape, *values.shape[1:]), np.nan)
        grid[inside] = values
        return grid

    with jax.enable_x64(True):
        points = jnp.asarray(mesh[inside])
        point = Point(points, problem.domain.coordinates)
        result = call(problem.exact, (point,), "p")
        if result is None:
            return None
        several = result if isinstance(result, (tuple, list)) else (result,)
        values = {
            name: whole(np.broadcast_to(np.asarray(value), len(points)))
            for name, value in zip(problem.fields, several, strict=True)
        }
        reads = state(problem).derived
        derived = {}
        if reads.names:
            fields = exact_fields(problem, point, max(sum(index) for index in reads.all))
            quantities = components(derived_of(problem, fields, point), len(points))
            derived = {n: whole(np.stack(parts, axis=-1)) for n, parts in quantities.items()}
    return Reference(axes, values, "exact solution", derived=derived)


def stored_self_convergence(problem: Problem) -> float | None:
    """The figure that ``python -m hyrespinn.references.self_convergence`` stored for this problem.

    It holds for the problem as it is by default; other parameters were not measured.
    """
    if type(problem)().parameters() != problem.parameters():
        return None
    text = resources.files(__package__).joinpath("self_convergence.json").read_text()
    entry = json.loads(text).get(problem.name)
    return None if entry is None else float(entry["relative_l2"])
