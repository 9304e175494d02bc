"""Operators carried through a network in place of their highest derivatives."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.derivatives import closure, concatenate, coordinates, exp, lift, sin, square, tanh
from hyrespinn.models import PINN, Deep, HyResPINN, Moving
from hyrespinn.models.parameters import flatten
from hyrespinn.models.window import InWindow
from hyrespinn.problems import PROBLEMS, problem_named
from hyrespinn.problems.boundary import Lifted
from hyrespinn.problems.principal_part import PrincipalPart
from hyrespinn.problems.statement import Statement, state

from helpers import some_slow

pytestmark = pytest.mark.usefixtures("x64")
POINTS = np.random.default_rng(1).uniform(0.3, 0.9, (7, 2))
# Mixed, of different orders, with coefficients that vary.
OPERATORS = [{(2, 0): np.float64(-0.7), (1, 2): 1 + POINTS[:, 0] ** 2}, {(3, 0): POINTS[:, 1]}]


def series_with(operators):
    """The coordinates with these operators and what they need."""
    highest = {index for operator in operators for index in operator}
    carried = [i for i in closure(highest, 2) if i not in highest]
    arrays = [{i: jnp.asarray(c) for i, c in operator.items()} for operator in operators]
    return coordinates(jnp.asarray(POINTS), closure(carried, 2), arrays)


def whole(x):
    """Every rule that a layer can use."""
    y = tanh(x @ jnp.array([[0.3, -1.2, 0.5], [0.8, 0.4, -0.6]]) + 0.1)
    z = square(y) - 2 * y * exp(y * 0.3) + 1
    mixed = lift(lambda a: jnp.cos(a[..., :1]) * a[..., 1:2], z)
    return concatenate([mixed, sin(z), x]) / 1.5


@pytest.mark.parametrize("operator", OPERATORS, ids=["mixed", "third"])
def test_an_operator_is_the_sum_of_its_derivatives(operator):
    apart = whole(coordinates(jnp.asarray(POINTS), closure(operator, 2)))
    together = whole(series_with([operator]))
    expected = sum(c.reshape(-1, 1) * apart[i] for i, c in operator.items())
    np.testing.assert_allclose(together[0], expected, rtol=1e-11, atol=1e-11)
    for index in together.indices:
        np.testing.assert_allclose(together[index], apart[index], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("operator", OPERATORS, ids=["mixed", "third"])
def test_the_gradient_of_an_operator(operator):
    def of(theta, x):
        return whole(x * theta)

    def together(theta):
        return jnp.sum(of(theta, series_with([operator]))[0] ** 2)

    def apart(theta):
        series = of(theta, coordinates(jnp.asarray(POINTS), closure(operator, 2)))
        return jnp.sum(sum(c.reshape(-1, 1) * series[i] for i, c in operator.items()) ** 2)

    theta = jnp.array([0.8, 1.3])
    expected = jax.jit(jax.grad(apart))(theta)
    np.testing.assert_allclose(jax.jit(jax.grad(together))(theta), expected, rtol=1e-10)


def test_the_gradient_by_the_coefficients_of_operators():
    """One for all points and one for each, through every rule; a parameter may be in both."""

    def together(theta):
        operator = {(2, 0): -theta, (1, 2): theta**2 * (1 + POINTS[:, 0] ** 2)}
        return jnp.sum(whole(series_with([operator]))[0] ** 2)

    def apart(theta):
        wanted = {(2, 0): -theta, (1, 2): theta**2 * (1 + POINTS[:, :1] ** 2)}
        series = whole(coordinates(jnp.asarray(POINTS), closure(wanted, 2)))
        return jnp.sum(sum(c * series[i] for i, c in wanted.items()) ** 2)

    expected = jax.jit(jax.value_and_grad(apart))(0.7)
    np.testing.assert_allclose(jax.jit(jax.value_and_grad(together))(0.7), expected, rtol=1e-10)


def test_two_operators_at_once():
    first, second = {(2, 0): np.float64(2), (0, 1): np.float64(1)}, {(2, 0): POINTS[:, 0]}
    both = whole(series_with([first, second]))
    np.testing.assert_allclose(both[0], whole(series_with([first]))[0], rtol=1e-12)
    np.testing.assert_allclose(both[1], whole(series_with([second]))[0], rtol=1e-12)


def test_series_with_other_operators_do_not_mix():
    one = series_with(OPERATORS[:1])
    with pytest.raises(ValueError, match="do not mix"):
        one * coordinates(jnp.asarray(POINTS), one.indices)
    with pytest.raises(ValueError, match="do not mix"):
        concatenate(
            [series_with([{(2, 0): np.float64(1)}]), series_with([{(0, 2): np.float64(1)}])]
        )
    with pytest.raises(KeyError):
        one[1]


def test_a_series_with_operators_is_a_tree():
    one = series_with(OPERATORS[:1])
    again = jax.jit(lambda x: x * 2.0)(one)
    np.testing.assert_array_equal(again[0], 2 * one[0])
    assert again.keys == one.keys


def problem_of(residual, fields=("u",), conditions=(), domain=None):
    """A problem with this residual and no fuss."""

    class Made(hp.Problem):
        pass

    Made.domain = domain or hp.Box(x=(0, 1), y=(0, 1))
    Made.fields = fields
    Made.residual = lambda self, *arguments: residual(*arguments)
    Made.conditions = lambda self: list(conditions)
    return Made()


class Found(NamedTuple):
    """A principal part, and the statement that it was found in."""

    part: PrincipalPart
    statement: Statement

    def at(self, points):
        return self.part.at(self.statement.residuals, points)


def found_in(residual, **settings):
    statement = state(problem_of(residual, **settings))
    part = statement.principal_part
    return None if part is None else Found(part, statement)


def apart(statement, solution, points):
    """The residuals with every derivative by itself."""
    return statement.residuals(solution(coordinates(points, statement.closure)), points)


def both_ways(problem, config, seed=0):
    """The residuals and the gradient of their squares, carried together and apart."""
    statement = state(problem)
    model = config.build(Lifted().inputs(statement), jax.random.key(seed))
    theta, assemble = flatten(model)
    theta = theta + 0.1 * jnp.cos(jnp.arange(theta.size))
    ansatz = Lifted().impose(statement).ansatz
    lower, upper = np.asarray(problem.domain.bounds).T
    points = jnp.asarray(np.random.default_rng(2).uniform(lower, upper, (20, lower.size)))

    def evaluate(residuals):
        def loss(theta):
            vectors = residuals(lambda x: ansatz(assemble(theta), x), points)
            return sum(jnp.mean(v**2) for v in vectors.values()), vectors

        return jax.jit(jax.value_and_grad(loss, has_aux=True))(theta)

    assert statement.principal_part is not None
    return evaluate(statement.residuals_at), evaluate(partial(apart, statement))


def agree(together, apart):
    ((_, vectors), gradient), ((_, expected), expected_gradient) = together, apart
    assert vectors.keys() == expected.keys()
    for name, vector in expected.items():
        size = float(jnp.max(jnp.abs(vector)))
        np.testing.assert_allclose(vectors[name], vector, rtol=1e-10, atol=1e-12 * size)
    size = float(jnp.linalg.norm(expected_gradient))
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-8, atol=1e-11 * size)


SOME = {"allen-cahn-dirichlet", "darcy-3d-neumann", "grey-scott", "korteweg-de-vries", "wave-1d"}


@pytest.mark.parametrize("name", some_slow(sorted(PROBLEMS), PROBLEMS.keys() - SOME))
def test_every_problem_gives_the_same_residual_and_gradient(name):
    agree(*both_ways(problem_named(name)(), PINN(width=6, depth=2)))


@pytest.mark.parametrize(
    "mu",
    [
        pytest.param(lambda p: 1 + p.x**2, marks=pytest.mark.slow),
        lambda p: [[1 + p.x**2, 0.1], [0.1, 2 + p.y]],
        pytest.param([[2.0, 0.3], [0.3, 1.0]], marks=pytest.mark.slow),
    ],
    ids=["field", "matrix of fields", "matrix"],
)
def test_permeabilities(mu):
    problem = problem_named("darcy-2d-dirichlet")(mu=mu)
    agree(*both_ways(problem, HyResPINN(width=6, kernels=Moving(8), deep=Deep(1))))


@jax.custom_vjp
def only_backwards(x):
    return 2 * x


only_backwards.defvjp(lambda x: (2 * x, None), lambda _, g: (2 * g,))
NOTHING = {
    "product": lambda u, p: u.xx * u.yy - 1,
    "squares": lambda u, p: u.xx**2 + u.yy**2,
    "quasilinear": lambda u, p: u * u.xx + u.x * u.yy,
    "abs": lambda u, p: jnp.abs(u.xx + u.yy),
    "stopped": lambda u, p: u.xx + u.yy + jax.lax.stop_gradient(u.xx) ** 2,
    "sign": lambda u, p: u.xx + u.yy + jnp.sign(u.yy),
    "small sign": lambda u, p: 1e-9 * (u.xx + u.yy + jnp.sign(u.xx)),
    "far step": lambda u, p: u.xx + u.yy - 10.0 * (u.xx > 1e5),
    "no forward mode": lambda u, p: only_backwards(u.xx) + u.yy,
    "whole number": lambda u, p: (u.xx + u.yy, jnp.where(u.value > 0, 1, 0)),
    "loop": lambda u, p: jax.lax.fori_loop(0, 3, lambda _, r: r * 0.5, u.xx + u.yy),
    "share of the points": lambda u, p: (u.xx + u.yy) / p.x.shape[0],
    "nowhere finite": lambda u, p: u.xx + u.yy + jnp.log(-1 - u.value**2),
    "one term": lambda u, p: u.xx - 1,
    "no derivative": lambda u, p: u * p.x,
}


@pytest.mark.parametrize("residual", NOTHING.values(), ids=NOTHING)
def test_where_there_is_nothing_to_combine(residual):
    assert found_in(residual) is None


def stepped(z):
    return jnp.array([1.0, 5.0])[jnp.searchsorted(jnp.array([0.999]), z)]


@pytest.mark.parametrize("coefficient", [stepped, jax.jit(lambda z: jax.nn.relu(z - 0.999))])
def test_one_function_of_two_coordinates_is_two_coefficients(coefficient):
    """A thin layer that no test point need lie in: only the program tells them apart."""
    found = found_in(lambda u, p: coefficient(p.x) * u.xx + coefficient(p.y) * u.yy)
    points = jnp.array([[0.9995, 0.5], [0.5, 0.9999]])
    ((operator,), _) = found.at(points)
    np.testing.assert_allclose(operator[2, 0], coefficient(points[:, 0]))
    np.testing.assert_allclose(operator[0, 2], coefficient(points[:, 1]))


def test_a_random_coefficient():
    key = jax.random.key(3)
    found = found_in(lambda u, p: u.xx + u.yy - jnp.sin(p.x * jax.random.normal(key)))
    assert set(found.part.indices) == {(2, 0), (0, 2)}


def test_roots_of_fields_are_no_obstacle():
    with jax.debug_nans(True):
        found = found_in(lambda u, p: u.xx + u.yy + jnp.sqrt(u.value))
    assert set(found.part.indices) == {(2, 0), (0, 2)}


def test_points_to_test_on_lie_in_the_domain():
    ring = hp.Annulus(0.5, 1.0)

    def residual(u, p):
        return jnp.sqrt(p.x**2 + p.y**2 - 0.25) * u.xx + u.yy

    found = found_in(residual, domain=ring)
    assert set(found.part.indices) == {(2, 0), (0, 2)}


def test_systems_with_coefficients_that_vary():
    def residual(u, v, p):
        k = 1 + p.x
        return k * u.xx + u.yy + u.xy - v, k * v.xx + v.yy + v.xy - u

    found = found_in(residual, fields=("u", "v"))
    assert [place[:3] for place in found.part.places] == [
        ("residual_1", 0, 0),
        ("residual_2", 1, 0),
    ]


def test_a_derivative_below_another_one_stays():
    found = found_in(lambda u, p: u * u.x + u.xx - u.yyy + p.x * u.xy)
    assert set(found.part.indices) == {(2, 0), (0, 3), (1, 1)}
    assert found.part.closure == ((0, 0), (0, 1), (1, 0), (0, 2))


def test_only_the_linear_derivatives_are_combined():
    found = found_in(lambda u, p: u.xx**2 + u.yy - p.x * u.xy)
    assert set(found.part.indices) == {(0, 2), (1, 1)}


def test_a_common_factor_is_taken_out():
    found = found_in(lambda u, p: jnp.exp(p.x) * u.laplacian)
    operators, (factor,) = found.at(jnp.asarray(POINTS))
    assert [float(c) for c in operators[0].values()] == [1.0, 1.0]
    np.testing.assert_allclose(factor, jnp.exp(POINTS[:, 0]), rtol=1e-14)


def test_fields_share_an_operator_with_equal_constants():
    found = found_in(lambda u, v, p: (u.laplacian - v, v.laplacian - u), fields=("u", "v"))
    assert [place[:3] for place in found.part.places] == [
        ("residual_1", 0, 0),
        ("residual_2", 1, 0),
    ]
    unlike = found_in(lambda u, v, p: (u.laplacian - v, u.xx + 2 * v.laplacian), fields=("u", "v"))
    assert unlike is None  # three operators for two derivatives


def test_a_compiled_residual_is_looked_into():
    inner = jax.jit(lambda xx, yy, u: 2 * xx + 3 * yy + jnp.sin(u))
    found = found_in(lambda u, p: inner(u.xx, u.yy, u.value))
    assert {i: float(c) for i, c in found.at(jnp.asarray(POINTS))[0][0].items()} == {
        (0, 2): 3,
        (2, 0): 2,
    }


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_coefficients_have_the_precision_of_the_points(precision):
    found = found_in(lambda u, p: 0.1 * u.xx + p.x * u.yy)
    for coefficient in found.at(jnp.asarray(POINTS, precision))[0][0].values():
        assert coefficient.dtype == precision


def test_a_foreign_model_carries_operators_too():
    """A plain function of arrays goes through nested forward mode."""
    statement = state(problem_named("allen-cahn-periodic")())
    points = (
        jnp.asarray(np.random.default_rng(0).uniform(-1, 1, (5, 2))) * jnp.array([0.4, 1.0]) + 0.1
    )

    def plain(x):
        return jnp.sin(x[..., :1] * 2 + jnp.cos(x[..., 1:]))

    def solution(x):
        return lift(plain, x)

    with_operator = statement.residuals_at(solution, points)
    without = apart(statement, solution, points)
    np.testing.assert_allclose(with_operator["residual"], without["residual"], rtol=1e-10)


def test_a_window_of_time_scales_the_operator():
    statement = state(problem_named("allen-cahn-periodic")())
    points = jnp.asarray(np.random.default_rng(0).uniform(0.1, 0.4, (5, 2)))
    inner = InWindow(
        lambda x: tanh(x @ jnp.array([[1.0], [0.5]])),
        jnp.asarray(0.1),
        jnp.asarray(0.3),
        (0.0, 1.0),
    )
    with_operator = statement.residuals_at(inner, points)
    without = apart(statement, inner, points)
    np.testing.assert_allclose(with_operator["residual"], without["residual"], rtol=1e-12)
