"""Gauss–Newton: its factors and steps against NumPy, known answers, and as a stage of training."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.discretise import Drawn, Fixed, ResidualAdaptive, Stopping
from hyrespinn.models import PINN, KernelExpansion, Scattered
from hyrespinn.models.kernels.initialise import spaced_widths
from hyrespinn.models.linear_part import linear_mask
from hyrespinn.models.parameters import flatten
from hyrespinn.optim import GaussNewton, SSBroyden
from hyrespinn.optim import gauss_newton as gn
from hyrespinn.problems.boundary import Lifted
from hyrespinn.problems.statement import state

from helpers import Heat, in_window_two

pytestmark = pytest.mark.usefixtures("x64")

KERNELS = Scattered(count=48, overlap=2.5, time_width=2.0, time_levels=4.0, exterior=0.0)
SETTINGS = {
    "stages": (GaussNewton(12),),
    "points": Drawn(160, 40, adaptive=None),
    "stopping": Stopping(),
}


def solved(problem, kernels=KERNELS, changes=None, **options):
    whole = {"marching": "whole"} if problem.domain.has_time else {}
    settings = {**whole, **SETTINGS, **(changes or {})}
    model = KernelExpansion(kernels)
    return hp.solve(problem, model=model, settings=settings, progress=False, **options)


def least_squares(matrix, right, damping):
    stacked = np.concatenate([matrix, np.diag(np.broadcast_to(damping, matrix.shape[1]))])
    column = np.concatenate([right, np.zeros(matrix.shape[1])])
    return np.linalg.lstsq(stacked, column, rcond=None)[0]


@pytest.mark.parametrize("shape", [(9, 4), (3, 5)], ids=["more rows", "fewer rows"])
def test_the_factor_solves_damped_least_squares(shape):
    rng = np.random.default_rng(0)
    matrix, right = rng.normal(size=shape), rng.normal(size=shape[0])
    damping = rng.uniform(0.1, 0.5, shape[1])
    found = gn.triangle(jnp.asarray(matrix), jnp.asarray(right), jnp.asarray(damping))
    np.testing.assert_allclose(
        found.upper.T @ found.upper, matrix.T @ matrix + np.diag(damping**2), atol=1e-13
    )
    np.testing.assert_allclose(found.step(), least_squares(matrix, right, damping), rtol=1e-10)


def test_a_larger_damping_goes_on_from_the_factor_of_a_smaller_one():
    rng = np.random.default_rng(1)
    matrix, right = rng.normal(size=(9, 4)), rng.normal(size=9)
    first = gn.triangle(jnp.asarray(matrix), jnp.asarray(right), jnp.full(4, 0.3))
    second = gn.triangle(*first, jnp.full(4, np.sqrt(0.7**2 - 0.3**2)))
    np.testing.assert_allclose(second.step(), least_squares(matrix, right, 0.7), rtol=1e-10)


def test_nearly_dependent_columns_keep_their_digits():
    """Monomials up to x¹³: the normal equations, with 1e16 and more, would know little of them."""
    x = np.linspace(0, 1, 60)
    matrix = x[:, None] ** np.arange(14)
    assert np.linalg.cond(matrix) > 1e9
    wanted = np.exp(-3 * x) * np.sin(5 * x)
    best = np.linalg.lstsq(matrix, wanted, rcond=1e-15)[0]
    state = gn.minimise(lambda c: jnp.asarray(matrix) @ c - wanted, jnp.zeros(14), 3)
    reached = np.linalg.norm(matrix @ np.asarray(state.theta) - wanted)
    assert reached < 2 * np.linalg.norm(matrix @ best - wanted) < 1e-8
    normal = np.linalg.solve(matrix.T @ matrix + 1e-13 * np.eye(14), matrix.T @ wanted)
    assert np.linalg.norm(matrix @ normal - wanted) > 10 * reached


def test_a_curved_valley():
    """Rosenbrock's function: whole steps would not do, and the value never rises."""

    def rows(x):
        return jnp.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]])

    def value(x):
        return jnp.sum(rows(x) ** 2)

    rule = gn.Rule()
    step = jax.jit(lambda s: gn.step(lambda x: (rows(x), jax.jacfwd(rows)(x)), value, s, rule))
    state = gn.renewed(value, gn.blank(jnp.array([-1.2, 1.0]), rule))
    values = [float(state.value)]
    for _ in range(40):
        state = step(state)
        values.append(float(state.value))
    assert all(b <= a for a, b in pairwise(values))
    np.testing.assert_allclose(state.theta, [1.0, 1.0], atol=1e-6)


def test_no_lower_point_is_a_failure_that_moves_nothing():
    """Rows that are not finite anywhere but at the start."""
    start = jnp.array([2.0])

    def value(x):
        return jnp.where(x[0] == 2.0, 1.0, jnp.nan)

    def linearise(x):
        return jnp.ones(1), jnp.ones((1, 1))

    rule = gn.Rule()
    state = gn.renewed(value, gn.blank(start, rule))
    after = jax.jit(lambda s: gn.step(linearise, value, s, rule))(state)
    assert bool(after.failed)
    np.testing.assert_array_equal(after.theta, start)
    assert float(gn.forgotten(after, rule).damping) > rule.damping


def test_stiff_parameters_move_little():
    rng = np.random.default_rng(3)
    matrix, wanted = jnp.asarray(rng.normal(size=(8, 3))), jnp.asarray(rng.normal(size=8))

    def linearise(x):
        return matrix @ x - wanted, matrix

    def value(x):
        return jnp.sum((matrix @ x - wanted) ** 2)

    rule = gn.Rule(stiffness=1e3)
    state = gn.renewed(value, gn.blank(jnp.zeros(3), rule))
    free = gn.step(linearise, value, state, rule)
    held = gn.step(linearise, value, state, rule, np.array([True, False, True]))
    np.testing.assert_allclose(free.theta, np.linalg.lstsq(matrix, wanted)[0], rtol=1e-6)
    assert abs(held.theta[1]) < 1e-5 < abs(free.theta[1])
    best = np.linalg.lstsq(matrix[:, [0, 2]], wanted)[0]
    np.testing.assert_allclose(held.theta[jnp.array([0, 2])], best, rtol=1e-4)


def network(spec, problem=None):
    problem = problem or Heat()
    return spec.build(Lifted().inputs(state(problem)), jax.random.key(0))


def test_an_expansion_is_linear_in_all_of_its_parameters():
    theta, assemble = flatten(network(KernelExpansion(KERNELS)))
    assert theta.size == 48 + 2 + 1
    assert not np.asarray(theta).any(), "all of it begins with zero"
    assert linear_mask(assemble, theta).all()
    x = jnp.asarray(np.random.default_rng(0).uniform(size=(20, 2)))
    one, two = np.random.default_rng(1).normal(size=(2, theta.size))
    together = assemble(jnp.asarray(3 * one - 2 * two))(x)
    parts = 3 * assemble(jnp.asarray(one))(x) - 2 * assemble(jnp.asarray(two))(x)
    np.testing.assert_allclose(together, parts, atol=1e-12)


def test_the_linear_parameters_of_a_network_are_those_of_its_last_layer():
    theta, assemble = flatten(network(PINN(width=4, depth=2)))
    linear = linear_mask(assemble, theta)
    assert linear.sum() == 4 + 1
    marked = assemble(jnp.asarray(linear, float))
    assert all(bool(jnp.all(a == 1)) for a in marked.linear_leaves())


def test_kernels_by_their_spacing():
    """Along time as wide as asked, along a periodic coordinate by the angle between centres."""
    problem = hp.problems.KortewegDeVries()
    rbf = network(KernelExpansion(replace(KERNELS, count=60)), problem).kernels
    widths = np.asarray(rbf.widths())
    np.testing.assert_allclose(widths[:, 0], 2.0)
    np.testing.assert_allclose(widths[:, 1:], 2.5 * 2 * np.pi * 4 / 60)
    x = np.sort(np.arctan2(*np.asarray(rbf.centers.array)[:, :0:-1].T))
    assert np.diff(x).max() < 3 * 2 * np.pi / 60, "evenly spaced along each coordinate alone"
    steady = spaced_widths(np.array([2.0, 2.0, 2.0]), 64, 3.0)
    np.testing.assert_allclose(steady, 1.5)


def test_a_steady_problem_is_solved_in_a_few_steps():
    changes = {"points": Drawn(400, boundary=80, adaptive=None)}
    result = solved(hp.problems.Poisson2D(), replace(KERNELS, count=160), changes).result
    assert result["status"] == "converged"
    assert result["steps"] <= 5
    assert result["rel_l2"]["u"] < 1e-3


@pytest.mark.slow
def test_a_march_resumes_to_the_same_bits(tmp_path):
    """Stopped in the second window, resumed: everything after it is the same."""
    changes = {"marching": Fixed(3)}
    whole = solved(Heat(), changes=changes)
    assert whole.result["status"] == "converged"
    assert whole.result["rel_l2"]["u"] < 1e-4
    part = solved(Heat(), changes=changes, out=tmp_path / "run", callbacks=[in_window_two])
    assert part.result["status"] == "interrupted"
    again = hp.resume(tmp_path / "run", progress=False)
    assert again.result["status"] == "converged"
    assert again.result["steps"] == whole.result["steps"]
    for a, b in zip(jax.tree.leaves(whole.model), jax.tree.leaves(again.model), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.slow
def test_new_points_begin_where_a_round_has_converged():
    points = Drawn(160, 40, adaptive=ResidualAdaptive(pool=2))
    once, result = (
        solved(
            Heat(), changes={"points": points, "stages": (GaussNewton(30, most_rounds=rounds),)}
        ).result
        for rounds in (1, 2)
    )
    assert result["status"] == once["status"] == "converged"
    assert once["steps"] < result["steps"] < 30


@pytest.mark.slow
def test_another_stage_goes_on_where_gauss_newton_has_converged():
    stages = (GaussNewton(12), SSBroyden(5))
    result = solved(Heat(), changes={"stages": stages}).result
    assert result["status"] == "completed"
    assert result["steps"] < 12 + 5


def test_exterior_centres_make_a_better_solution():
    """Near a boundary with kernels on one side of it alone, coefficients are large and cancel."""
    changes = {
        "points": Drawn(480, adaptive=None),
        "boundary": "penalty",
        "weights.per_order": 100.0,
    }
    errors = [
        solved(
            hp.problems.Poisson2D(), Scattered(200, overlap=2.2, exterior=exterior), changes
        ).result["rel_l2"]["u"]
        for exterior in (0.0, 3.0)
    ]
    assert errors[1] < 0.3 * errors[0]


def test_centres_stand_around_the_domain_and_not_before_its_time():
    model = network(KernelExpansion(replace(KERNELS, exterior=2.0)))
    centers = np.asarray(model.kernels.centers.array)
    assert np.abs(centers[:, 0]).max() <= 1, "time is as it was"
    assert np.abs(centers[:, 1]).max() > 1.1
