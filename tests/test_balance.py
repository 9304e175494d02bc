"""Weights that follow the training, and causal weights."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.derivatives import lift
from hyrespinn.errors import UserError
from hyrespinn.geometry.sampling import uniform
from hyrespinn.losses.balance import Balance, gradient_norms, kernel_diagonals
from hyrespinn.losses.causal import Causality
from hyrespinn.losses.objective import Objective
from hyrespinn.losses.terms import Counts, Sampling, Weights
from hyrespinn.models import Model
from hyrespinn.problems.statement import state

pytestmark = pytest.mark.usefixtures("x64")
RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(5, 3)), RNG.normal(size=(7, 3))
b = RNG.normal(size=5)
START = np.asarray([0.3, -1.0, 2.0])
KEY = jax.random.key(0)


@pytest.fixture
def theta():
    return jnp.asarray(START)


def linear(theta):
    return {"one": jnp.asarray(A) @ theta - b, "two": jnp.asarray(B) @ theta}


def test_gradient_norms_of_linear_residuals(theta):
    norms = gradient_norms(linear, theta)
    for name, (matrix, right) in {"one": (A, b), "two": (B, 0)}.items():
        gradient = 2 / len(matrix) * matrix.T @ (matrix @ np.asarray(theta) - right)
        np.testing.assert_allclose(norms[name], np.linalg.norm(gradient), rtol=1e-12)


def test_kernel_diagonals_of_linear_residuals(theta):
    """The mean of the squared rows: to a few per cent with many probes, without bias."""
    found = kernel_diagonals(linear, theta, KEY, probes=4000)
    for name, matrix in {"one": A, "two": B}.items():
        np.testing.assert_allclose(found[name], np.mean(np.sum(matrix**2, axis=1)), rtol=0.06)


def test_kernel_diagonals_are_exact_where_rows_are_orthogonal(theta):
    scales = jnp.asarray([1.0, 2.0, 5.0])
    found = kernel_diagonals(lambda t: {"r": scales * t}, theta, KEY, probes=1)
    np.testing.assert_allclose(found["r"], np.mean(np.asarray(scales) ** 2), rtol=1e-12)


@pytest.mark.parametrize("scheme", ["gradient-norm", "ntk"])
def test_weights_move_towards_balance(scheme, theta):
    """λ ← m λ + (1−m) mean/size: repeated, all weighted sizes become equal."""
    balance = Balance(scheme, 0.9)
    start = {"one": jnp.asarray(1.0), "two": jnp.asarray(30.0)}
    once = balance.update(start, linear, theta, KEY)
    sizes = (
        gradient_norms(linear, theta)
        if scheme == "gradient-norm"
        else kernel_diagonals(linear, theta, KEY)
    )
    mean = (sizes["one"] + sizes["two"]) / 2
    for name in start:
        np.testing.assert_allclose(once[name], 0.9 * start[name] + 0.1 * mean / sizes[name])
    weights = start
    for _ in range(200):
        weights = balance.update(weights, linear, theta, KEY)
    np.testing.assert_allclose(weights["one"] * sizes["one"], weights["two"] * sizes["two"])


def test_a_solved_term_and_a_broken_one_do_no_harm(theta):
    start = {"a": jnp.asarray(1.0), "b": jnp.asarray(2.0)}
    solved = lambda t: {"a": t, "b": 0 * t}  # noqa: E731
    weights = Balance("gradient-norm", 0.5).update(start, solved, theta, KEY)
    assert np.isfinite(list(weights.values())).all()
    broken = lambda t: {"a": t, "b": t * jnp.nan}  # noqa: E731
    kept = Balance("gradient-norm", 0.5).update(start, broken, theta, KEY)
    assert {k: float(v) for k, v in kept.items()} == {"a": 1.0, "b": 2.0}
    nothing = lambda t: {"a": 0 * t, "b": 0 * t}  # noqa: E731
    kept = Balance("ntk").update(start, nothing, theta, KEY)
    assert {k: float(v) for k, v in kept.items()} == {"a": 1.0, "b": 2.0}


def test_fixed_weights_stay(theta):
    start = {"one": jnp.asarray(1.0)}
    assert Balance().update(start, linear, theta, KEY) is start


@pytest.mark.parametrize("count", [12, 13, 3])
def test_causal_weights_by_their_definition(count):
    """w_i = exp(−ε Σ_{k<i} L_k), the smaller one of two equations, in plain loops."""
    causality = Causality(4, (0.5, 3.0))
    vectors = {"a": RNG.normal(size=count), "b": RNG.normal(size=count)}
    means = {k: causality.means(jnp.asarray(v)) for k, v in vectors.items()}
    chunks = min(4, count)
    edges = np.linspace(0, count, chunks + 1).astype(int)
    expected = np.ones(chunks)
    for name, vector in vectors.items():
        squares = [np.mean(vector[i:j] ** 2) for i, j in pairwise(edges)]
        np.testing.assert_allclose(means[name], squares, rtol=1e-12)
        for i in range(chunks):
            expected[i] = min(expected[i], np.exp(-3.0 * sum(squares[:i])))
    weights = causality.weights(means, jnp.asarray(1))
    np.testing.assert_allclose(weights, expected, rtol=1e-12)
    scaled = causality.scaled(jnp.asarray(vectors["a"]), weights)
    member = np.searchsorted(edges[1:], np.arange(count), side="right")
    np.testing.assert_allclose(scaled**2, vectors["a"] ** 2 * expected[member], rtol=1e-12)


def test_the_next_tolerance_comes_when_all_weights_have_passed():
    causality = Causality(2, (0.1, 1.0, 10.0))
    level = jnp.asarray(0)
    assert causality.next_level(jnp.asarray([1.0, 0.98]), level) == 0
    for expected in (1, 2, 2):
        level = causality.next_level(jnp.asarray([1.0, 0.995]), level)
        assert level == expected


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Causality(-1), "causal chunks cannot"),
        (lambda: Causality(2, ()), "causal tolerances must"),
        (lambda: Causality(2, (1.0, 0.0)), "positive"),
        (lambda: Balance("ntk", 1.0), "momentum of balanced"),
    ],
)
def test_bad_settings_are_named(make, message):
    with pytest.raises(UserError, match=message):
        make()


class Decay(hp.Problem):
    """u_t = −u and v_t = u, whose "network" is a plain function of two numbers."""

    domain = hp.TimeBox(t=(0, 2), x=(0, 1))
    fields = ("u", "v")

    def residual(self, u, v, p):
        return u.t + u, v.t - u

    def conditions(self):
        return [hp.Initial(1.0, "u"), hp.Initial(lambda p: p.x, "v")]


class Curve(Model):
    theta: jax.Array

    def __call__(self, x):
        a, b = self.theta
        return lift(
            lambda x: jnp.stack([jnp.exp(-a * x[..., 0]), b * x[..., 0] + x[..., 1]], axis=-1), x
        )


@cache
def objective(**options):
    problem = Decay()
    return Objective(
        state(problem), Curve, weights=Weights(2.0, 30.0),
        sampling=Sampling(Counts(20, 6, 4), uniform, jnp.dtype("float64")), **options,
    )  # fmt: skip


def test_the_loss_with_causal_weights_by_hand():
    made = objective(causality=Causality(5, (2.0,)))
    theta = jnp.asarray([0.7, 0.4])
    samples = made.draw(KEY)
    t = np.asarray(samples["interior"].points[:, 0])
    assert (np.diff(t) >= 0).all()
    one = (1 - 0.7) * np.exp(-0.7 * t)
    two = 0.4 - np.exp(-0.7 * t)
    means = [r.reshape(5, 4) ** 2 @ np.full(4, 0.25) for r in (one, two)]
    weights = np.minimum(*(np.exp(-2.0 * (np.cumsum(m) - m)) for m in means))
    expected = 2.0 * np.mean(weights * means[0]) + 2.0 * np.mean(weights * means[1])
    losses = made.losses(theta, samples)
    np.testing.assert_allclose(losses["total"], expected, rtol=1e-12)
    np.testing.assert_allclose(losses["residual_1"], np.mean(one**2), rtol=1e-12)
    assert losses["initial_u"] == losses["initial_v"] == 0


def test_frozen_causal_weights_make_one_smooth_function():
    """The gradient is that of the value, as a line search needs it; live weights are not."""
    made = objective(causality=Causality(5, (2.0,)))
    theta, direction = jnp.asarray([0.7, 0.4]), jnp.asarray([1.0, -0.5])
    samples = made.draw(KEY)
    live = made.context()
    frozen = made.frozen(theta, samples, live)
    np.testing.assert_allclose(
        made.value(theta, samples, frozen), made.value(theta, samples, live), rtol=1e-12
    )

    def difference(context):
        h = 1e-5
        ahead, behind = (made.value(theta + s * h * direction, samples, context) for s in (1, -1))
        return (ahead - behind) / (2 * h)

    slope = made.value_and_grad(samples, frozen)(theta)[1] @ direction
    np.testing.assert_allclose(difference(frozen), slope, rtol=1e-7)
    assert abs(difference(live) - slope) > 1e-3 * abs(slope)


def test_rebalancing_uses_what_the_loss_counts():
    made = objective(causality=Causality(5, (1e-6, 2.0)), balance=Balance("gradient-norm", 0.0))
    theta = jnp.asarray([0.7, 0.4])
    samples = made.draw(KEY)
    context = made.rebalanced(theta, samples, made.context(), KEY)
    assert context.level == 1
    pulls = {}
    for name, weight in context.weights.items():
        alone = {k: jnp.where(k == name, 1.0, 0.0) for k in context.weights}
        gradient = made.value_and_grad(samples, made.context()._replace(weights=alone))(theta)[1]
        pulls[name] = float(weight * jnp.linalg.norm(gradient))
    assert pulls["initial_u"] == pulls["initial_v"] == 0
    np.testing.assert_allclose(pulls["residual_1"], pulls["residual_2"], rtol=1e-9)


def test_no_time_no_causality():
    problem = hp.problems.problem_named("poisson-2d")()
    made = Objective(
        state(problem), lambda theta: lambda x: theta[0] * x[..., :1], weights=Weights(),
        sampling=Sampling(Counts(8, 4, 4), uniform, jnp.dtype("float64")),
        causality=Causality(4),
    )  # fmt: skip
    assert not made.causality
