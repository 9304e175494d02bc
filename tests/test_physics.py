"""One statement of the physics: every exact solution satisfies its equation and its conditions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.derivatives import lift
from hyrespinn.geometry.sampling import kronecker
from hyrespinn.losses.objective import Objective
from hyrespinn.losses.terms import Counts, Weights
from hyrespinn.problems import PROBLEMS
from hyrespinn.problems.fields import Point
from hyrespinn.problems.problem import anatomy
from hyrespinn.references import reference_of

pytestmark = pytest.mark.usefixtures("x64")


def has_exact(name: str) -> bool:
    problem = PROBLEMS[name]()
    point = Point(jnp.zeros((1, problem.domain.dimension)), problem.domain.coordinates)
    return problem.exact(point) is not None


EXACT = [name for name in PROBLEMS if has_exact(name)]


def exact_fields(problem):
    """The exact solution in the place of a network: coordinates to fields."""

    def values(points):
        result = problem.exact(Point(points, problem.domain.coordinates))
        several = result if isinstance(result, tuple) else (result,)
        return jnp.stack(several, axis=-1)

    return lambda x: lift(values, x)


@pytest.mark.parametrize("name", EXACT)
def test_an_exact_solution_satisfies_everything(name):
    """Interior residual and every condition, all as terms of the loss, at fresh points."""
    problem = PROBLEMS[name]()
    objective = Objective(
        problem,
        anatomy(problem),
        lambda theta: None,
        counts=Counts(200, 50, 50),
        weights=Weights(),
        sampler=kronecker,
        dtype=jnp.dtype("float64"),
        exact=False,
    )
    samples = objective.draw(jax.random.key(0))
    assert len(objective.terms) >= 2
    for term in objective.terms:
        for vector in term.residuals(exact_fields(problem), samples[term.name]).values():
            np.testing.assert_allclose(vector, 0, atol=1e-10)


@pytest.mark.parametrize("name", list(PROBLEMS))
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
    for values in reference.values.values():
        assert values.shape == problem.test_grid
        assert np.isfinite(values).all()
    assert anatomy(problem).order >= 1
