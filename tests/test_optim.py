"""The optimisers: defining identities, and problems with known answers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.algebra import NormalEquations, gram
from hyrespinn.optim import adam, ssbroyden
from hyrespinn.optim.line_search import strong_wolfe
from hyrespinn.optim.optimiser import System

pytestmark = pytest.mark.usefixtures("x64")
RULES = {
    "ssbroyden": ssbroyden.ssbroyden_rule,
    "ssbfgs": ssbroyden.ssbfgs_rule,
    "bfgs": ssbroyden.bfgs_rule,
}


def random_case(seed: int, n: int = 7):
    """A positive definite H, and a step and a change of gradient with yᵀs > 0."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n))
    H = root @ root.T + 0.1 * np.eye(n)
    g, s = rng.normal(size=n), rng.normal(size=n)
    s = s * -np.sign(g @ s)
    y = rng.normal(size=n)
    y = y + s * (abs(y @ s) + 1) / (s @ s)
    return (jnp.asarray(v) for v in (H, s, y, g))


def applied(change, H):
    return change.scale * H + change.columns.T @ change.rows


def textbook(H, s, y, tau, phi):
    """H₊ as printed, term by term, with numpy."""
    H, s, y = (np.asarray(v) for v in (H, s, y))
    Hy, ys = H @ y, y @ s
    yHy = y @ Hy
    v = s / ys - Hy / yHy
    return (H - np.outer(Hy, Hy) / yHy + phi * yHy * np.outer(v, v)) / tau + np.outer(s, s) / ys


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(5))
def test_update_satisfies_the_secant_equation_and_stays_positive_definite(rule, seed):
    H, s, y, g = random_case(seed)
    change = ssbroyden.update(s, y, H @ y, s @ g, jnp.asarray(0.7), RULES[rule])
    new = applied(change, H)
    np.testing.assert_allclose(new @ y, s, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(new, new.T, rtol=1e-10, atol=1e-10)
    assert np.linalg.eigvalsh(np.asarray(new)).min() > 0
    x = jnp.arange(1.0, 8.0)
    np.testing.assert_allclose(change.times(H @ x, x), new @ x, rtol=1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_update_is_the_printed_formula(rule):
    H, s, y, g = random_case(3)
    chosen = RULES[rule]
    a, Hy = jnp.asarray(0.7), H @ y
    tau, phi = chosen(ssbroyden.Scalars(y @ s, y @ Hy, s @ g, a, 7))
    new = applied(ssbroyden.update(s, y, Hy, s @ g, a, chosen), H)
    np.testing.assert_allclose(new, textbook(H, s, y, float(tau), float(phi)), rtol=1e-10)


def test_unit_parameters_are_bfgs():
    """τ = φ = 1 is the BFGS formula (I − ρsyᵀ)H(I − ρysᵀ) + ρssᵀ."""
    H, s, y, g = random_case(1)
    new = applied(ssbroyden.update(s, y, H @ y, s @ g, jnp.asarray(1.0), ssbroyden.bfgs_rule), H)
    rho = 1 / float(y @ s)
    left = np.eye(7) - rho * np.outer(s, y)
    np.testing.assert_allclose(new, left @ H @ left.T + rho * np.outer(s, s), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_an_exact_inverse_is_kept_within_a_factor_of_ten(rule):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    A = jnp.asarray(root @ root.T + np.eye(6))
    H = jnp.linalg.inv(A)
    g = jnp.asarray(rng.normal(size=6))
    for a in (1.0, 0.4, 1.7):  # an exact Newton step, and ones that are too short and too long
        s = -a * H @ g
        y = A @ s
        new = applied(ssbroyden.update(s, y, H @ y, s @ g, jnp.asarray(a), RULES[rule]), H)
        ratio = np.linalg.eigvals(np.asarray(new @ A)).real
        assert ratio.min() > 0.1
        assert ratio.max() < 10


@pytest.mark.parametrize("radius", [1e-6, 1e-2, 1.0])
def test_a_matrix_is_trusted_within_a_radius(x64, radius):
    """``(H⁻¹ + λI)⁻¹`` by the eigenvectors of ``H``, for the ``λ`` that is read off the result."""
    rng = np.random.default_rng(0)
    vectors, _ = np.linalg.qr(rng.normal(size=(20, 20)))
    values = np.logspace(-6, 6, 20)
    H, g = jnp.asarray(vectors * values @ vectors.T), jnp.asarray(rng.normal(size=20))
    found = np.asarray(ssbroyden.trusted(H, g, jnp.asarray(radius)))
    length = np.linalg.norm(found @ g)
    assert 0.4 * radius <= length <= radius
    shift = vectors[:, -1] @ np.linalg.solve(found, vectors[:, -1]) - 1 / values[-1]
    expected = vectors * (values / (1 + shift * values)) @ vectors.T
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


def test_a_matrix_with_a_short_step_is_trusted_as_it_is(x64):
    H, g = jnp.diag(jnp.array([2.0, 3.0])), jnp.array([1.0, 1.0])
    np.testing.assert_array_equal(ssbroyden.trusted(H, g, jnp.asarray(4.0)), H)


def test_a_step_without_curvature_leaves_the_matrix_alone():
    H, s, y, g = random_case(2)
    new = applied(
        ssbroyden.update(s, -y, H @ -y, s @ g, jnp.asarray(1.0), ssbroyden.ssbroyden_rule), H
    )
    np.testing.assert_array_equal(new, H)


@pytest.mark.parametrize("count", [1, 3, ssbroyden.COLLECTED])
def test_collected_updates_are_the_updates_one_by_one(count):
    whole, *_ = random_case(0)
    collected = ssbroyden.Collected.of(whole)
    x = jnp.arange(1.0, 8.0)
    for seed in range(count):
        _, s, y, g = random_case(seed)
        a = jnp.asarray(0.7)
        change = ssbroyden.update(s, y, whole @ y, s @ g, a, ssbroyden.ssbroyden_rule)
        change = change._replace(scale=change.scale * 1.1)
        whole, collected = applied(change, whole), collected.with_change(change)
        np.testing.assert_allclose(collected @ x, whole @ x, rtol=1e-9)
    np.testing.assert_allclose(collected.whole(), whole, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("rows", [1, 3, 7, 100])
def test_updates_are_worked_in_some_rows_at_a_time(rows, monkeypatch):
    monkeypatch.setattr(ssbroyden, "ROWS", rows)
    H, s, y, g = random_case(0)
    change = ssbroyden.update(s, y, H @ y, s @ g, jnp.asarray(0.7), ssbroyden.ssbroyden_rule)
    found = ssbroyden.Collected.of(H).with_change(change).whole()
    np.testing.assert_allclose(found, applied(change, H), rtol=1e-12)


def test_steps_do_not_depend_on_when_updates_are_worked_in(monkeypatch):
    def point(collected):
        monkeypatch.setattr(ssbroyden, "COLLECTED", collected)
        return ssbroyden.minimise(jax.value_and_grad(rosenbrock), jnp.full(4, -1.2), 20)

    one, many = point(1), point(7)
    assert int(one.steps) == int(many.steps) == 20
    np.testing.assert_allclose(one.theta, many.theta, rtol=1e-7)
    np.testing.assert_allclose(one.inverse_hessian, many.inverse_hessian, rtol=1e-5, atol=1e-7)


def rosenbrock(x):
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@pytest.mark.parametrize("rule", RULES)
def test_rosenbrock_is_solved(rule):
    function = jax.value_and_grad(rosenbrock)
    end = ssbroyden.minimise(function, jnp.full(4, -1.2), 300, RULES[rule])
    np.testing.assert_allclose(end.theta, 1.0, atol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 20])
def test_an_ill_conditioned_quadratic_is_solved(n):
    scales = jnp.logspace(0, 6, n)
    function = jax.value_and_grad(lambda x: 0.5 * jnp.sum(scales * x**2))
    end = ssbroyden.minimise(function, jnp.ones(n), 400)
    assert float(end.value) < 1e-18
    assert bool(jnp.all(jnp.isfinite(end.inverse_hessian)))


def test_the_start_at_the_minimum_stays_there():
    function = jax.value_and_grad(lambda x: jnp.sum(x**2))
    end = ssbroyden.minimise(function, jnp.zeros(3), 5)
    assert float(end.value) == 0.0
    assert int(end.steps) == 0


@pytest.mark.parametrize("first", [1e-6, 1.0, 1e4])
@pytest.mark.parametrize(
    "function",
    [rosenbrock, lambda x: jnp.sum(jnp.log(1 + x**2)), lambda x: jnp.sum(x**4)],
    ids=["rosenbrock", "log", "quartic"],
)
def test_line_search_gives_a_strong_wolfe_step(function, first):
    f = jax.value_and_grad(function)
    x = jnp.array([1.5, -0.7, 0.3])
    value, g = f(x)
    p = -g
    found = strong_wolfe(f, x, value, g, p, jnp.asarray(first))
    slope = float(g @ p)
    new_value, new_g = f(x + found.step * p)
    assert bool(found.success)
    assert float(new_value) <= float(value) + 1e-4 * float(found.step) * slope
    assert abs(float(new_g @ p)) <= 0.9 * abs(slope)
    np.testing.assert_allclose(found.gradient, new_g, rtol=1e-12)


def test_line_search_comes_back_from_where_the_function_is_not_a_number():
    f = jax.value_and_grad(lambda x: jnp.sum(x - jnp.log(x)))
    x = jnp.array([0.5])
    value, g = f(x)
    found = strong_wolfe(f, x, value, g, jnp.array([1.0]), jnp.asarray(1e9))
    backward = strong_wolfe(
        f, jnp.array([3.0]), *f(jnp.array([3.0])), jnp.array([-1.0]), jnp.asarray(1e9)
    )
    for result in (found, backward):
        assert bool(result.success)
        assert np.isfinite(float(result.value))


def test_line_search_reports_failure_uphill():
    f = jax.value_and_grad(lambda x: jnp.sum(x**2))
    x = jnp.array([1.0])
    found = strong_wolfe(f, x, *f(x), jnp.array([1.0]), jnp.asarray(1.0))
    assert not bool(found.success)


def test_the_adam_schedule_is_the_papers():
    rate = adam.schedule(1e-3, 5000, 0.9, 2000)
    assert float(rate(0)) == 0.0
    assert float(rate(2500)) == pytest.approx(5e-4)
    assert float(rate(5000)) == pytest.approx(1e-3)
    assert float(rate(7000)) == pytest.approx(9e-4)
    assert float(rate(9000)) == pytest.approx(8.1e-4)


def test_adam_follows_its_formula():
    """Two steps by hand: bias-corrected moments."""
    f = jax.value_and_grad(lambda x: jnp.sum(jnp.array([1.0, 10.0]) * x**2))
    state = adam.start(jnp.ones(2), adam.moments())
    x, m, v = np.ones(2), np.zeros(2), np.zeros(2)
    for k in (1, 2):
        state = adam.step(f, state, lambda _: 0.1, adam.moments())
        g = np.array([2.0, 20.0]) * x
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        x = x - 0.1 * (m / (1 - 0.9**k)) / (np.sqrt(v / (1 - 0.999**k)) + 1e-8)
    np.testing.assert_allclose(state.theta, x, rtol=1e-12)


class Rows(System):
    """A system of rows that are nearly linear, of very different sizes."""

    def rows(self, theta):
        return jnp.logspace(0, -3, 40) * (theta - 1 + 0.05 * theta**2)

    def value_and_grad(self, theta):
        return jax.value_and_grad(lambda t: jnp.sum(self.rows(t) ** 2))(theta)

    def normal_equations(self, theta, columns=None):
        found, jacobian = self.rows(theta), jax.jacfwd(self.rows)(theta)
        return NormalEquations(found @ found, found @ jacobian, gram(jacobian.T))


def test_gauss_newtons_matrix_is_the_inverse_hessian_where_rows_are_small():
    theta = jnp.zeros(40)
    jacobian = jax.jacfwd(Rows().rows)(theta)
    found = ssbroyden.gauss_newton(Rows(), theta)
    np.testing.assert_allclose(found, np.linalg.inv(2 * jacobian.T @ jacobian), rtol=1e-5)


def test_ssbroyden_that_begins_with_it_needs_fewer_steps():
    system, found = Rows(), {}
    for begin in ("gauss-newton", "identity"):
        rule = ssbroyden.SSBroyden(begin=begin)
        state = rule.renew(system, rule.init(system, jnp.full(40, 0.5)))
        found[begin] = float(rule.advance(system, state, lambda s: s.steps < 50).value)
    assert found["gauss-newton"] < 1e-2 * found["identity"]
