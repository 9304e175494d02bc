"""The known answers of ``benchmarks/verdict_problems.py`` satisfy their equations and conditions."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn import Problem
from hyrespinn.derivatives import lift
from hyrespinn.geometry.sampling import kronecker
from hyrespinn.losses.objective import Objective
from hyrespinn.losses.terms import Counts, Sampling, Weights
from hyrespinn.problems.boundary import Penalty
from hyrespinn.problems.fields import Point
from hyrespinn.problems.statement import state
from hyrespinn.references.reference import initial_values

FILE = Path(__file__).parents[1] / "benchmarks" / "verdict_problems.py"
spec = importlib.util.spec_from_file_location("verdict_problems", FILE)
module = importlib.util.module_from_spec(spec)
sys.modules["verdict_problems"] = module
spec.loader.exec_module(module)

CATALOGUE = module.catalogue()
KINDS = (
    "smooth", "layer", "singular", "shock", "ill-posed", "resonant", "chaotic", "system", "3d",
    "geometry", "time-walls", "nonlinear",
)  # fmt: skip
COMPUTED = [name for name, e in CATALOGUE.items() if hasattr(e.problem, "known")]
EXACT = [name for name, e in CATALOGUE.items() if type(e.problem).exact is not Problem.exact]

pytestmark = pytest.mark.usefixtures("x64")


def exact_solution(problem):
    """The exact solution in the place of a network: coordinates to fields."""

    def values(points):
        result = problem.exact(Point(points, problem.domain.coordinates))
        several = result if isinstance(result, tuple) else (result,)
        return jnp.stack(several, axis=-1)

    return lambda x: lift(values, x)


def terms(problem, solution):
    """Every term of a loss, the equation first, at points drawn for it."""
    sampling = Sampling(Counts(512, 50, 50), kronecker, jnp.dtype("float64"))
    objective = Objective(
        state(problem), lambda theta: None, Penalty(), sampling=sampling, weights=Weights()
    )
    samples = objective.draw(jax.random.key(0))
    for term in objective.terms:
        for name, vector in term.residuals(solution, samples[term.name]).items():
            yield name, np.asarray(vector)


@pytest.mark.parametrize("name", EXACT)
def test_an_exact_answer_satisfies_everything(name):
    problem = CATALOGUE[name].problem
    for what, vector in terms(problem, exact_solution(problem)):
        np.testing.assert_allclose(vector, 0, atol=1e-9, err_msg=what)


def derivative(values, points, index, lengths):
    """A derivative by eighth-order differences along time and Fourier series along x.

    ``values`` are given at nine times around the middle one, and at evenly spaced x.
    """
    in_time, in_space = index
    spacing = points[1, 0, 0] - points[0, 0, 0]
    stencil = np.array([3, -32, 168, -672, 0, 672, -168, 32, -3]) / (840 * spacing)
    values = np.tensordot(stencil, values, 1) if in_time else values[4]
    k = 2j * np.pi / lengths * np.fft.rfftfreq(values.size, 1 / values.size)
    return np.fft.irfft(k**in_space * np.fft.rfft(values), values.size)


@pytest.mark.parametrize("name", COMPUTED)
def test_a_computed_answer_satisfies_everything(name):
    entry = CATALOGUE[name]
    problem, statement = entry.problem, state(entry.problem)
    (begin, end), (lower, upper) = problem.domain.bounds
    length = (upper - lower) * (1 if statement.is_periodic else 2)  # else even about its ends
    x = lower + length * np.arange(1024) / 1024
    middle = begin + 0.4 * (end - begin)  # before Burgers' front is too thin for the points
    times = middle + 1e-3 * (end - begin) * np.arange(-4, 5)
    points = np.stack(np.meshgrid(times, x, indexing="ij"), axis=-1)
    values = {f: v.reshape(9, -1) for f, v in entry.answer(points.reshape(-1, 2)).items()}
    parts = {
        index: jnp.stack([derivative(values[f], points, index, length) for f in problem.fields], -1)
        for index in statement.requested
    }
    sizes = max(float(jnp.abs(part).max()) for part in parts.values())
    for what, vector in statement.residuals(parts, jnp.asarray(points[4])).items():
        np.testing.assert_allclose(vector, 0, atol=1e-6 * sizes, err_msg=what)
    start = np.stack([np.full(64, begin), np.linspace(lower, upper, 64)], axis=-1)
    for field, known in initial_values(problem, start).items():
        np.testing.assert_allclose(entry.answer(start)[field], known, atol=1e-9)


@pytest.mark.parametrize("name", CATALOGUE)
def test_an_entry_is_complete(name):
    entry = CATALOGUE[name]
    statement = state(entry.problem)
    assert [c.code for c in statement.cautions] == ["incompatible-start"] * (name == "heat-jump")
    assert entry.kind in KINDS
    assert type(entry.problem).__doc__
    if entry.answer is None:
        assert entry.expected != module.SOLVED
        return
    points = entry.problem.domain.sample(5)
    values = entry.answer(points)
    assert set(values) == set(entry.problem.fields)
    for value in values.values():
        assert value.shape == (5,)
        assert np.isfinite(value).all()
