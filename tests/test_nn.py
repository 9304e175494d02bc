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
from hyrespinn.models import (
    MODELS,
    Deep,
    Factorisation,
    Fourier,
    FreeGate,
    Gates,
    HyResPINN,
    Inputs,
    Moving,
    SigmoidGate,
)
from hyrespinn.models.dense import Dense, FactorisedDense, glorot
from hyrespinn.models.embeddings import Embedding
from hyrespinn.models.gates import GATES
from hyrespinn.models.kernels import (
    DISTANCES,
    Full,
    Gaussian,
    InverseMultiquadric,
    Matern52,
    WendlandC2,
)
from hyrespinn.models.kernels.initialise import k_means, quantile_widths
from hyrespinn.models.parameters import cast, flatten

from helpers import some_slow

BOUNDS = ((0.0, 1.0), (-1.0, 3.0))
KERNELS = Moving(count=5, factor=3.0)
GATE_STARTS = Gates(alpha=0.4, beta=0.6)
SMALL = HyResPINN(width=3, kernels=KERNELS, deep=Deep(1), gates=GATE_STARTS, head_depth=1)
DEEPS = {
    "plain": Deep(3),
    "factorised": Deep(3, factorisation=Factorisation()),
    "gated": Deep(3, gated=True),
    "gated and factorised": Deep(3, gated=True, factorisation=Factorisation()),
}
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
    if dnn is None:
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


def np_squares(shapes, h, centers):
    """``|M_j (h − c_j)|²`` with the matrices of the distance written out."""
    count, dimension = centers.shape
    if len(shapes) == 2:
        log_diagonal, below = shapes
        shape = np.zeros((count, dimension, dimension))
        for j in range(count):
            shape[j][np.tril_indices(dimension, -1)] = below[j]
            shape[j] += np.diag(np.exp(log_diagonal[j]))
    else:
        inverse = np.exp(np.asarray(shapes[0])).reshape(count, -1)
        shape = np.stack([np.diag(np.broadcast_to(row, dimension)) for row in inverse])
    difference = np.asarray(h)[:, None] - np.asarray(centers)
    return np.sum(np.einsum("jki,nji->njk", shape, difference) ** 2, axis=-1)


def np_rbf(rbf, h):
    if rbf is None:
        return 0.0
    r = np.sqrt(np_squares(rbf.shapes, h, rbf.centers))
    kernel = np.maximum(1 - r, 0) ** 6 * (35 * r**2 + 18 * r + 3)
    return kernel @ np.asarray(rbf.coefficients)


def np_block(block, h, skip):
    a, b = (1 / (1 + np.exp(-np.asarray(z) / block.gate.tau)) for z in (block.alpha, block.beta))
    return b * np.tanh(a * np_rbf(block.rbf, h) + (1 - a) * np_dnn(block.deep, h)) + (1 - b) * skip


def test_dense_layers(x64):
    """hW + b; the factorised layer starts as the Glorot weight and is V·diag(exp s) ever after."""
    h = np.random.default_rng(0).normal(size=(6, 3))
    for layer in (Dense(3, 5, KEY), FactorisedDense(3, 5, KEY)):
        layer = perturbed(layer)
        np.testing.assert_allclose(layer(jnp.asarray(h)), np_dense(layer, h), rtol=1e-12)
    start, factorised = glorot(jax.random.split(KEY)[0], 3, 5), FactorisedDense(3, 5, KEY)
    np.testing.assert_allclose(factorised(jnp.eye(3)), start, rtol=1e-12)
    assert np.ptp(factorised.log_scale) > 0.01, "the scales are drawn"
    large = glorot(KEY, 300, 100)
    np.testing.assert_allclose(large.std(), np.sqrt(2 / 400), rtol=0.02)


@pytest.mark.parametrize("name", DEEPS)
def test_deep_branches(x64, name):
    """Plain and modified perceptrons against a hand-written loop."""
    dnn = perturbed(DEEPS[name].branch(2, 3, KEY, first=True))
    np.testing.assert_allclose(dnn(jnp.asarray(points())), np_dnn(dnn, points()), rtol=1e-12)


@pytest.mark.parametrize("name", DISTANCES)
@pytest.mark.parametrize("dimension", [3, 11], ids=lambda d: f"d={d}")
def test_distances(x64, name, dimension):
    """r² against the formula, positive definite, below and above the size where it is expanded."""
    rng = np.random.default_rng(5)
    h, centers = rng.normal(size=(7, dimension)), rng.normal(size=(4, dimension))
    start = rng.uniform(0.5, 2, 4)
    distance = DISTANCES[name]()
    shapes = distance.start(jnp.asarray(start), dimension)
    assert sum(a.size for a in shapes) == 4 * distance.count(dimension)
    np.testing.assert_allclose(
        distance.widths(shapes, dimension), np.tile(start[:, None], dimension)
    )
    isotropic = np.sum((h[:, None] - centers) ** 2, axis=-1) / start**2
    arguments = jnp.asarray(h), jnp.asarray(centers)
    np.testing.assert_allclose(distance.squares(shapes, *arguments), isotropic, rtol=1e-10)
    shapes = perturbed(shapes)
    expected = np_squares(shapes, h, centers)
    np.testing.assert_allclose(distance.squares(shapes, *arguments), expected, rtol=1e-10)
    if name == "full":
        m = np.asarray(distance.matrices(shapes))
        assert (np.linalg.eigvalsh(np.swapaxes(m, 1, 2) @ m) > 0).all()


@pytest.mark.parametrize("name", ["isotropic", "diagonal"])
def test_expanded_distance_equals_the_direct_one(x64, name):
    """Matrix products and differences give the same values and derivatives."""
    x = coordinates(jnp.asarray(points()), closure([(2, 0), (1, 1)], 2))
    distance = DISTANCES[name]()
    shapes = perturbed(distance.start(jnp.asarray([0.5, 1.0, 2.0]), 2))
    centers = jnp.asarray(points(3)) + 0.1
    direct = distance.squares(shapes, x, centers, 2)
    expanded = distance.squares(shapes, x, centers, 0)
    for index in direct.indices:
        np.testing.assert_allclose(expanded[index], direct[index], rtol=1e-10, atol=1e-11)
    assert (distance.squares(shapes, centers, centers, 0) >= 0).all(), (
        "rounding leaves no negative square"
    )


@pytest.mark.parametrize("tau", [0.1, 1.0, 5.0])
def test_sigmoid_gate(x64, tau):
    """φ(z) = sigmoid(z/τ) from the start asked for; the slope at ½ is 1/(4τ): small τ is sharp."""
    gate = SigmoidGate(tau)
    z = gate.start(0.01)
    np.testing.assert_allclose(gate(z), 0.01, rtol=1e-12)
    np.testing.assert_allclose(z, tau * np.log(0.01 / 0.99), rtol=1e-12)
    slope = jax.grad(gate)(jnp.asarray(0.0))
    np.testing.assert_allclose(slope, 1 / (4 * tau), rtol=1e-12)


def test_gate_errors_and_the_unconstrained_gate(x64):
    """A sigmoid never reaches 0 or 1 and τ is positive; the free gate takes any start exactly."""
    for start in (0.0, 1.0, -0.1):
        with pytest.raises(UserError, match="strictly between 0 and 1"):
            SigmoidGate().start(start)
    for tau in (0.0, -1.0):
        with pytest.raises(UserError, match="tau must be positive"):
            SigmoidGate(tau)
    free = FreeGate()
    assert [float(free(free.start(s))) for s in (0.0, 1.0, -2.0)] == [0.0, 1.0, -2.0]
    assert set(GATES) == {"sigmoid", "unconstrained"}


@pytest.mark.parametrize(
    "parts",
    [
        *({"kernels": replace(KERNELS, distance=distance())} for distance in DISTANCES.values()),
        {"kernels": replace(KERNELS, distance=Full()), "deep": None},
        {"kernels": None},
    ],
    ids=str,
)
def test_network_is_the_formula(x64, parts):
    """Lift, two blocks and head in numpy; block 1 sees the embedded point, block 2 the features."""
    spec = replace(SMALL, blocks=2, gates=replace(GATE_STARTS, gate=SigmoidGate(0.5)), **parts)
    network = perturbed(spec.build(inputs(), KEY))
    lower, upper = np.transpose(BOUNDS)
    e = 2 * (points() - lower) / (upper - lower) - 1
    hidden = np_block(network.blocks[0], e, np_dense(network.lift, e))
    hidden = np_block(network.blocks[1], hidden, hidden)
    expected = np_dnn(network.head, hidden)
    assert expected.shape == (6, 2)
    np.testing.assert_allclose(network(jnp.asarray(points())), expected, rtol=1e-10, atol=1e-12)
    assert all((b.rbf is None) == (spec.kernels is None) for b in network.blocks)
    assert all((b.deep is None) == (spec.deep is None) for b in network.blocks)


def test_parameter_count_of_the_default_network(x64):
    """Lift + centres + widths + coefficients + three dense layers + head + two gates."""
    theta, _ = flatten(HyResPINN().build(inputs(), KEY))
    rbf = 32 * 2 + 32 * 2 + 32 * 24
    dnn = (2 * 24 + 24) + 2 * (24 * 24 + 24)
    assert theta.size == (2 * 24 + 24) + rbf + dnn + (24 * 2 + 2) + 2
    assert MODELS["hyrespinn"] is HyResPINN


def test_a_closed_block_is_the_identity(x64):
    """With φ(β) exactly 0 the network is head(lift(embedding(x))), bit for bit."""
    network = replace(SMALL, blocks=3, gates=Gates(FreeGate(), beta=0.0)).build(inputs(), KEY)
    x = jnp.asarray(points())
    np.testing.assert_array_equal(network(x), network.head(network.lift(network.embedding(x))))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"blocks": 3},
        {"head_depth": 1},
        {"blocks": 2, "head_depth": 1},
        {"deep": None},
        {"kernels": None, "blocks": 2},
        {"deep": replace(DEEPS["gated and factorised"], fourier=Fourier(features=4))},
        {"gates": Gates(FreeGate(), alpha=0.7, beta=0.3)},
    ],
    ids=str,
)
def test_the_network_is_that_of_the_equations(x64, changes):
    """H = φ(β) tanh(φ(α) F_R + (1−φ(α)) F_N) + (1−φ(β)) H_prev, written out block by block."""
    spec = replace(SMALL, **{"gates": Gates(alpha=0.7, beta=0.3), **changes})
    network = spec.build(inputs(), KEY)
    x = jnp.asarray(points())
    entering = network.embedding(x)
    hidden = network.lift(entering)
    for block in network.blocks:
        local = 0.0 if block.rbf is None else block.rbf(entering)
        deep = 0.0 if block.deep is None else block.deep(entering)
        mixed = jnp.tanh(0.7 * local + (1 - 0.7) * deep)
        hidden = 0.3 * mixed + (1 - 0.3) * hidden
        entering = hidden
    np.testing.assert_allclose(network(x), network.head(hidden), rtol=1e-12, atol=1e-14)


def test_gates_and_penalty(x64):
    """What is reported starts where asked and stays in (0, 1); the penalty is λ_g Σ(α² + β²)."""
    network = replace(SMALL, blocks=2, gates=replace(GATE_STARTS, penalty=0.3)).build(inputs(), KEY)
    start = {f"phi_{g}_{i}": v for i in (1, 2) for g, v in (("alpha", 0.4), ("beta", 0.6))}
    assert {k: round(float(v), 12) for k, v in network.diagnostics().items()} == start
    theta, assemble = flatten(network)
    for scale in (1.0, 8.0, -8.0):
        moved = assemble(scale * theta + 0.5)
        assert all(0 < float(v) < 1 for v in moved.diagnostics().values())
        squares = sum(float(b.alpha) ** 2 + float(b.beta) ** 2 for b in moved.blocks)
        np.testing.assert_allclose(moved.penalty(), 0.3 * squares, rtol=1e-12)


def test_fixed_centres_are_not_trained(x64):
    """They leave the parameter vector, and the gradient of everything else is as before."""
    x = jnp.asarray(points())
    gradients, sizes = [], []
    for train in (True, False):
        spec = replace(SMALL, kernels=replace(KERNELS, train_centers=train))
        theta, assemble = flatten(spec.build(inputs(), KEY))
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
    **{
        f"{name}, {n} blocks": replace(SMALL, kernels=replace(KERNELS, distance=d()), blocks=n)
        for name, d in DISTANCES.items()
        for n in (1, 2)
    },
    "factorised": replace(SMALL, deep=Deep(1, factorisation=Factorisation(), activation="swish")),
    "gated": replace(SMALL, deep=Deep(2, gated=True), kernels=replace(KERNELS, kernel=Matern52())),
    "gated and factorised": replace(SMALL, deep=replace(DEEPS["gated and factorised"], depth=2)),
    "expanded distance": replace(
        SMALL, width=9, blocks=2, kernels=replace(KERNELS, kernel=Gaussian())
    ),
    "rbf only": replace(SMALL, deep=None, kernels=replace(KERNELS, kernel=InverseMultiquadric())),
    "dnn only": replace(SMALL, kernels=None, deep=Deep(1, activation="gelu")),
}


SOME = {"expanded distance", "gated and factorised"}


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
    ("mistake", "message"),
    [
        (lambda: Deep(activation="tan"), "Did you mean 'tanh'"),
        (lambda: Deep(depth=-1), "Deep: depth must be at least 0, not -1"),
        (lambda: Moving(kernel=WendlandC2()), "the equation needs 4"),
        (lambda: Moving(count=0), "Moving: count must be at least 1"),
        (lambda: Moving(quantile=1.5), "Moving: quantile is between 0 and 1"),
        (lambda: Moving(factor=0.0), "Moving: factor must be positive"),
        (lambda: Gates(SigmoidGate(tau=0.0)), "tau must be positive"),
        (lambda: Gates(penalty=-1.0), "Gates: penalty must be at least 0"),
        (lambda: HyResPINN(blocks=0), "HyResPINN: blocks must be at least 1, not 0"),
        (lambda: HyResPINN(width=0), "HyResPINN: width must be at least 1"),
        (lambda: HyResPINN(kernels=None, deep=None), "a block needs a branch"),
    ],
    ids=lambda m: m if isinstance(m, str) else "",
)
def test_mistakes_in_a_specification_are_explained(x64, mistake, message):
    """At once, or where they depend on other fields or the problem, when the network is built."""

    def build():
        made = mistake()
        spec = replace(SMALL, kernels=made) if isinstance(made, Moving) else made
        return spec.build(inputs(), KEY)

    with pytest.raises(UserError, match=message):
        build()
