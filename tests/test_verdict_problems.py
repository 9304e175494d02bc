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

FILE = Path(__file__).parents[1] / "benchmarks" / "verdict_problems.py"
spec = importlib.util.spec_from_file_location("verdict_problems", FILE)
module = importlib.util.module_from_spec(spec)
sys.modules["verdict_problems"] = module
spec.loader.exec_module(module)

CATALOGUE = module.catalogue()
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
        print(what, np.abs(vector).max())
        np.testing.assert_allclose(vector, 0, atol=1e-9, err_msg=what)
