"""The last layer by least squares, and the training of a chain level by level."""

from __future__ import annotations

import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.errors import UserError
from hyrespinn.geometry.sampling import uniform
from hyrespinn.losses.context import first_window, next_window
from hyrespinn.losses.objective import Objective
from hyrespinn.losses.terms import Counts, Sampling, Weights
from hyrespinn.models import MODELS, Gates, Moving
from hyrespinn.models.kernels import Gaussian
from hyrespinn.models.linear_part import linear_part
from hyrespinn.models.parameters import cast, flatten
from hyrespinn.optim import Adam
from hyrespinn.problems.boundary import Lifted
from hyrespinn.problems.statement import state
from hyrespinn.run.config import configure
from hyrespinn.training.last_layer import _from_equation, _from_start, fit_last_layer

from helpers import Heat

KEY = jax.random.key(4)
MISFITS = {"initial": _from_start, "equation": _from_equation}


def made(name, problem=None, **settings):
    """The objective and first parameters of a small network whose features are independent."""
    problem = problem or Heat()
    config = MODELS[name](width=4, **settings)
    model = config.build(Lifted().inputs(state(problem)), jax.random.key(0))
    theta, assemble = flatten(cast(model, "float64"))
    objective = Objective(
        state(problem), assemble, weights=Weights(2.0, 30.0),
        sampling=Sampling(Counts(200, 40, 20), uniform, jnp.dtype("float64")),
    )  # fmt: skip
    return objective, theta


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("fit", ["initial", pytest.param("equation", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name", [*(pytest.param(n, marks=pytest.mark.slow) for n in ("piratenet", "hyrespinn")), "pinn"]
)
def test_nothing_is_left_for_the_last_layer_to_do(name, fit):
    """The misfit is smaller, and orthogonal to every change that the fit could still make."""
    settings = {"hyrespinn": {"kernels": Moving(4, Gaussian()), "gates": Gates(beta=0.5)}}
    objective, theta = made(name, **settings.get(name, {}))
    context = objective.context()
    fitted = jax.jit(lambda t, c: fit_last_layer(objective, t, c, KEY, fit))(theta, context)
    misfit = jax.jit(lambda t: MISFITS[fit](objective, t, context, KEY))
    linear, put = linear_part(objective.assemble, fitted)
    r = np.asarray(misfit(fitted))
    assert np.linalg.norm(r) < 0.9 * np.linalg.norm(misfit(theta))
    columns = np.asarray(jax.jit(jax.jacrev(lambda v: misfit(put(v))))(linear))
    left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    strong = left[:, sizes > 2e-3 * sizes[0]]
    assert strong.shape[1] >= 3
    assert np.abs(strong.T @ r).max() < 1e-9 * np.linalg.norm(misfit(theta))
    others = np.ones(theta.size, bool)
    others[np.asarray(linear_part(objective.assemble, jnp.arange(theta.size) + 0.0)[0], int)] = 0
    np.testing.assert_array_equal(fitted[others], theta[others])


@pytest.mark.usefixtures("x64")
@pytest.mark.slow
def test_a_window_is_fitted_to_the_end_of_the_one_before():
    objective, theta = made("piratenet")
    first = first_window(theta, 0.0, 0.5)
    start = fit_last_layer(objective, theta, objective.context(first), KEY, "initial")
    second = objective.context(next_window(first, start, 0.5, 0.5))
    fitted = fit_last_layer(objective, theta, second, KEY, "initial")
    x = np.linspace(0, 1, 9)
    at_edge = jnp.asarray(np.stack([np.full(9, 0.5), x], axis=1))
    last = objective.solution(start, objective.context(first))(at_edge)
    later = objective.solution(fitted, second)(at_edge.at[:, 0].set(0.75))
    # Both are the best that the same few features can do for nearly the same function.
    np.testing.assert_allclose(later, last, atol=0.15 * np.abs(last).max())


@pytest.mark.slow
def test_a_fitted_start_is_close_to_a_linear_problem():
    """Without a step of training: the error of a fitted network is far below that of the other."""
    nothing = {
        "model.width": 24,
        "points.interior": 400,
        "points.initial": 16,
        "stages": (Adam(1, rate=1e-9, batch=32),),
    }
    errors = [
        hp.solve(
            Heat(), model="piratenet", progress=False, settings={**nothing, "initial_fit": fit}
        ).result["rel_l2"]["u"]
        for fit in ("none", "initial", "equation")
    ]
    assert errors[1] < 0.5 * errors[0]
    assert errors[2] < 0.05 < errors[1]


@pytest.mark.usefixtures("x64")
def test_no_time_no_initial_condition_to_fit():
    settings = {"initial_fit": "initial"}
    with pytest.raises(UserError, match="poisson-2d has no time; take equation"):
        hp.solve("poisson-2d", preset="smoke", progress=False, settings=settings)
    objective, theta = made("pinn", hp.problems.Poisson2D())
    with pytest.raises(UserError, match="initial_fit=equation"):
        fit_last_layer(objective, theta, objective.context(), KEY, "initial")


def in_turn(model, stages):
    """The stages of a chain that is trained level by level."""
    config = configure(Heat(), model="stackedpinn", settings={"in_turn": True, "stages": stages})
    return config.discretisation.make_stages(model)


def test_level_by_level_has_stages_for_every_network():
    chain = MODELS["stackedpinn"](width=4, levels=2)
    inputs = Lifted().inputs(state(Heat()))
    stages = in_turn(chain.build(inputs, KEY), "adam:90, ssbroyden:31")
    assert [(s.name, s.part, s.steps) for s in stages] == [
        (name, part, steps)
        for part in (1, 2, 3)
        for name, steps in (("adam", 30), ("ssbroyden", 10))
    ]
    with pytest.raises(UserError, match="chain of networks"):
        in_turn(MODELS["pinn"](width=4).build(inputs, KEY), "adam:90")


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_training_a_level_leaves_the_others_alone():
    """A step of the second network's stage moves its parameters and no others."""
    objective, theta = made("stackedpinn", levels=1)
    model = objective.assemble(theta)
    stage = in_turn(model, "adam:4")[1]
    part = objective.upto(stage.part)
    state = stage.start(part, theta, KEY, part.context())
    state = jax.jit(lambda s: stage.run(part, s, jnp.asarray(2)))(state)
    moved = np.flatnonzero(np.asarray(state.optimiser.theta != theta))
    numbered = objective.assemble(jnp.arange(theta.size) + 0.0)
    second = np.concatenate([np.ravel(a) for a in jax.tree.leaves(numbered.levels)]).astype(int)
    assert moved.size
    assert set(moved) <= set(second)
