"""The trust region that aims at a ratio: its identities, known answers, and the sums it is made from."""

from __future__ import annotations

from functools import partial

import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy
from hyrespinn.algebra import STRIP, Columns, NormalEquations, Triangle, gram
from hyrespinn.losses.normal import normal_equations, triangle
from hyrespinn.optim import rational_krylov as krylov
from hyrespinn.optim import trust_region as tr

from test_levenberg_marquardt import case, oracle

pytestmark = pytest.mark.usefixtures("x64")


def random_matrix(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape))


def problem_of(J, r):
    """The normal equations of ``‖r + Jδ‖²``."""
    return NormalEquations(r @ r, J.T @ r, gram(J.T))


@pytest.mark.parametrize("n", [5, STRIP + 3])
def test_gram_is_the_lower_half_of_the_product(n):
    B = random_matrix(n, 40)
    np.testing.assert_allclose(gram(B), np.tril(B @ B.T), rtol=1e-12, atol=1e-12)


def test_normal_equations_multiply_with_the_whole_matrix():
    J, r, V = random_matrix(30, 8), random_matrix(30, seed=1), random_matrix(8, 3, seed=2)
    np.testing.assert_allclose(problem_of(J, r).times(V), J.T @ (J @ V), rtol=1e-12)


def test_random_columns_are_orthonormal_and_come_back_as_they_went():
    columns = Columns.draw(jax.random.key(3), 50, 20, jnp.dtype("float64"))
    omega = columns.lifted(jnp.eye(20))
    assert omega.shape == (50, 20)
    np.testing.assert_allclose(omega.T @ omega, np.eye(20), atol=1e-12)
    J = random_matrix(9, 50)
    np.testing.assert_allclose(columns.of(J.T), (J @ omega).T, atol=1e-12)
    np.testing.assert_allclose(columns.projected(J[0]), omega.T @ J[0], atol=1e-12)
    cosines = scipy.fft.idct(np.eye(50), axis=0, norm="ortho")  # written out
    spread = cosines[:, np.asarray(columns.chosen)]
    known = np.zeros((50, 20))
    known[np.asarray(columns.order)] = spread
    np.testing.assert_allclose(omega, np.asarray(columns.signs)[:, None] * known, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("darcy-2d-neumann", {"model.gates.penalty": 0.1}),
        pytest.param("grey-scott", {}, marks=pytest.mark.slow),
    ],
)
def test_the_sums_are_those_of_the_whole_jacobian(name, changes):
    """In chunks that do not divide the points, with a mean over all of them and with a penalty."""
    objective, theta, samples, context = case(name, **changes)
    rows, jacobian = oracle(objective, theta, samples, context)
    columns = Columns.draw(jax.random.key(1), theta.size, 7, theta.dtype)
    sums = partial(normal_equations, objective, samples=samples, context=context, chunk=10)
    whole, some = jax.jit(lambda t: (sums(t), sums(t, columns=columns)))(theta)
    product = jacobian.T @ jacobian
    scale = float(jnp.max(jnp.abs(product)))
    assert float(whole.value) == pytest.approx(float(rows @ rows), rel=1e-12)
    np.testing.assert_allclose(whole.gradient, rows @ jacobian, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(whole.matrix, np.tril(product), rtol=1e-9, atol=1e-12 * scale)
    omega = columns.lifted(jnp.eye(7))
    np.testing.assert_allclose(
        some.matrix, np.tril(omega.T @ product @ omega), rtol=1e-8, atol=1e-11 * scale
    )


def space(J, r, damping):
    last = jnp.zeros(J.shape[1])
    return krylov.space_of(problem_of(J, r), jnp.asarray(damping), last)


@pytest.mark.parametrize("pole", krylov.POLES)
def test_the_damped_step_of_every_pole_is_exact(pole):
    J, r = random_matrix(60, 25), random_matrix(60, seed=1)
    damping = 0.3 * pole
    found = space(J, r, 0.3).step(jnp.asarray(damping))
    known = np.linalg.solve(J.T @ J + damping * np.eye(25), -J.T @ r)
    np.testing.assert_allclose(found, known, rtol=1e-8, atol=1e-10)


def test_steps_have_the_length_of_their_radius_and_predict_what_they_gain():
    J, r = random_matrix(60, 25), random_matrix(60, seed=1)
    few = space(J, r, 3.0)
    for radius in (0.01, 0.1, 0.3):
        damping = few.damping(jnp.asarray(radius))
        change = few.step(damping)
        assert float(jnp.linalg.norm(change)) == pytest.approx(radius, rel=1e-6)
        gain = float(r @ r - jnp.sum((r + J @ change) ** 2))
        assert float(few.predicted(damping)) == pytest.approx(gain, rel=1e-9)


def test_a_radius_beyond_the_solution_gives_the_solution():
    J, r = random_matrix(60, 4), random_matrix(60, seed=1)
    few = space(J, r, 1.0)
    damping = few.damping(jnp.asarray(1e3))
    known = np.linalg.lstsq(J, -r)[0]
    np.testing.assert_allclose(few.step(damping), known, rtol=1e-8, atol=1e-10)


def search(ratios, wanted=0.075):
    """A search among steps of the lengths 1, 2, … with these ratios; and the places that it tried."""
    tried = []

    def candidate(place):
        jax.debug.callback(lambda k: tried.append(int(k)), place)
        length = place + 1.0
        return tr.Candidate(length[None], 1 / (1 + length), jnp.asarray(ratios)[place])

    found = tr.searched(candidate, jnp.asarray(wanted), len(ratios))
    jax.effects_barrier()
    return found, sorted(tried)


@pytest.mark.parametrize(
    ("ratios", "best", "tried"),
    [
        # From the last radius, in the middle, upwards to the first that does not keep its promise;
        # one beyond it is not trusted, whatever it gave.
        ([0.0, 0.0, 0.9, 0.1, 0.01], 3, [2, 3, 4]),
        ([0.0, 0.0, 0.9, 0.01, 0.9], 2, [2, 3]),
        ([0.0, 0.0, 0.9, 0.9, 0.9], 4, [2, 3, 4]),
        # Downwards to the first that does.
        ([0.9, 0.9, 0.01, 0.9, 0.9], 1, [1, 2]),
        ([0.9, 0.0, 0.01, 0.9, 0.9], 0, [0, 1, 2]),
        ([0.0, 0.0, 0.01, 0.9, 0.9], -1, [0, 1, 2]),
    ],
)
def test_the_largest_step_that_keeps_its_promise_is_looked_for_from_the_last_radius(
    ratios, best, tried
):
    found, places = search(ratios)
    assert (int(found.best), places, int(found.tried)) == (best, tried, len(tried))
    if best >= 0:
        assert float(found.longest.change[0]) == best + 1


def after(ratios, wanted=0.075, **fields):
    """The state after a step for which these ratios were found."""
    rule = hp.optim.TrustRegion()
    state = tr.blank(jnp.zeros(1), rule)._replace(value=jnp.asarray(1.0), **fields)
    count = len(ratios)
    radii = 10 * jnp.arange(1.0, count + 1)
    return tr._moved(state, search(ratios, wanted)[0], radii, jnp.ones(count), rule)


def test_the_step_that_was_found_is_taken():
    state = after([0.0, 0.9, 0.5])
    assert float(state.theta[0]) == 3
    assert float(state.value) == 0.25
    assert float(state.radius) == 30
    assert float(after([0.0, 0.9, 0.5], wanted=0.6).theta[0]) == 2


def test_where_no_step_keeps_its_promise_the_radius_shrinks():
    state = after([0.0, 0.0, 0.9])
    assert float(state.theta[0]) == 0
    assert float(state.value) == 1.0
    assert float(state.radius) == pytest.approx(1 / 9)
    assert not state.failed


def test_ten_steps_without_progress_fail():
    ninth = {"steps": jnp.asarray(9), "mark": jnp.asarray(1.0)}
    assert not after([0.9, 0.5, 0.1], **ninth).failed  # a quarter is left
    assert after([0.9, 0.5, 0.1], **{**ninth, "mark": jnp.asarray(0.25)}).failed


def curved(theta):
    """Rows whose minimum lies along a curved valley (Rosenbrock's)."""
    return jnp.stack([10 * (theta[1] - theta[0] ** 2), 1 - theta[0]])


def pull(theta, vector):
    return jax.vjp(curved, theta)[1](vector)[0]


def test_the_second_order_is_that_of_the_rows():
    theta, change = jnp.array([0.3, -0.2]), jnp.array([0.5, 1.5])
    found = tr.second_order(curved, pull, theta, change)
    jacobian = jax.jacfwd(curved)(theta)
    hessian = jax.jacfwd(jax.jacfwd(curved))(theta)
    known = jacobian.T @ jnp.einsum("kij,i,j->k", hessian, change, change)
    np.testing.assert_allclose(found, known, rtol=1e-9)


def test_bent_steps_go_further_along_a_curved_valley():
    begin = jnp.array([-1.2, 1.0])

    def steps(bent):
        rule = hp.optim.TrustRegion(bent=bent, progress=1e-9)
        state = tr.renewed(lambda t: jnp.sum(curved(t) ** 2), tr.blank(begin, rule))
        count = 0
        while float(state.value) > 1e-20 and count < 60:
            state, count = one_step(state, rule), count + 1
        assert float(state.value) <= 1e-20
        np.testing.assert_allclose(state.theta, [1, 1], atol=1e-9)
        return count

    assert steps(True) < steps(False)


@partial(jax.jit, static_argnames="rule")
def one_step(state, rule):
    def normal(theta):
        rows, jacobian = curved(theta), jax.jacfwd(curved)(theta)
        return NormalEquations(rows @ rows, rows @ jacobian, gram(jacobian.T))

    return tr.step(normal, curved, pull, lambda t: jnp.sum(curved(t) ** 2), state, rule)


@pytest.mark.parametrize(
    "stage",
    [
        "trust-region(steps=25, round_steps=25)",
        pytest.param(
            "trust-region(steps=25, columns=40, columns_above=60)", marks=pytest.mark.slow
        ),
        pytest.param("trust-region(steps=25, rows=300)", marks=pytest.mark.slow),
    ],
)
def test_a_network_is_trained(stage):
    settings = {"model.width": 6, "model.kernels.count": 6, "model.deep.depth": 1, "stages": stage}
    settings |= {"points.interior": 400, "model.deep.fourier": None}
    solution = hp.solve("poisson-2d", method="network", settings=settings, progress=False)
    assert solution.result["rel_l2"]["u"] < (1e-4 if "rows" not in stage else 1e-2)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"ratio": 0.6}, "0 < ratio ≤ late_ratio < 1"),
        ({"spread": 1.0}, "spread above 1"),
        ({"progress": 0.0}, "progress is a share"),
        ({"columns": 0}, "at least one round and one column"),
    ],
)
def test_settings_that_make_no_sense_are_refused(fields, words):
    with pytest.raises(hp.UserError, match=words):
        hp.optim.TrustRegion(**fields)


# The same by orthogonal transformations.


def test_a_triangle_says_what_the_whole_jacobian_does():
    """Made of chunks that do not divide the points, for some columns too."""
    objective, theta, samples, context = case("darcy-2d-neumann", **{"model.gates.penalty": 0.1})
    rows, jacobian = oracle(objective, theta, samples, context)
    columns = Columns.draw(jax.random.key(1), theta.size, 7, theta.dtype)
    sums = partial(triangle, objective, samples=samples, context=context, chunk=10)
    whole, some = jax.jit(lambda t: (sums(t), sums(t, columns=columns)))(theta)
    for found, known in ((whole, jacobian), (some, jacobian @ columns.lifted(jnp.eye(7)))):
        product, slope = known.T @ known, known.T @ rows
        scale = float(jnp.max(jnp.abs(product)))
        R = np.asarray(found.matrix)
        np.testing.assert_array_equal(R, np.triu(R))
        np.testing.assert_allclose(R.T @ R, product, rtol=1e-8, atol=1e-11 * scale)
        np.testing.assert_allclose(R.T @ found.rows, slope, rtol=1e-8, atol=1e-10)
    assert float(jnp.sum(whole.both[:, -1] ** 2)) == pytest.approx(float(rows @ rows), rel=1e-12)


def triangle_of(J, r):
    return Triangle.empty(J.shape[1], r.dtype).with_rows(r, J)


def test_the_whole_space_has_the_exact_step_of_every_damping():
    J, r = random_matrix(60, 25), random_matrix(60, seed=1)
    found = krylov.whole_space(triangle_of(J, r), jnp.asarray(0.3))
    for damping in (1e-6, 0.3, 40.0):
        inverse = np.linalg.inv(J.T @ J + damping * np.eye(25))
        change = found.step(jnp.asarray(damping))
        np.testing.assert_allclose(change, -inverse @ (J.T @ r), rtol=1e-9, atol=1e-11)
        gain = float(r @ r - jnp.sum((r + J @ change) ** 2))
        assert float(found.predicted(jnp.asarray(damping))) == pytest.approx(gain, rel=1e-9)
    known = np.linalg.solve(J.T @ J + 0.3 * np.eye(25), J[0])
    np.testing.assert_allclose(found.solve(J[0]), known, rtol=1e-9)


def test_a_triangle_keeps_the_digits_that_normal_equations_lose():
    """Columns of sizes from 1 to 1e-9: the smallest squared is below the rounding of the largest."""
    J = random_matrix(60, 10) * jnp.logspace(0, -9, 10)
    r = -J @ jnp.ones(10)
    change = krylov.whole_space(triangle_of(J, r), jnp.asarray(1.0)).step(jnp.asarray(1e-26))
    np.testing.assert_allclose(change, np.ones(10), rtol=1e-4)
    rough = krylov.space_of(problem_of(J, r), jnp.asarray(1e-20), jnp.zeros(10))
    assert float(jnp.max(jnp.abs(rough.step(rough.floor) - 1))) > 0.1


@pytest.mark.parametrize("precise", [False, True])
def test_both_linear_models_lead_along_the_valley(precise):
    """Rosenbrock's, as ``minimise`` does it with normal equations."""
    rule = hp.optim.TrustRegion(precise=precise)

    def model(theta):
        found, jacobian = curved(theta), jax.jacfwd(curved)(theta)
        return (triangle_of if precise else problem_of)(jacobian, found)

    def value(theta):
        return jnp.sum(curved(theta) ** 2)

    state = tr.renewed(value, tr.blank(jnp.array([-1.2, 1.0]), rule))
    advance = jax.jit(lambda s: tr.step(model, curved, pull, value, s, rule))
    for _ in range(25):
        state = advance(state)
    np.testing.assert_allclose(state.theta, [1.0, 1.0], atol=1e-6)
