"""Levenberg–Marquardt: the Jacobian against forward mode, defining identities, known answers."""

from __future__ import annotations

from functools import partial

import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.discretise import Causal, Drawn, Fixed
from hyrespinn.losses.adaptive import Adaptivity
from hyrespinn.losses.context import first_window
from hyrespinn.losses.jacobian import linearised, pulled, weighted_rows
from hyrespinn.models.linear_part import linear_part
from hyrespinn.optim import levenberg_marquardt as lm
from hyrespinn.run.config import configure
from hyrespinn.run.session import Session
from hyrespinn.training.stage import Stage
from hyrespinn.training.system import LossSystem

pytestmark = pytest.mark.usefixtures("x64")
SMALL = {
    "points": Drawn(37, 11, 8),
    "model.width": 5,
    "model.kernels.count": 4,
    "model.gates.beta": 0.5,
}
CASES = {
    "allen-cahn-dirichlet": {"boundary": "penalty"},
    "darcy-2d-neumann": {},
    "allen-cahn-periodic": {"boundary": "penalty"},
    "grey-scott": {"model.gates.penalty": 0.1},
}
ORDERED = ("allen-cahn-dirichlet", "darcy-2d-neumann")
"""Problems with one row at every point."""


def case(name, precision="float64", **changes):
    """An objective with its parameters, points and context."""
    problem = hp.problems.problem_named(name)()
    settings = {**SMALL, **changes}
    config = configure(problem, method="network", precision=precision, seed=3, settings=settings)
    theta, training, _ = Session(config, progress=False, reference=False).training()
    objective = training.objective
    window = first_window(theta, 0.0, 0.3) if "marching" in changes else None
    context = objective.context(window)
    weights = {n: w * (1.5 + i) for i, (n, w) in enumerate(context.weights.items())}
    context = context._replace(weights=weights)
    return objective, theta, objective.draw(jax.random.key(4), context), context


def oracle(objective, theta, samples, context):
    function = partial(weighted_rows, objective, samples=samples, context=context)
    return jax.jit(lambda t: (function(t), jax.jacfwd(function)(t)))(theta)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_jacobian_is_that_of_the_weighted_vector(name):
    objective, theta, samples, context = case(name, **CASES[name])
    rows, known = oracle(objective, theta, samples, context)
    found = jax.jit(lambda t: linearised(objective, t, samples, context, block=16))(theta)
    assert found.jacobian.shape == known.shape
    if name in ORDERED:
        np.testing.assert_allclose(found.rows, rows, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.jacobian, known, rtol=1e-8, atol=1e-10)
    # Rows of one point lie together; the products do not depend on the order.
    np.testing.assert_allclose(np.sort(found.rows), np.sort(rows), rtol=1e-9, atol=1e-12)
    scale = float(jnp.max(jnp.abs(known.T @ known)))
    np.testing.assert_allclose(
        found.jacobian.T @ found.jacobian, known.T @ known, rtol=1e-9, atol=1e-12 * scale
    )
    np.testing.assert_allclose(found.rows @ found.jacobian, rows @ known, rtol=1e-9, atol=1e-9)
    vector = jax.random.normal(jax.random.key(5), rows.shape)
    back = jax.jit(lambda t: pulled(objective, t, samples, context, vector))(theta)
    np.testing.assert_allclose(back, vector @ known, rtol=1e-8, atol=1e-9)
    loss = float(jax.jit(lambda t: objective.value(t, samples, context))(theta))
    assert loss == pytest.approx(float(jnp.sum(rows**2)), rel=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("frozen", [False, True])
def test_causal_weights_and_a_window_reach_the_rows(frozen):
    settings = {"weights.causal": Causal(4, tolerances=(0.3,)), "marching": Fixed(3)}
    objective, theta, samples, context = case("allen-cahn-dirichlet", **settings)
    if frozen:
        context = context._replace(causal=jnp.array([1.0, 0.5, 0.2, 0.1]))
    found = jax.jit(lambda t: linearised(objective, t, samples, context))(theta)
    value, gradient = jax.jit(objective.value_and_grad(samples, context))(theta)
    assert float(jnp.sum(found.rows**2)) == pytest.approx(float(value), rel=1e-12)
    np.testing.assert_allclose(2 * found.rows @ found.jacobian, gradient, rtol=1e-9, atol=1e-11)
    if frozen:
        again = jax.jit(lambda t: pulled(objective, t, samples, context, found.rows))(theta)
        np.testing.assert_allclose(2 * again, gradient, rtol=1e-9, atol=1e-11)


@pytest.mark.slow
def test_a_sketch_of_the_jacobian_is_right_on_average_and_whole_where_it_need_not_be_smaller():
    objective, theta, samples, context = case("darcy-2d-neumann")
    sketch = partial(linearised, objective, theta, samples, context)
    keys = jax.random.split(jax.random.key(1), 200)
    whole, same, many = jax.jit(
        lambda k: (
            sketch(),
            sketch(sketch=10_000, key=k[0]),
            jax.lax.map(lambda one: sketch(sketch=20, key=one), k),
        )
    )(keys)
    np.testing.assert_array_equal(same.jacobian, whole.jacobian)
    assert many.jacobian.shape[1] < 22
    gradient = jnp.mean(jnp.einsum("km,kmn->kn", many.rows, many.jacobian), axis=0)
    exact = whole.rows @ whole.jacobian
    assert float(jnp.linalg.norm(gradient - exact)) < 0.3 * float(jnp.linalg.norm(exact))


def linear(m=60, n=12, seed=0):
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(m, n)), rng.normal(size=m)
    return jnp.asarray(A), jnp.asarray(b)


@partial(jax.jit, static_argnames="rule")
def one_step(A, b, rule):
    """One step on ``‖Ax − b‖²`` from 0."""
    rows = lambda x: A @ x - b  # noqa: E731
    value = lambda x: jnp.sum(rows(x) ** 2)  # noqa: E731
    state = lm.renewed(value, lm.blank(jnp.zeros(A.shape[1]), rule))
    return lm.step(lambda x, _: lm.exact(rows(x), A), value, state, rule)


def test_one_step_without_damping_solves_least_squares():
    A, b = linear()
    state = one_step(A, b, lm.Rule(damping=0.0))
    np.testing.assert_allclose(state.theta, np.linalg.lstsq(A, b)[0], rtol=1e-11)
    assert float(state.ratio) == pytest.approx(1, abs=1e-12)
    assert not state.failed


@pytest.mark.parametrize("shape", [(60, 12), (12, 60)])
@pytest.mark.parametrize("precise", [0.0, 2.0])
def test_the_damped_step_solves_its_equation(shape, precise):
    """``(JᵀJ + λI)δ = −Jᵀr``, with and without QR, with more and with fewer rows."""
    A, b = linear(*shape)
    state = one_step(A, b, lm.Rule(damping=0.3, probes=(1.0,), precise=precise))
    shift = 0.3 * float(jnp.sum(A**2)) / shape[1]
    left = (A.T @ A + shift * jnp.eye(shape[1])) @ state.theta
    np.testing.assert_allclose(left, A.T @ b, rtol=1e-9, atol=1e-9)
    assert bool(state.precise) == (precise > 0)


def test_a_step_of_few_rows_is_that_of_the_normal_equations():
    A, b = linear(9, 20)
    padded = jnp.concatenate([A, jnp.zeros((15, 20))]), jnp.concatenate([b, jnp.zeros(15)])
    rule = lm.Rule(damping=0.1)
    np.testing.assert_allclose(
        one_step(A, b, rule).theta, one_step(*padded, rule).theta, rtol=1e-9, atol=1e-11
    )


def test_marquardt_scaling_does_not_depend_on_the_units_of_the_parameters():
    A, b = linear()
    units = jnp.asarray(np.logspace(-2, 2, 12))
    rule = lm.Rule(damping=0.5, scaling="marquardt", probes=(1.0,))
    plain, other = one_step(A, b, rule).theta, one_step(A * units, b, rule).theta
    np.testing.assert_allclose(plain, other * units, rtol=1e-9)


@pytest.mark.parametrize("damping", [1e-3, 1e-1, 10.0])
def test_one_factorisation_serves_other_dampings(damping):
    """Steps in the small space against those of a factorisation for each damping."""
    A, b = linear(80, 30)
    A = A * jnp.asarray(np.logspace(0, -3, 30))
    local = lm.exact(-b, A)
    products, shift = lm.gram(A), jnp.asarray(damping)
    factor = lm.by_cholesky(products, shift, local.gradient)
    space = lm.space_of(local, lm.krylov(local, factor, shift, 6))
    for probe, most in ((1.0, 1e-10), (0.3, 3e-3), (3.0, 3e-3), (0.1, 5e-2), (10.0, 5e-2)):
        other = jnp.asarray(probe * damping)
        exact = np.linalg.solve(A.T @ A + other * np.eye(30), A.T @ b)
        found = space.step(other) @ space.directions
        assert np.linalg.norm(found - exact) < most * np.linalg.norm(exact)
        reached = b @ b - jnp.sum((A @ found - b) ** 2)
        assert float(space.predicted(other)) == pytest.approx(float(reached), rel=1e-9)


def test_the_lower_triangle_of_the_products_in_tiles():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(20, 2 * lm.TILE + 7))
    np.testing.assert_allclose(np.tril(lm.gram(jnp.asarray(A))), np.tril(A.T @ A), atol=1e-12)


def test_qr_keeps_the_digits_that_normal_equations_lose():
    """A Vandermonde matrix with a condition number of 10⁷."""
    A = np.vander(np.linspace(0, 1, 40), 10, increasing=True)
    truth = np.ones(10)
    b = A @ truth
    J, r = jnp.asarray(A), jnp.asarray(-b)
    zero = jnp.zeros(())
    normal = lm.by_cholesky(lm.gram(J), zero, r @ J).solved
    careful = lm.by_qr(J, zero, r @ J, r).solved
    assert np.abs(careful + truth).max() < 1e-8
    assert np.abs(normal + truth).max() > 30 * np.abs(careful + truth).max()


def test_where_normal_equations_are_not_positive_definite_qr_takes_over():
    A = jnp.asarray(np.vander(np.linspace(0, 1, 40), 20, increasing=True))
    state = one_step(A, A @ jnp.ones(20), lm.Rule(damping=0.0, precise=0.0))
    assert bool(state.precise)
    assert float(state.value) < 1e-20


def rosenbrock(x):
    return jnp.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]])


@pytest.mark.parametrize("scaling", ["identity", "marquardt"])
def test_rosenbrock(scaling):
    state = lm.minimise(rosenbrock, jnp.array([-1.2, 1.0]), 60, lm.Rule(scaling=scaling))
    np.testing.assert_allclose(state.theta, [1, 1], rtol=1e-9)


def test_a_minimum_with_residual_left_is_found_and_then_nothing_lower():
    """``x ↦ (x² + 1, x)`` has its minimum at 0, where both rows cannot vanish."""
    rows = lambda x: jnp.stack([x[0] ** 2 + 1, x[0]])  # noqa: E731
    state = lm.minimise(rows, jnp.array([2.0]), 200)
    assert abs(float(state.theta[0])) < 1e-7
    assert bool(state.failed)
    assert float(state.value) == 1


def test_the_trust_region_rule():
    rule = lm.Rule(factor=4.0)
    one = jnp.asarray(1.0)
    ratios = {0.9: 0.25, 0.5: 1.0, 0.1: 4.0}
    for ratio, expected in ratios.items():
        assert float(lm.next_damping(one, jnp.asarray(ratio), rule)) == expected


def test_the_damping_falls_on_a_line_and_rises_on_a_bend():
    A, b = linear()
    assert float(one_step(A, b, lm.Rule(damping=1.0)).damping) < 0.1

    def bent(x):
        return jnp.stack([100 * jnp.sin(5 * x[0]) + 100 * x[0] ** 3, x[0] - 1])

    value = lambda x: jnp.sum(bent(x) ** 2)  # noqa: E731
    rule = lm.Rule(damping=1e-6)
    state = lm.renewed(value, lm.blank(jnp.array([0.33]), rule))
    local = lambda x, _: lm.exact(bent(x), jax.jacfwd(bent)(x))  # noqa: E731
    after = jax.jit(lambda s: lm.step(local, value, s, rule))(state)
    assert float(after.damping) > 1e-5
    assert float(after.value) < float(state.value)


def test_not_a_number_counts_as_no_decrease():
    """``√x`` is not a number left of 0, where long steps lead."""
    rows = lambda x: jnp.stack([10 * (jnp.sqrt(x[0]) - 0.1)])  # noqa: E731
    state = lm.minimise(rows, jnp.array([4.0]), 50, lm.Rule(damping=1e-8))
    assert float(state.theta[0]) == pytest.approx(0.01, rel=1e-6)


@pytest.mark.slow
def test_a_network_that_is_linear_in_its_parameters_is_solved_in_one_step():
    """Poisson's equation, trained in the last layer alone."""
    objective, theta, samples, context = case("darcy-2d-dirichlet", **{"points": Drawn(200, 11, 8)})
    linear, put = linear_part(objective.assemble, theta)

    def rows(values):
        return weighted_rows(objective, put(values), samples, context)

    r, J = jax.jit(lambda t: (rows(t), jax.jacrev(rows)(t)))(linear)
    change = np.linalg.lstsq(J, -r)[0]
    state = jax.jit(lambda t: lm.minimise(rows, t, 1, lm.Rule(damping=0.0)))(linear)
    assert float(state.value) == pytest.approx(float(jnp.sum((r + J @ change) ** 2)), rel=1e-9)
    np.testing.assert_allclose(state.theta, linear + change, rtol=1e-6, atol=1e-8)


def test_the_sketched_step_is_the_best_one_of_all_rows_in_its_space():
    """Its space: the gradient, with and without the inverse of the sketched matrix."""
    A, b = linear(50, 80)
    rng = np.random.default_rng(1)
    sketched = jnp.asarray(rng.normal(size=(15, 50)) / np.sqrt(15)) @ A
    rows = lambda x: A @ x - b  # noqa: E731
    value = lambda x: jnp.sum(rows(x) ** 2)  # noqa: E731
    rule = lm.Rule(damping=1.0, probes=(1.0,), space=1)

    def local(x, _):
        return lm.Local(rows(x), sketched, rows(x) @ A, lambda v: v @ A.T, True)

    state = lm.renewed(value, lm.blank(jnp.zeros(80), rule))
    found = jax.jit(lambda s: lm.step(local, value, s, rule))(state).theta
    shift = float(jnp.sum(sketched**2)) / 80
    direction = np.linalg.solve(sketched.T @ sketched + shift * np.eye(80), A.T @ b)
    basis, _ = np.linalg.qr(np.column_stack([direction, A.T @ b]))
    image = A @ basis
    best = np.linalg.solve(image.T @ image + shift * np.eye(2), image.T @ b)
    np.testing.assert_allclose(found, basis @ best, rtol=1e-8, atol=1e-11)


def stage(**changes):
    plain = {"steps": 40, "round_steps": 20, "sketch": 24}
    return Stage(lm.LevenbergMarquardt(**{**plain, **changes}), Adaptivity(2, 1.0, 1.0))


@pytest.mark.slow
@pytest.mark.parametrize("sketch_above", [5000, 10])
def test_a_stage_descends_and_can_be_restarted(sketch_above):
    objective, theta, _, context = case("allen-cahn-dirichlet", **{"boundary": "penalty"})
    made = stage(sketch_above=sketch_above)

    @jax.jit
    def train(theta):
        started = made.start(objective, theta, jax.random.key(0), context)
        begun = made.renew(objective, started)
        return begun, made.run(objective, begun, jnp.asarray(10))

    begun, after = train(theta)
    assert int(after.optimiser.steps) == 10
    assert float(after.optimiser.value) < 0.6 * float(begun.optimiser.value)
    again = objective.value(after.optimiser.theta, after.samples, after.context)
    assert float(again) == pytest.approx(float(after.optimiser.value), rel=1e-12)
    failed = after.optimiser._replace(failed=jnp.asarray(True), damping=jnp.asarray(1e8))
    restarted = made.restart(objective, after._replace(optimiser=failed))
    assert not bool(restarted.optimiser.failed)
    assert float(restarted.optimiser.damping) == made.optimiser.damping
    retried = jax.jit(lambda s: made.retry(objective, s))(after)
    assert float(retried.optimiser.damping) > float(after.optimiser.damping)
    assert int(retried.optimiser.steps) == 10


@pytest.mark.slow
def test_single_precision():
    with jax.enable_x64(False):
        state = lm.minimise(rosenbrock, jnp.array([-1.2, 1.0]), 60)
        assert state.theta.dtype == state.damping.dtype == jnp.float32
        np.testing.assert_allclose(state.theta, [1, 1], rtol=1e-3)
        objective, theta, samples, context = case("allen-cahn-dirichlet", "float32")
        system = LossSystem(objective, samples, context, jax.random.key(0))
        optimiser = lm.LevenbergMarquardt()
        after = jax.eval_shape(lambda s: optimiser.step(system, s), optimiser.init(system, theta))
        assert after.theta.dtype == after.value.dtype == jnp.float32
