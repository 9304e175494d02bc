"""The derivative engine against nested reverse mode, which knows nothing of its tables."""

from __future__ import annotations

import math
from functools import cache

import hyrespinn.derivatives as hd
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.derivatives import ACTIVATIONS, closure, coordinates, square
from hyrespinn.derivatives.elementwise import horner
from hyrespinn.derivatives.multiindex import below, faa_di_bruno, leibniz
from hyrespinn.errors import UserError

INDICES = [(1, 0), (2, 0), (0, 3), (4, 0), (1, 1), (1, 2), (2, 2), (3, 1)]
PLAIN = {
    "tanh": jnp.tanh,
    "sin": jnp.sin,
    "sigmoid": lambda x: 1 / (1 + jnp.exp(-x)),
    "swish": lambda x: x / (1 + jnp.exp(-x)),
    "softplus": lambda x: jnp.log1p(jnp.exp(x)),
    "gelu": lambda x: 0.5 * x * (1 + jax.lax.erf(x / math.sqrt(2))),
}


def nested(function, index):
    """The partial derivative of ``function(point, *rest)`` by nested reverse mode."""
    for axis, n in enumerate(index):
        for _ in range(n):
            function = lambda p, *r, f=function, axis=axis: jax.grad(f)(p, *r)[axis]  # noqa: E731
    return function


def assert_matches(result, function, x, rtol=1e-9):
    """Each carried derivative equals nested reverse mode of ``function(point) -> features``."""
    units = jnp.eye(result.shape[-1])

    @jax.jit
    def oracle(x):
        feature = lambda p, unit: jnp.vdot(function(p), unit)  # noqa: E731
        parts = [nested(feature, index) for index in result.indices]
        return [jax.vmap(jax.vmap(f, (None, 0)), (0, None))(x, units) for f in parts]

    for index, expected in zip(result.indices, oracle(x), strict=True):
        scale = np.abs(expected).max() + 1
        np.testing.assert_allclose(result[index], expected, rtol, rtol * scale, err_msg=f"{index}")


def points(count=4, dimension=2):
    return jnp.asarray(np.random.default_rng(3).uniform(-1, 1, (count, dimension)))


POINT = np.array([0.3, -0.6])
FACTORS = np.polynomial.Polynomial([1, 2, 0, 1]), np.polynomial.Polynomial([0, 3, -1, 0, 1])


def inner(p):
    return (p[0] ** 3 + 2 * p[0] + 1) * (p[1] ** 4 - p[1] ** 2 + 3 * p[1])


def inner_derivative(index):
    """The derivative of ``inner`` at POINT, by numpy's polynomials."""
    return math.prod(f.deriv(n)(s) for f, n, s in zip(FACTORS, index, POINT, strict=True))


def sine_derivative(k, s):
    return math.sin(s + k * math.pi / 2)


@cache
def reverse_mode():
    """All INDICES of sin(g) and of g·sin(x + 2y) at POINT, by nested reverse mode."""
    composed = lambda p: jnp.sin(inner(p))  # noqa: E731
    product = lambda p: inner(p) * jnp.sin(p[0] + 2 * p[1])  # noqa: E731
    both = jax.jit(lambda p: [(nested(composed, i)(p), nested(product, i)(p)) for i in INDICES])
    return dict(zip(INDICES, both(jnp.asarray(POINT)), strict=True))


@pytest.mark.parametrize("index", INDICES)
def test_faa_di_bruno_table(x64, index):
    """Σ c f⁽ᵏ⁾(g) Π g_μ from the table is the derivative of sin∘g; the weights add to Bell's number."""
    total = 0.0
    for weight, k, factors in faa_di_bruno(index):
        product = math.prod(inner_derivative(mu) for mu in factors)
        total += weight * sine_derivative(k, inner(POINT)) * product
    np.testing.assert_allclose(total, reverse_mode()[index][0], rtol=1e-11)
    bell = {1: 1, 2: 2, 3: 5, 4: 15}
    assert sum(weight for weight, _, _ in faa_di_bruno(index)) == bell[sum(index)]


@pytest.mark.parametrize("index", INDICES)
def test_leibniz_table(x64, index):
    """Σ c f_μ g_{ν−μ} from the table is the derivative of a product."""
    total = 0.0
    for c, a, b in leibniz(index):
        other = 2 ** b[1] * sine_derivative(sum(b), POINT[0] + 2 * POINT[1])
        total += c * inner_derivative(a) * other
    np.testing.assert_allclose(total, reverse_mode()[index][1], rtol=1e-11)


def test_closure_is_the_smallest_closed_set_in_order():
    """It holds what is asked and all below it, nothing else, lowest order first."""
    found = closure([(1, 0), (0, 4), (1, 1)], 2)
    assert set(found) == {(0, 0), (1, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 1)}
    assert all(lower in found for index in found for lower in below(index))
    assert [sum(i) for i in found] == sorted(sum(i) for i in found)
    assert closure(found, 2) == found
    assert closure([], 3) == ((0, 0, 0),)


@pytest.mark.parametrize(
    ("name", "index"), [("t", (1, 0, 0)), ("xxxx", (0, 4, 0)), ("xy", (0, 1, 1))]
)
def test_names_of_derivatives(name, index):
    """Names and multi-indices are inverse to each other; the order of letters does not matter."""
    assert hd.parse(name, "txy") == hd.parse(name[::-1], "txy") == index
    assert hd.name_of(index, ("t", "x", "y")) == name


@pytest.mark.parametrize("name", ["z", "xz", ""])
def test_unknown_derivative_names_the_coordinates(name):
    """The message says which letters exist."""
    with pytest.raises(UserError, match="coordinates here are t, x"):
        hd.parse(name, ("t", "x"))


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_activation_derivatives(x64, name):
    """Closed forms up to order 5 equal nested reverse mode of the textbook formula."""
    x = jnp.asarray([-4.0, -1.3, -0.2, 0.0, 0.4, 2.5])
    found = ACTIVATIONS[name](x, 5)
    parts = [nested(lambda s: PLAIN[name](s[0]), (k,)) for k in range(6)]
    expected = jax.jit(lambda x: [jax.vmap(f)(x) for f in parts])(x[:, None])
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    assert [len(ACTIVATIONS[name](x, n)) for n in range(6)] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_activations_stay_finite_far_out(name):
    """Saturated neurons give finite derivatives in float32."""
    found = ACTIVATIONS[name](jnp.asarray([-200.0, 200.0]), 5)
    assert all(np.isfinite(f).all() and f.dtype == jnp.float32 for f in found)


def test_unknown_activation_suggests_the_near_name():
    with pytest.raises(UserError, match="Did you mean 'tanh'"):
        hd.activation("tanhh")


@pytest.mark.parametrize(
    "c", [[], [2], [0, 3], [1, 0, -1], [0, 1, 0, -2], [1, 2, 3, 4], [0, 0, 5, 0]]
)
def test_horner_is_the_polynomial(x64, c):
    """Even, odd, full and empty polynomials, against numpy."""
    y = np.linspace(-1.5, 1.5, 7)
    expected = np.polynomial.polynomial.polyval(y, c or [0])
    np.testing.assert_allclose(horner([*map(float, c)], jnp.asarray(y)), expected, atol=1e-14)


MATRIX = np.array([[1.0, 2.0, 0.5], [-1.0, 0.3, 0.7]])
EXPRESSIONS = {
    "product": lambda x, a, b: a * b * a,
    "constants": lambda x, a, b: 3.0 - (2.0 * a - 1.0) / 4.0 - b,
    "array": lambda x, a, b: jnp.asarray([2.0]) * a + jnp.asarray([1.0]) - b * jnp.asarray([0.5]),
    "functions": lambda x, a, b: hd.tanh(a) * hd.sin(b) + hd.cos(hd.exp(a)),
    "features": lambda x, a, b: hd.concatenate([square(hd.sin(x @ jnp.asarray(MATRIX))), x, -b]),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions(x64, name):
    """Products, squares, features and joins of series agree with the same code on arrays."""
    x, f = points(), EXPRESSIONS[name]
    s = coordinates(x, closure([(4, 0), (2, 2), (0, 3)], 2))
    result = f(s, s.feature(slice(0, 1)), s.feature(slice(1, 2)))
    assert_matches(result, lambda p: f(p, p[0:1], p[1:2]), x)


LIFTED = {
    "layer": lambda a: jnp.tanh(a @ jnp.asarray(MATRIX)),
    "softmax": lambda a: jax.nn.softmax(a * jnp.asarray([1.0, 2.0]), axis=-1),
    "quotient": lambda a: jnp.sum(a**2, axis=-1, keepdims=True) / (2 + a[..., :1]),
}


@pytest.mark.parametrize("name", LIFTED)
def test_lift_differentiates_any_function(x64, name):
    """The fallback on a series is nested reverse mode of the composition, mixed ones included."""
    x, function = points(), LIFTED[name]
    series = hd.sin(coordinates(x, closure([(3, 1), (0, 2)], 2)))
    result = jax.jit(lambda s: hd.lift(function, s))(series)
    assert_matches(result, lambda p: function(jnp.sin(p)), x)
    np.testing.assert_array_equal(hd.lift(function, x), function(x))


def test_lift_equals_the_engine_on_a_layer(x64):
    """Fallback and engine give the same numbers for the same layer."""
    x = coordinates(points(), closure([(4, 0), (2, 1)], 2))
    engine = hd.tanh(x @ jnp.asarray(MATRIX))
    fallback = jax.jit(lambda s: hd.lift(LIFTED["layer"], s))(x)
    assert engine.indices == fallback.indices
    for index in engine.indices:
        np.testing.assert_allclose(engine[index], fallback[index], rtol=1e-10, atol=1e-13)


ASKED = [(1, 0, 0), (0, 2, 0), (0, 1, 1), (0, 4, 0)]  # u_t, u_xx, u_xy, u_xxxx


@pytest.mark.parametrize(
    ("name", "count"), [pytest.param("tanh", 1, marks=pytest.mark.slow), ("tanh", 3), ("swish", 2)]
)
def test_backward_pass_of_compose(x64, name, count):
    """Gradients of a residual in parameters and points equal those through nested reverse mode."""
    rng = np.random.default_rng(0)
    theta = [jnp.asarray(rng.normal(size=s) * 0.7) for s in [(3, 4), (4,), (4, 4), (4, 1)]]
    x = points(count, 3)

    def network(theta, x, act):
        return act(act(x @ theta[0] + theta[1]) @ theta[2]) @ theta[3]

    def residual(u, u_t, u_xx, u_xy, u_xxxx):
        return jnp.mean((u_t + u * u_xx - 0.3 * u_xy**2 + 0.1 * u_xxxx - u**3) ** 2)

    def by_engine(theta, x):
        u = network(theta, coordinates(x, closure(ASKED, 3)), hd.activation(name))
        return residual(u.value, *(u[i] for i in ASKED))

    def by_nesting(theta, x):
        f = lambda p: network(theta, p, PLAIN[name])[0]  # noqa: E731
        return residual(*(jax.vmap(nested(f, i))(x) for i in [(0, 0, 0), *ASKED]))

    found = jax.jit(jax.value_and_grad(by_engine, argnums=(0, 1)))(theta, x)
    oracle = jax.jit(jax.value_and_grad(by_nesting, argnums=(0, 1)))(theta, x)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(oracle), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * np.abs(b).max())


def test_structural_zeros_are_absent():
    """A coordinate has no second derivative: no array is kept, yet asking for it gives zeros."""
    x = coordinates(points(), closure([(2, 0), (1, 1)], 2))
    linear = (x @ jnp.ones((2, 5))) * 2.0 + 1.0
    for series, features in ((x, 2), (linear, 5)):
        assert set(series.parts) == {(0, 0), (1, 0), (0, 1)}
        assert len(jax.tree.leaves(series)) == 3
        assert series.parts[(1, 0)].shape == (1, features), "one row serves all points"
        np.testing.assert_array_equal(series[(2, 0)], np.zeros((4, features)))
    assert (1, 1) in square(x).parts, "a product does have a mixed derivative"
    with pytest.raises(KeyError, match="not among"):
        x[(0, 2)]


@pytest.mark.parametrize(
    "shape", [(1, 2), (2,), (2, 3, 2)], ids=["one row", "no batch", "two axes"]
)
def test_shapes_of_batches(shape):
    """One row, a bare point and a batch with two axes, jitted, give the rows of a flat batch."""
    x = points(math.prod(shape[:-1])).reshape(shape)
    indices = closure([(2, 0), (1, 1)], 2)
    layer = lambda s: hd.tanh(s @ jnp.asarray(MATRIX, jnp.float32))  # noqa: E731
    result = jax.jit(layer)(coordinates(x, indices))
    flat = layer(coordinates(x.reshape(-1, 2), indices))
    assert isinstance(result, hd.Taylor)
    assert (result.indices, result.order, result.dtype) == (indices, 2, jnp.float32)
    for index in indices:
        assert result[index].shape == (*shape[:-1], 3)
        np.testing.assert_allclose(result[index].reshape(-1, 3), flat[index], rtol=1e-5, atol=1e-6)
