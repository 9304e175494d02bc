"""Layers and the whole network against numpy formulas and nested reverse mode."""

from __future__ import annotations

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.derivatives import closure, coordinates
from hyrespinn.errors import UserError
from hyrespinn.nn import HyResPINNConfig, Inputs, distances, model_named
from hyrespinn.nn.dense import Dense, FactorisedDense, glorot
from hyrespinn.nn.distances import DISTANCES
from hyrespinn.nn.embeddings import Embedding
from hyrespinn.nn.gates import GATES, FreeGate, Gate
from hyrespinn.nn.initialise import k_means, quantile_widths
from hyrespinn.nn.mlp import DNNS, Zero
from hyrespinn.nn.parameters import cast, flatten

from helpers import some_slow

BOUNDS = ((0.0, 1.0), (-1.0, 3.0))
SMALL = HyResPINNConfig(
    width=3, depth=1, centers=5, width_factor=3.0, head_depth=1, phi_alpha=0.4, phi_beta=0.6
)
KEY = jax.random.key(7)
QUICK = {"xla_backend_optimization_level": 0}  # nearly all the time goes into compiling


def spread(count, rng):
    return rng.uniform(*np.transpose(BOUNDS), (count, 2))


def inputs(periodic=(False, False)):
    return Inputs(BOUNDS, periodic, 2, 4, spread, spread)


def points(count=6):
    return spread(count, np.random.default_rng(1))


def perturbed(model):
    """The model with every trained number moved, so that no test rests on a start at zero."""
    rng = np.random.default_rng(2)

    def move(leaf):
        return jnp.asarray(leaf + 0.1 * rng.normal(size=leaf.shape))

    return jax.tree.map(lambda a: move(np.asarray(a)) if eqx.is_inexact_array(a) else a, model)


# Numpy formulas, written from DESIGN §2 and not from the code.


def np_dense(layer, h):
    weight = layer.weight if isinstance(layer, Dense) else layer.direction * np.exp(layer.log_scale)
    return h @ np.asarray(weight) + np.asarray(layer.bias)


def np_dnn(dnn, h):
    if isinstance(dnn, Zero):
        return 0.0
    if not hasattr(dnn, "first"):
        for layer in dnn.layers[:-1]:
            h = np.tanh(np_dense(layer, h))
        return np_dense(dnn.layers[-1], h)
    u, v = np.tanh(np_dense(dnn.first, h)), np.tanh(np_dense(dnn.second, h))
    for layer in dnn.mlp.layers[:-1]:
        z = np.tanh(np_dense(layer, h))
        h = z * u + (1 - z) * v
    return np_dense(dnn.mlp.layers[-1], h)


def np_squares(distance, h, centers):
    """``|M_j (h − c_j)|²`` with the matrices of the distance written out."""
    count, dimension = centers.shape
    if hasattr(distance, "below"):
        shape = np.zeros((count, dimension, dimension))
        for j in range(count):
            shape[j][np.tril_indices(dimension, -1)] = distance.below[j]
            shape[j] += np.diag(np.exp(distance.log_diagonal[j]))
    else:
        inverse = np.exp(np.asarray(distance.log_inverse)).reshape(count, -1)
        shape = np.stack([np.diag(np.broadcast_to(row, dimension)) for row in inverse])
    difference = np.asarray(h)[:, None] - np.asarray(centers)
    return np.sum(np.einsum("jki,nji->njk", shape, difference) ** 2, axis=-1)


def np_rbf(rbf, h):
    if isinstance(rbf, Zero):
        return 0.0
    r = np.sqrt(np_squares(rbf.distance, h, rbf.centers))
    kernel = np.maximum(1 - r, 0) ** 6 * (35 * r**2 + 18 * r + 3)
    return kernel @ np.asarray(rbf.coefficients)


def np_block(block, h, skip):
    a, b = (1 / (1 + np.exp(-np.asarray(g.z) / g.tau)) for g in (block.alpha, block.beta))
    return b * np.tanh(a * np_rbf(block.rbf, h) + (1 - a) * np_dnn(block.dnn, h)) + (1 - b) * skip


def test_dense_layers(x64):
    """hW + b; the factorised layer starts as the Glorot weight and is V·diag(exp s) ever after."""
    h = np.random.default_rng(0).normal(size=(6, 3))
    for layer in (Dense(3, 5, KEY), FactorisedDense(3, 5, KEY)):
        np.testing.assert_allclose(perturbed(layer)(h), np_dense(perturbed(layer), h), rtol=1e-12)
    start, factorised = glorot(jax.random.split(KEY)[0], 3, 5), FactorisedDense(3, 5, KEY)
    np.testing.assert_allclose(factorised(jnp.eye(3)), start, rtol=1e-12)
    assert np.ptp(factorised.log_scale) > 0.01, "the scales are drawn"
    large = glorot(KEY, 300, 100)
    np.testing.assert_allclose(large.std(), np.sqrt(2 / 400), rtol=0.02)


@pytest.mark.parametrize("name", DNNS)
def test_deep_branches(x64, name):
    """Plain and modified perceptrons against a hand-written loop."""
    dnn = perturbed(DNNS[name](2, 3, 3, 3, KEY))
    np.testing.assert_allclose(dnn(jnp.asarray(points())), np_dnn(dnn, points()), rtol=1e-12)


@pytest.mark.parametrize("name", DISTANCES)
@pytest.mark.parametrize("dimension", [3, 11], ids=lambda d: f"d={d}")
def test_distances(x64, name, dimension):
    """r² against the formula, positive definite, below and above the size where it is expanded."""
    rng = np.random.default_rng(5)
    h, centers = rng.normal(size=(7, dimension)), rng.normal(size=(4, dimension))
    start = rng.uniform(0.5, 2, 4)
    distance = DISTANCES[name](jnp.asarray(start), dimension)
    np.testing.assert_allclose(distance.widths(dimension), np.tile(start[:, None], dimension))
    isotropic = np.sum((h[:, None] - centers) ** 2, axis=-1) / start**2
    arguments = jnp.asarray(h), jnp.asarray(centers)
    np.testing.assert_allclose(distance(*arguments), isotropic, rtol=1e-10)
    distance = perturbed(distance)
    expected = np_squares(distance, h, centers)
    np.testing.assert_allclose(distance(*arguments), expected, rtol=1e-10)
    if name == "full":
        m = np.asarray(distance.matrices)
        assert (np.linalg.eigvalsh(np.swapaxes(m, 1, 2) @ m) > 0).all()


@pytest.mark.parametrize("name", ["isotropic", "diagonal"])
def test_expanded_distance_equals_the_direct_one(x64, name, monkeypatch):
    """Matrix products and differences give the same values and derivatives."""
    x = coordinates(jnp.asarray(points()), closure([(2, 0), (1, 1)], 2))
    distance = perturbed(DISTANCES[name](jnp.asarray([0.5, 1.0, 2.0]), 2))
    centers = jnp.asarray(points(3)) + 0.1
    direct = distance(x, centers)
    monkeypatch.setattr(distances, "DIRECT", 0)
    expanded = distance(x, centers)
    for index in direct.indices:
        np.testing.assert_allclose(expanded[index], direct[index], rtol=1e-10, atol=1e-11)
    assert (distance(centers, centers) >= 0).all(), "rounding leaves no negative square"


@pytest.mark.parametrize("tau", [0.1, 1.0, 5.0])
def test_sigmoid_gate(x64, tau):
    """φ(z) = sigmoid(z/τ) from the start asked for; the slope at ½ is 1/(4τ): small τ is sharp."""
    gate = Gate(0.01, tau)
    np.testing.assert_allclose(gate(), 0.01, rtol=1e-12)
    np.testing.assert_allclose(gate.z, tau * np.log(0.01 / 0.99), rtol=1e-12)
    slope = jax.grad(lambda z: eqx.tree_at(lambda g: g.z, gate, z)())(jnp.asarray(0.0))
    np.testing.assert_allclose(slope, 1 / (4 * tau), rtol=1e-12)


def test_gate_errors_and_the_unconstrained_gate(x64):
    """A sigmoid never reaches 0 or 1 and τ is positive; the free gate takes any start exactly."""
    for start in (0.0, 1.0, -0.1):
        with pytest.raises(UserError, match="strictly between 0 and 1"):
            Gate(start)
    for tau in (0.0, -1.0):
        with pytest.raises(UserError, match="tau must be positive"):
            Gate(0.5, tau)
    assert [float(FreeGate(start)()) for start in (0.0, 1.0, -2.0)] == [0.0, 1.0, -2.0]
    assert set(GATES) == {"sigmoid", "unconstrained"}


@pytest.mark.parametrize(
    ("branches", "distance"),
    [*(("hybrid", d) for d in DISTANCES), ("rbf", "full"), ("dnn", "full")],
)
def test_network_is_the_formula(x64, branches, distance):
    """Lift, two blocks and head in numpy; block 1 sees the embedded point, block 2 the features."""
    config = replace(SMALL, blocks=2, distance=distance, branches=branches, tau=0.5)
    network = perturbed(config.build(inputs(), KEY))
    lower, upper = np.transpose(BOUNDS)
    e = 2 * (points() - lower) / (upper - lower) - 1
    hidden = np_block(network.blocks[0], e, np_dense(network.lift, e))
    hidden = np_block(network.blocks[1], hidden, hidden)
    expected = np_dnn(network.head, hidden)
    assert expected.shape == (6, 2)
    np.testing.assert_allclose(network(jnp.asarray(points())), expected, rtol=1e-10, atol=1e-12)
    absent = {"rbf": "dnn", "dnn": "rbf"}.get(branches)
    assert all(isinstance(getattr(b, absent), Zero) for b in network.blocks if absent)


def test_parameter_count_of_the_default_network(x64):
    """Lift + centres + widths + coefficients + three dense layers + head + two gates."""
    theta, _ = flatten(HyResPINNConfig().build(inputs(), KEY))
    rbf = 32 * 2 + 32 * 2 + 32 * 24
    dnn = (2 * 24 + 24) + 2 * (24 * 24 + 24)
    assert theta.size == (2 * 24 + 24) + rbf + dnn + (24 * 2 + 2) + 2
    assert model_named("hyrespinn") is HyResPINNConfig


def test_a_closed_block_is_the_identity(x64):
    """With φ(β) exactly 0 the network is head(lift(embedding(x))), bit for bit."""
    network = replace(SMALL, blocks=3, gate="unconstrained", phi_beta=0.0).build(inputs(), KEY)
    x = jnp.asarray(points())
    np.testing.assert_array_equal(network(x), network.head(network.lift(network.embedding(x))))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"blocks": 3},
        {"head_depth": 1},
        {"blocks": 2, "head_depth": 1},
        {"branches": "rbf"},
        {"branches": "dnn", "blocks": 2},
        {"dnn": "modified-rwf", "fourier": 4},
        {"gate": "unconstrained"},
    ],
)
def test_the_network_is_that_of_the_equations(x64, changes):
    """H = φ(β) tanh(φ(α) F_R + (1−φ(α)) F_N) + (1−φ(β)) H_prev, written out block by block."""
    config = replace(SMALL, phi_alpha=0.7, phi_beta=0.3, **changes)
    network = config.build(inputs(), KEY)
    x = jnp.asarray(points())
    entering = network.embedding(x)
    hidden = network.lift(entering)
    for block in network.blocks:
        local, deep = block.rbf(entering), block.dnn(entering)
        mixed = jnp.tanh(0.7 * local + (1 - 0.7) * deep)
        hidden = 0.3 * mixed + (1 - 0.3) * hidden
        entering = hidden
    np.testing.assert_allclose(network(x), network.head(hidden), rtol=1e-12, atol=1e-14)


def test_gates_and_penalty(x64):
    """gates() starts where asked and stays in (0, 1); the penalty is λ_g Σ(α² + β²)."""
    network = replace(SMALL, blocks=2, lambda_g=0.3).build(inputs(), KEY)
    start = {f"phi_{g}_{i}": v for i in (1, 2) for g, v in (("alpha", 0.4), ("beta", 0.6))}
    assert {k: round(float(v), 12) for k, v in network.gates().items()} == start
    theta, assemble = flatten(network)
    for scale in (1.0, 8.0, -8.0):
        moved = assemble(scale * theta + 0.5)
        assert all(0 < float(v) < 1 for v in moved.gates().values())
        squares = sum(float(b.alpha.z) ** 2 + float(b.beta.z) ** 2 for b in moved.blocks)
        np.testing.assert_allclose(moved.penalty(), 0.3 * squares, rtol=1e-12)


def test_fixed_centres_are_not_trained(x64):
    """They leave the parameter vector, and the gradient of everything else is as before."""
    x = jnp.asarray(points())
    gradients, sizes = [], []
    for train in (True, False):
        theta, assemble = flatten(replace(SMALL, train_centers=train).build(inputs(), KEY))
        gradient = jax.grad(lambda t, a=assemble: jnp.sum(a(t)(x) ** 2))(theta)
        gradients.append(assemble(gradient))
        sizes.append(theta.size)
    assert sizes[0] - sizes[1] == 5 * 2
    free, fixed = (eqx.tree_at(lambda n: n.blocks[0].rbf.centers, g, None) for g in gradients)
    for a, b in zip(jax.tree.leaves(free), jax.tree.leaves(fixed), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    assert {a.dtype.name for a in jax.tree.leaves(cast(gradients[1], jnp.float32))} == {"float32"}


@pytest.mark.parametrize("harmonics", [1, 3])
def test_periodic_embedding(x64, harmonics):
    """cos and sin of kπ times the scaled coordinate; both ends agree in all derivatives."""
    embedding = Embedding(BOUNDS, (False, True), harmonics)
    x = points()
    angle = np.pi * (2 * (x[:, 1:] + 1) / 4 - 1)
    waves = [f(k * angle) for k in range(1, harmonics + 1) for f in (np.cos, np.sin)]
    expected = np.concatenate([2 * x[:, :1] - 1, *waves], axis=1)
    assert embedding.size == expected.shape[1]
    np.testing.assert_allclose(embedding(jnp.asarray(x)), expected, atol=1e-13)
    network = replace(SMALL, harmonics=harmonics).build(inputs((False, True)), KEY)
    ends = [np.stack([x[:, 0], np.full(6, b)], axis=1) for b in BOUNDS[1]]
    series_at = jax.jit(lambda x: network(coordinates(x, closure([(0, 4), (1, 1)], 2))))
    series = [series_at(jnp.asarray(end)) for end in ends]
    for index in series[0].indices:
        np.testing.assert_allclose(series[0][index], series[1][index], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("distinct", [40, 8, 3], ids=lambda n: f"{n} distinct points")
def test_k_means_gives_all_centres(distinct):
    """Always as many finite centres as asked, within the data, even when points coincide."""
    features = np.tile(np.random.default_rng(0).normal(size=(distinct, 3)), (5, 1))
    means = k_means(features, 8, np.random.default_rng(1))
    assert means.shape == (8, 3)
    assert np.isfinite(means).all()
    assert (means <= features.max(0)).all()
    assert (means >= features.min(0)).all()
    with pytest.raises(ValueError, match="at least as many points"):
        k_means(features[:7], 8, np.random.default_rng(1))


def test_quantile_widths():
    """A quantile of the distances to the other centres; coinciding centres keep a positive width."""
    centers = np.random.default_rng(2).normal(size=(6, 3))
    found = quantile_widths(centers, 0.25, 1.5)
    for j in range(6):
        others = [np.linalg.norm(centers[j] - centers[i]) for i in range(6) if i != j]
        np.testing.assert_allclose(found[j], 1.5 * np.quantile(others, 0.25))
    np.testing.assert_array_equal(quantile_widths(centers[:1], 0.25), [1.0])
    assert (quantile_widths(np.repeat(centers[:2], 3, axis=0), 0.25) > 0).all()
    assert (quantile_widths(np.zeros((4, 2)), 0.5) > 0).all()


def test_the_seed_decides_everything(x64):
    """The same key gives the same network, bit for bit; another key another one."""
    build = replace(SMALL, blocks=2).build
    first, again, other = (flatten(build(inputs(), jax.random.key(seed)))[0] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


CASES = {
    **{f"{d}, {n} blocks": replace(SMALL, distance=d, blocks=n) for d in DISTANCES for n in (1, 2)},
    "mlp-rwf": replace(SMALL, dnn="mlp-rwf", activation="swish"),
    "modified": replace(SMALL, dnn="modified", depth=2, kernel="matern52"),
    "modified-rwf": replace(SMALL, dnn="modified-rwf", depth=2),
    "expanded distance": replace(SMALL, width=9, blocks=2, kernel="gaussian"),
    "rbf only": replace(SMALL, branches="rbf", kernel="inverse-multiquadric"),
    "dnn only": replace(SMALL, branches="dnn", activation="gelu"),
}


SOME = {"full, 2 blocks", "diagonal, 1 blocks", "expanded distance", "modified-rwf", "rbf only"}


@pytest.mark.parametrize("name", some_slow(CASES, CASES.keys() - SOME))
def test_derivatives_of_the_whole_network(x64, name):
    """Mixed and high derivatives equal nested reverse mode to 1e-9."""
    network, x = perturbed(CASES[name].build(inputs(), KEY)), jnp.asarray(points())
    asked = [(1, 1), (0, 4) if "1 blocks" in name else (0, 3)]

    def nested(index):
        f = lambda p: network(p)[0]  # noqa: E731
        for axis in (0,) * index[0] + (1,) * index[1]:
            f = lambda p, f=f, axis=axis: jax.grad(f)(p)[axis]  # noqa: E731
        return jax.vmap(f)

    found = jax.jit(lambda x: network(coordinates(x, closure(asked, 2))), compiler_options=QUICK)(x)
    oracle = jax.jit(lambda x: [nested(index)(x) for index in asked], compiler_options=QUICK)(x)
    for index, expected in zip(asked, oracle, strict=True):
        tolerance = 1e-9 * np.abs(expected).max()
        np.testing.assert_allclose(
            found[index][:, 0], expected, 1e-9, tolerance, err_msg=f"{index}"
        )


def test_points_do_not_see_each_other(x64):
    """A batch gives what the network mapped over single points gives, derivatives included."""
    network, x = replace(SMALL, blocks=2).build(inputs(), KEY), jnp.asarray(points())
    series = lambda p: network(coordinates(p, closure([(0, 2), (1, 1)], 2)))  # noqa: E731
    batched, mapped = jax.jit(series)(x), jax.jit(jax.vmap(series))(x)
    for index in batched.indices:
        np.testing.assert_allclose(mapped[index], batched[index], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"distance": "diagonl"}, "Did you mean 'diagonal'"),
        ({"gate": "sigmod"}, "Did you mean 'sigmoid'"),
        ({"dnn": "mpl"}, "Unknown model.dnn 'mpl'"),
        ({"activation": "tan"}, "Did you mean 'tanh'"),
        ({"kernel": "wendland-c2"}, "this equation needs 4"),
        ({"tau": 0.0}, "tau must be positive"),
        ({"blocks": 0}, "model.blocks must be at least 1, not 0"),
        ({"width": 0}, "model.width must be at least 1"),
        ({"centers": 0}, "model.centers must be at least 1"),
    ],
    ids=str,
)
def test_mistakes_in_the_settings_are_explained(x64, change, message):
    """Each mistake is refused when the network is built, with its remedy."""
    with pytest.raises(UserError, match=message):
        replace(SMALL, **change).build(inputs(), KEY)
