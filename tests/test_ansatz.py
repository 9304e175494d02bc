"""Conditions built into the solution: exact on the boundary, smooth inside, left to the loss where not."""

from __future__ import annotations

import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.derivatives import closure, coordinates, lift
from hyrespinn.geometry.sampling import uniform
from hyrespinn.models import Moving
from hyrespinn.problems.boundary import Lifted, Penalty
from hyrespinn.problems.fields import Point
from hyrespinn.problems.statement import state

LIFTED = Lifted()
LINE = hp.Box(x=(-1.0, 2.0))
SQUARE = hp.Box(x=(0.0, 2.0), y=(-1.0, 0.5))
CUBE = hp.Box(x=(0.0, 1.0), y=(-1.0, 1.0), z=(0.0, 3.0))
MOVIE = hp.TimeBox(t=(0.0, 2.0), x=(-1.0, 1.0))
SCENE = hp.TimeBox(t=(0.0, 1.0), x=(0.0, 1.0), y=(0.0, 2.0))


def problem(domain, conditions, fields=("u",)):
    body = {"domain": domain, "fields": fields, "conditions": lambda self: list(conditions)}
    body["residual"] = lambda self, u, *rest: u.x
    return type("Made", (hp.Problem,), body)()


def imposed(made, boundary=LIFTED):
    """The ansatz, and the conditions that are left to the loss."""
    statement = state(made)
    ansatz, left = boundary.impose(statement)
    return ansatz, [statement.conditions[place] for place in left]


def network(dimension, outputs=1):
    """A random smooth function of arrays and of series, bounded away from zero."""
    rng = np.random.default_rng(7)
    first, second = rng.normal(size=(dimension, 8)), rng.normal(size=(8, outputs))
    return lambda x: lift(lambda a: jnp.sin(a @ first + 0.3) @ second + 5.0, x)


def random_points(domain, count=30):
    return domain.interior(jax.random.key(0), count, uniform, jnp.dtype("float64"))


def wave(p):
    """Data that depend on every coordinate there is, the same function on every face."""
    total = 0.7
    for i, c in enumerate("txyz"):
        if c in p._columns:
            total = total + jnp.sin((i + 1) * getattr(p, c) + i)
    return total * jnp.exp(0.2 * total)


CASES = {
    "line": (LINE, [hp.Dirichlet(wave)]),
    "two numbers": (LINE, [hp.Dirichlet(2.0, on="x.min"), hp.Dirichlet(-3, on="x.max")]),
    "zero": (SQUARE, [hp.Dirichlet(0.0)]),
    "square": (SQUARE, [hp.Dirichlet(wave)]),
    "cube": (CUBE, [hp.Dirichlet(wave)]),
    "in time": (MOVIE, [hp.Dirichlet(wave)]),
    "square in time": (SCENE, [hp.Dirichlet(wave)]),
    "one face": (SQUARE, [hp.Dirichlet(wave, on="y.max")]),
    "one face each": (SQUARE, [hp.Dirichlet(wave, on=("x.max", "y.min"))]),
    "three faces": (SCENE, [hp.Dirichlet(wave, on=("x", "y.max"))]),
    "number and function": (
        SQUARE,
        [hp.Dirichlet(0.0, on="x"), hp.Dirichlet(lambda p: p.x * (2 - p.x), on="y.max")],
    ),
}
each_case = pytest.mark.parametrize(("domain", "conditions"), CASES.values(), ids=CASES.keys())


@each_case
def test_the_data_hold_on_the_boundary_for_any_network(domain, conditions, x64):
    ansatz, left = imposed(problem(domain, conditions))
    assert left == []
    for condition in conditions:
        pieces = domain.expand(condition.on)
        points, _ = domain.boundary(jax.random.key(1), 60, pieces, uniform, jnp.dtype("float64"))
        data = condition.value
        expected = data(Point(points, domain.coordinates)) if callable(data) else data
        values = ansatz(network(domain.dimension), points)[:, 0]
        np.testing.assert_allclose(values, expected * np.ones(60), rtol=0, atol=2e-14)


@each_case
def test_the_network_is_free_elsewhere(domain, conditions, x64):
    """Inside, and on faces without data, the solution still depends on the network."""
    ansatz, _ = imposed(problem(domain, conditions))
    given = {p for c in conditions for p in domain.expand(c.on)}
    free = [p for p in domain.pieces if p not in given]
    points = random_points(domain)
    if free:
        dtype = jnp.dtype("float64")
        points = domain.boundary(jax.random.key(1), 30, tuple(free), uniform, dtype)[0]
    raw = network(domain.dimension)
    change = ansatz(lambda x: raw(x) + 1.0, points) - ansatz(raw, points)
    assert np.all(np.abs(change) > 1e-6)


def nested(function, index):
    """One derivative of ``function(point)`` by reverse mode, one order at a time."""
    for axis, n in enumerate(index):
        for _ in range(n):
            function = (lambda f, axis: lambda x: jax.grad(f)(x)[axis])(function, axis)
    return function


@pytest.mark.parametrize("name", ["two numbers", "square", "in time", "three faces"])
def test_the_series_equals_nested_reverse_mode(name, x64):
    domain, conditions = CASES[name]
    ansatz, _ = imposed(problem(domain, conditions))
    raw = network(domain.dimension)
    wanted = [(2,)] if domain.dimension == 1 else [(1, 1, *((0,) * (domain.dimension - 2)))]
    wanted += [(*((0,) * (domain.dimension - 1)), 2)]
    indices = closure(wanted, domain.dimension)
    points = random_points(domain, 4)
    series = jax.jit(lambda points: ansatz(raw, coordinates(points, indices)))(points)
    for index in wanted:
        oracle = jax.vmap(nested(lambda x: ansatz(raw, x[None])[0, 0], index))
        expected = jax.jit(oracle)(points)
        np.testing.assert_allclose(series[index][:, 0], expected, rtol=1e-10, atol=1e-10)


AWKWARD = {
    "nan inside": (SQUARE, None, lambda p: jnp.where((p.x == 0) | (p.x == 2) | (p.y == -1)
                   | (p.y == 0.5), p.x + p.y, jnp.nan)),
    "root that ends at the face": (MOVIE, "x.max", lambda p: p.t + jnp.sqrt(p.x - 1.0)),
    "corner with a kink": (SQUARE, None, lambda p: jnp.sqrt(p.x**2 + (p.y + 1.0) ** 2)),
}  # fmt: skip


@pytest.mark.parametrize(("domain", "on", "data"), AWKWARD.values(), ids=AWKWARD.keys())
def test_data_are_read_on_the_boundary_alone(domain, on, data, x64):
    """Values and derivatives stay finite inside, whatever the data are away from their faces."""
    ansatz, left = imposed(problem(domain, [hp.Dirichlet(data, on=on)]))
    assert left == []
    points = random_points(domain)
    indices = closure([(1, 1), (0, 2), (2, 0)], 2)
    raw = network(2)
    assert np.all(np.isfinite(ansatz(raw, points)))
    series = jax.jit(lambda points: ansatz(raw, coordinates(points, indices)))(points)
    unfinite = [index for index in indices if not np.all(np.isfinite(series[index]))]
    assert unfinite == []


def test_data_that_jump_at_a_corner_go_to_the_loss():
    lid = [hp.Dirichlet(1.0, on="y.max"), hp.Dirichlet(0.0, on=("x", "y.min"))]
    with pytest.warns(
        UserWarning, match="boundary data of u jump where faces meet.*term of the loss"
    ):
        ansatz, left = imposed(problem(SQUARE, lid))
    assert left == lid
    points = jnp.ones((3, 2))
    np.testing.assert_array_equal(ansatz(network(2), points), network(2)(points))


def test_only_the_field_that_jumps_goes_to_the_loss():
    jumping = [hp.Dirichlet(1.0, "x", "u"), hp.Dirichlet(0.0, "y", "u")]
    held = hp.Dirichlet(2.0, None, "v")
    with pytest.warns(UserWarning, match="data of u jump"):
        ansatz, left = imposed(problem(SQUARE, [held, *jumping], ("u", "v")))
    assert left == jumping
    points, _ = SQUARE.boundary(jax.random.key(0), 8, SQUARE.pieces, uniform, jnp.dtype("float32"))
    np.testing.assert_allclose(ansatz(network(2, 2), points)[:, 1], 2.0, atol=1e-5)


@pytest.mark.parametrize(
    ("boundary", "own", "is_built_in"),
    [
        (Lifted(), None, True),
        (Penalty(), None, False),
        (Lifted(), False, False),
        (Penalty(), True, True),
    ],
)
def test_exactness_is_the_conditions_choice_then_the_treatments(boundary, own, is_built_in):
    condition = hp.Dirichlet(1.0, exact=own)
    ansatz, left = imposed(problem(SQUARE, [condition]), boundary)
    assert left == ([] if is_built_in else [condition])
    at_face = ansatz(network(2), jnp.array([[0.0, 0.0]]))
    assert bool(jnp.allclose(at_face, 1.0)) is is_built_in


def test_conditions_of_other_kinds_stay_in_order():
    others = [hp.Initial(0.0), hp.Neumann(1.0, on="x.max"), hp.Boundary(lambda u, p: u.x)]
    conditions = [others[0], hp.Dirichlet(0.0, on="x.min"), *others[1:]]
    assert imposed(problem(MOVIE, conditions))[1] == others


def test_two_fields_keep_their_own_conditions(x64):
    conditions = [hp.Dirichlet(wave, "x", "u"), hp.Dirichlet(3.0, "x.min", "v")]
    ansatz, _ = imposed(problem(MOVIE, conditions, ("u", "v", "w")))
    points = jnp.array([[0.3, -1.0], [1.7, -1.0], [0.3, 1.0]])
    raw = network(2, 3)
    u, v, w = ansatz(raw, points).T
    np.testing.assert_allclose(u, wave(Point(points, ("t", "x"))), atol=1e-14)
    np.testing.assert_allclose(v[:2], 3.0, atol=1e-14)
    assert abs(v[2] - 3.0) > 1e-3
    np.testing.assert_array_equal(w, raw(points)[:, 2])


@pytest.mark.parametrize("data", [0.0, wave], ids=["zero", "function"])
def test_a_solution_on_a_square_can_be_evaluated(data, x64):
    """A :class:`Solution` makes its ansatz itself, when it is first called."""
    made = problem(SQUARE, [hp.Dirichlet(data)])
    config = hp.HyResPINN(width=3, kernels=Moving(3))
    model = config.build(Lifted().inputs(state(made)), jax.random.key(0))
    solution = hp.Solution(made, model, config, "float64", Lifted())
    x, y = np.array([0.0, 2.0, 1.0]), np.array([0.2, 0.1, 0.5])
    expected = wave(Point(jnp.stack([x, y], axis=1), ("x", "y"))) if callable(data) else 0.0
    np.testing.assert_allclose(solution(x=x, y=y), expected, atol=1e-13)
