"""One statement of the physics: every reference satisfies its problem's equation and conditions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn import problems
from hyrespinn.derivatives import lift
from hyrespinn.geometry import TimeBox
from hyrespinn.geometry.sampling import kronecker
from hyrespinn.losses.objective import Objective
from hyrespinn.losses.terms import Counts, Sampling, Weights
from hyrespinn.metrics import additive_terms
from hyrespinn.problems import PROBLEMS, Dirichlet, Initial, Periodic
from hyrespinn.problems.boundary import Penalty
from hyrespinn.problems.equation import named_residuals
from hyrespinn.problems.fields import Field, Point
from hyrespinn.problems.statement import state
from hyrespinn.references import error_axes, reference_of
from hyrespinn.references.reference import REFERENCES
from scipy.interpolate import make_interp_spline

from helpers import some_slow

pytestmark = pytest.mark.usefixtures("x64")


def has_exact(problem):
    point = Point(jnp.zeros((1, problem.domain.dimension)), problem.domain.coordinates)
    return problem.exact(point) is not None


def turning(p):
    """A full tensor that varies in space."""
    return [[2 + p.x, 0.5 * p.y], [0.5 * p.y, 1 + p.x**2]]


def layered(p):
    return [[2.0, 0.3 * p.z, 0.0], [0.3 * p.z, 1 + p.x**2, p.y / 4], [0.0, p.y / 4, 3.0]]


EXACT = {name: cls() for name, cls in PROBLEMS.items() if has_exact(cls())} | {
    "anisotropic": problems.Darcy2DNeumann(mu=((2.0, 0.5), (0.5, 1.0)), inner=0.5, outer=2.0),
    "varying": problems.Darcy2DNeumann(mu=turning),
    "varying dirichlet": problems.Darcy2DDirichlet(mu=lambda p: 1 + p.x**2 + p.y**2),
    "varying 3d": problems.Darcy3DNeumann(mu=layered),
    "three strips": problems.DarcyFiveStrip(mu=(3.0, 1.0, 5.0)),
    "one strip": problems.DarcyFiveStrip(mu=(2.0,)),
    "slow advection": problems.Advection(speed=3.0),
}


def exact_solution(problem):
    """The exact solution in the place of a network: coordinates to fields."""

    def values(points):
        result = problem.exact(Point(points, problem.domain.coordinates))
        several = result if isinstance(result, tuple) else (result,)
        return jnp.stack(several, axis=-1)

    return lambda x: lift(values, x)


def objective_of(problem, points=200):
    return Objective(
        state(problem),
        lambda theta: None,
        Penalty(),
        sampling=Sampling(Counts(points, 50, 50), kronecker, jnp.dtype("float64")),
        weights=Weights(),
    )


SOME = {"advection", "darcy-2d-dirichlet", "three strips", "anisotropic", "wave-1d"}
"""With every kind of condition among them that the built-in problems have."""


@pytest.mark.parametrize("name", some_slow(EXACT, EXACT.keys() - SOME))
def test_an_exact_solution_satisfies_everything(name):
    """Interior residual and every condition, all as terms of the loss, at fresh points."""
    problem = EXACT[name]
    # A mean is taken by quadrature, whose nodes are as many as the interior has points.
    objective = objective_of(problem, 4096)
    samples = objective.draw(jax.random.key(0))
    assert len(objective.terms) >= 2
    for term in objective.terms:
        for vector in term.residuals(exact_solution(problem), samples[term.name]).values():
            np.testing.assert_allclose(vector, 0, atol=1e-9)


@pytest.mark.parametrize("name", some_slow(EXACT, EXACT.keys() - SOME))
def test_another_function_does_not(name):
    """The residual or a condition tells the solution from the same with a bump added."""
    problem = EXACT[name]
    exact = exact_solution(problem)

    def other(x):
        return exact(x) + lift(lambda a: 0.1 * jnp.sin(a).prod(axis=-1, keepdims=True), x)

    objective = objective_of(problem)
    samples = objective.draw(jax.random.key(0))
    for term in objective.terms:
        if term.name not in ("meanvalue", "initial"):  # which the bump may leave as they are
            for vector in term.residuals(other, samples[term.name]).values():
                assert np.abs(vector).max() > 1e-3 or "periodic" in term.name


# Their references take the better part of a minute.
LONG = dict.fromkeys(("grey-scott", "kuramoto-sivashinsky"), pytest.mark.slow)


@pytest.mark.parametrize("name", [pytest.param(n, marks=LONG.get(n, ())) for n in PROBLEMS])
def test_every_problem_is_complete(name):
    """A description, a reference of its own fields on its test grid, and a derivable residual."""
    problem = PROBLEMS[name]()
    assert problem.name == name
    assert problem.description
    assert (type(problem).__doc__ or "").strip()
    reference = reference_of(problem)
    assert reference is not None
    assert tuple(axis.size for axis in reference.axes.values()) == problem.test_grid
    assert set(reference.values) == set(problem.fields)
    assert set(reference.derived) == set(state(problem).derived.names)
    inside = problem.domain.contains(reference.mesh)
    np.testing.assert_array_equal(reference.inside, inside)
    for values in (*reference.values.values(), *reference.derived.values()):
        assert values.shape[: inside.ndim] == problem.test_grid
        assert np.isfinite(values[inside]).all()
        assert np.isnan(values[~inside]).all()
    assert state(problem).order >= 1


# References without a formula: their residual vanishes as the grid that shows them is refined.


def grid_derivative(values, axes, periodic, index):
    """A derivative of values on a grid: Fourier on periodic axes, splines of degree seven else."""
    for axis, (name, order) in enumerate(zip(axes, index, strict=True)):
        x = axes[name]
        if order and name in periodic:
            k = 2j * np.pi * np.fft.rfftfreq(x.size, x[1] - x[0])
            factor = (k**order).reshape([-1 if i == axis else 1 for i in range(values.ndim)])
            values = np.fft.irfft(factor * np.fft.rfft(values, axis=axis), x.size, axis=axis)
        elif order:
            values = make_interp_spline(x, values, 7, axis=axis).derivative(order)(x)
    return values


def relative_residuals(problem, axes, values, margin):
    """RMS of each residual over that of its largest term, for t after ``margin``."""
    periodic = {c.axis for c in problem.conditions() if isinstance(c, Periodic)}
    mesh = jnp.asarray(np.stack(np.meshgrid(*axes.values(), indexing="ij"), axis=-1))
    late = np.flatnonzero(axes["t"] >= margin)
    # The spline is less exact at its ends in time, and where it meets a boundary.
    keep = np.zeros(mesh.shape[:-1], dtype=bool)
    keep[late[4] : -4] = True
    if "x" not in periodic:
        keep[:, :8] = keep[:, -8:] = False
    where = mesh[keep]

    def residuals(columns):
        fields = [
            Field(
                lambda index, f=f: columns[f, index],
                problem.domain.coordinates,
                problem.domain.space,
            )
            for f in problem.fields
        ]
        return named_residuals(
            problem.residual(*fields, Point(where, problem.domain.coordinates)), len(where)
        )

    columns = {
        (f, index): jnp.asarray(grid_derivative(values[f], axes, periodic, index)[keep])
        for f in problem.fields
        for index in state(problem).requested
    }

    def rms(array):
        return float(np.sqrt(np.mean(np.square(np.asarray(array)))))

    return [
        rms(residuals(columns)[name])
        / max(rms(t) for t in additive_terms(lambda c, n=name: residuals(c)[n], columns))
        for name in state(problem).residual_names
    ]


def on_grid(cls, times, points, end=None):
    """The problem shown on another grid, perhaps for a shorter time."""
    domain = cls().domain
    names = {"test_grid": (times, *(points,) * len(domain.space))}
    if end is not None:
        sides = dict(zip(domain.coordinates, domain.bounds, strict=True))
        names["domain"] = TimeBox(**{**sides, "t": (0.0, end)})
    return type("Shown", (cls,), names)()


# Where a problem is shown, at first and finer, and from when on: initial data that are not smooth
# across the seam, or do not fit the boundary values, leave a layer that the grids do not resolve.
SHOWN = {
    "allen-cahn-dirichlet": ((201, 513), (401, 1025), None, 0.05),
    "allen-cahn-periodic": ((201, 512), (401, 1024), None, 0.1),
    "burgers": ((201, 1025), (401, 2049), None, 0.0),
    "korteweg-de-vries": ((401, 256), (801, 512), None, 0.0),
    "kuramoto-sivashinsky": ((251, 128), (501, 256), None, 0.0),
    "grey-scott": ((31, 50), (61, 100), 0.12, 0.05),
}
SETTINGS = {
    "grey-scott": {"modes": 100, "steps": 480, "samples": 800},
    "kuramoto-sivashinsky": {"modes": 512, "steps": 10_000},
}


def test_every_reference_with_a_resolution_is_shown():
    assert {cls().name for cls in REFERENCES} == set(SHOWN)


@pytest.mark.parametrize(
    "name", some_slow(SHOWN, SHOWN.keys() - {"korteweg-de-vries", "grey-scott"})
)
def test_a_reference_satisfies_its_equation(name):
    coarse, fine, end, margin = SHOWN[name]
    cls = PROBLEMS[name]
    recipe = REFERENCES[cls]["converged"]
    settings = {**recipe.settings, **SETTINGS.get(name, {})}
    problem = on_grid(cls, *fine, end)
    axes = error_axes(problem)
    values = recipe.make(problem, axes, **settings)
    coarser = on_grid(cls, *coarse, end)
    thinned = {f: v[(slice(None, None, 2),) * v.ndim] for f, v in values.items()}
    before = relative_residuals(coarser, error_axes(coarser), thinned, margin)
    after = relative_residuals(problem, axes, values, margin)
    for large, small in zip(before, after, strict=True):
        assert small < 1e-4
        assert small < large / 8


@pytest.mark.parametrize("name", some_slow(SHOWN, ("grey-scott", "kuramoto-sivashinsky")))
def test_a_reference_satisfies_its_conditions(name):
    problem = PROBLEMS[name]()
    reference = reference_of(problem)
    mesh = jnp.asarray(reference.mesh)
    for condition in problem.conditions():
        if isinstance(condition, Periodic):
            continue  # by construction: the basis is periodic
        assert isinstance(condition, (Initial, Dirichlet)), "a new kind of condition to check"
        values = reference.values[(condition.field or problem.fields[0])]
        point = Point(mesh, problem.domain.coordinates)
        given = condition.value(point) if callable(condition.value) else condition.value
        given = np.broadcast_to(given, values.shape)
        at = (0,) if isinstance(condition, Initial) else (slice(None), [0, -1])
        np.testing.assert_allclose(values[at], given[at], atol=1e-12)
