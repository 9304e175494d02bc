"""What every model must do, and what each baseline is by its own definition."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import equinox as eqx
import hyrespinn as hp
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
    Frequencies,
    Gates,
    Inputs,
    Lattice,
    Model,
    ModelSpec,
    Moving,
    Scattered,
    SigmoidGate,
    linear_part,
)
from hyrespinn.models.kernels import Full, Gaussian, Isotropic, Kernel
from hyrespinn.models.kernels.rbf import RBF
from hyrespinn.models.parameters import cast, flatten
from hyrespinn.settings import from_json, to_json

from helpers import Heat, some_slow

pytestmark = pytest.mark.usefixtures("x64")
BOUNDS = ((0.0, 1.0), (-1.0, 3.0))
KEY = jax.random.key(3)
QUICK = {"xla_backend_optimization_level": 0}  # nearly all the time goes into compiling
KERNELS = Moving(count=4, kernel=Gaussian())
WAVES, FACTORS = Fourier(features=6), Factorisation()
LAYERED = {"fourier": WAVES, "factorisation": FACTORS, "last_width": 3}
BASE = {
    **{name: {"width": 4} for name in MODELS},
    "hyrespinn": {"width": 4, "kernels": KERNELS},
    "kernel-expansion": {"kernels": Scattered(count=9)},
}
"""Small ones."""
RICH = {
    "hyrespinn": {"deep": Deep(fourier=WAVES, factorisation=FACTORS)},
    "pinn": LAYERED,
    "respinn": LAYERED,
    "expertpinn": {"fourier": replace(WAVES, trained=False)},
    "stackedpinn": LAYERED,
    "piratenet": {"last_width": 3},
    "kernel-expansion": {"kernels": Lattice((3, 5))},
}
"""Every model with the optional parts it can have."""
NETWORKS = [name for name in MODELS if name != "kernel-expansion"]
each_model = pytest.mark.parametrize("name", MODELS)
# Nearly all other tests have float64.
each_precision = pytest.mark.parametrize("dtype", some_slow(["float32", "float64"], ["float64"]))
VARIANTS = [(name, s) for name in MODELS for s in ({}, RICH[name])]
each_variant = pytest.mark.parametrize(("name", "settings"), VARIANTS, ids=str)
each_network_variant = pytest.mark.parametrize(
    ("name", "settings"), [(n, s) for n, s in VARIANTS if n in NETWORKS], ids=str
)


def spread(count, rng):
    return rng.uniform(*np.transpose(BOUNDS), (count, 2))


def inputs(outputs=2, periodic=(False, True)):
    return Inputs(BOUNDS, periodic, outputs, 4, spread, spread, has_time=True)


@cache
def small(name, **settings):
    """A network of a few neurons with every trained number moved, so that no gate is at zero."""
    config = MODELS[name](**{**BASE[name], **settings})
    model = config.build(inputs(), KEY)
    rng = np.random.default_rng(2)
    return jax.tree.map(
        lambda a: a + 0.1 * rng.normal(size=a.shape) if eqx.is_inexact_array(a) else a, model
    )


def some_points(count=5):
    return jnp.asarray(spread(count, np.random.default_rng(1)))


@each_variant
def test_shapes_and_batches(name, settings):
    """Points by themselves give what they give in a batch, in any shape of batch.

    (With as many axes as coordinates they would be a grid for kernels on a lattice.)
    """
    model, x = small(name, **settings), some_points(6)
    values = model(x)
    assert values.shape == (6, 2)
    np.testing.assert_allclose(jax.vmap(model)(x), values, atol=1e-14)
    np.testing.assert_allclose(model(x.reshape(2, 1, 3, 2)), values.reshape(2, 1, 3, 2), atol=1e-14)
    assert np.ptp(np.asarray(values), axis=0).min() > 1e-6


@each_variant
@each_precision
def test_precision_is_kept(name, settings, dtype):
    model = cast(small(name, **settings), dtype)
    x = some_points().astype(dtype)
    assert model(x).dtype == dtype
    series = model(coordinates(x, closure([(0, 2)], 2)))
    assert series[(0, 2)].dtype == dtype
    theta, assemble = flatten(model)
    assert theta.dtype == dtype
    np.testing.assert_array_equal(assemble(theta)(x), model(x))


@each_model
def test_the_seed_decides(name):
    config = MODELS[name]()

    def leaves(seed):
        network = config.build(inputs(), jax.random.key(seed))
        return np.concatenate([np.ravel(a) for a in jax.tree.leaves(network)])

    one, again, other = leaves(1), leaves(1), leaves(2)
    np.testing.assert_array_equal(one, again)
    assert np.abs(one - other).max() > 1e-3


@pytest.mark.parametrize("name", some_slow(MODELS, MODELS.keys() - {"hyrespinn", "piratenet"}))
def test_derivatives_equal_nested_reverse_mode(name):
    model, x = small(name, **RICH[name]), some_points(3)
    indices = [(1, 0), (0, 1), (1, 1), (0, 2), (0, 3), (0, 4)]

    mixture = jnp.asarray([1.0, -0.7])  # of the two fields, so that both are seen at once

    def nested(index):
        function = lambda p: model(p) @ mixture  # noqa: E731
        for axis, times in enumerate(index):
            for _ in range(times):
                function = (lambda f, a: lambda p: jax.grad(f)(p)[a])(function, axis)
        return jax.vmap(function)

    def both(x):
        series = model(coordinates(x, closure(indices, 2)))
        return [(series[i] @ mixture, nested(i)(x)) for i in indices]

    for found, expected in jax.jit(both, compiler_options=QUICK)(x):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@each_variant
def test_periodic_coordinates_wrap(name, settings):
    model, x = small(name, **settings), some_points()
    np.testing.assert_allclose(model(x + jnp.asarray([0.0, 4.0])), model(x), atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "hyrespinn"])
def test_it_trains_saves_and_loads(name, tmp_path):
    """A few steps lower the error, and the saved solution gives the same values.

    The same of a HyResPINN is in the tests of runs and solutions.
    """
    quick = {"model.width": 6, "stages": "adam:100", "points.interior": 64}
    solution = hp.solve(Heat(), model=name, settings=quick, progress=False, out=tmp_path / "run")
    assert (solution.result["model"], solution.result["method"]) == (name, "network")
    assert solution.result["rel_l2"]["u"] < solution.result["rel_l2_initial"]["u"]
    loaded = hp.Solution.load(tmp_path / "run" / "solution.hyres", problem=Heat())
    x = np.linspace(0, 1, 7)
    np.testing.assert_array_equal(loaded(t=0.3, x=x), solution(t=0.3, x=x))


@pytest.mark.parametrize("name", NETWORKS)
def test_a_width_of_nothing_is_refused(name):
    with pytest.raises(UserError, match=f"{MODELS[name].__name__}: width must be at least 1"):
        MODELS[name](width=0).build(inputs(), KEY)


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "hyrespinn"])
def test_a_misspelt_activation_is_refused(name):
    with pytest.raises(UserError, match=r"Unknown activation 'tahn'. Did you mean 'tanh'"):
        MODELS[name](activation="tahn").build(inputs(), KEY)


@each_variant
def test_specifications_are_plain_values(name, settings):
    """They survive being written as text, and build the same network again."""
    spec = MODELS[name](**settings)
    again = from_json(ModelSpec, json.loads(json.dumps(to_json(spec))))
    assert again == spec
    assert hash(again) == hash(spec)
    assert type(again) is type(spec)


def test_the_parts_of_a_specification_come_back_too():
    spec = MODELS["hyrespinn"](
        kernels=Moving(kernel=Gaussian(), distance=Full()),
        deep=Deep(fourier=WAVES, factorisation=FACTORS),
        gates=Gates(SigmoidGate(tau=0.1), penalty=1e-4),
    )
    written = to_json(spec)
    assert written["kernels"]["kernel"] == {"kind": "gaussian"}
    assert from_json(ModelSpec, written) == spec
    with pytest.raises(UserError, match="Did you mean 'gaussian'"):
        from_json(Kernel, {"kind": "gausian"})

    class Unnamed(Gaussian):
        pass

    with pytest.raises(UserError, match="Unnamed has no name"):
        to_json(Moving(kernel=Unnamed()))


def with_scales(spec, frequencies, factors):
    """The specification with other parameters of these parts, where it has them."""
    if isinstance(spec, MODELS["hyrespinn"]):
        return replace(spec, deep=with_scales(spec.deep, frequencies, factors))
    parts = {"fourier": frequencies, "factorisation": factors}
    present = {k: v for k, v in parts.items() if vars(spec)[k] is not None}
    return replace(spec, **present)


@each_network_variant
def test_fourier_features_and_factors_are_drawn_as_asked(name, settings):
    """Frequencies have the scale asked for, logarithmic scales their mean and deviation."""
    waves = (Frequencies if name == "piratenet" else Fourier)(scale=1e3)
    spec = with_scales(MODELS[name](**settings), waves, Factorisation(mean=7.0, deviation=0.0))
    model = spec.build(inputs(), KEY)
    paths = jax.tree_util.tree_leaves_with_path(model)
    named = {jax.tree_util.keystr(path): leaf for path, leaf in paths}
    frequencies = [a for path, a in named.items() if "frequencies" in path]
    factors = [a for path, a in named.items() if "log_scale" in path]
    assert len(frequencies) == (1 if settings or name in ("expertpinn", "piratenet") else 0)
    assert all(100 < np.abs(a).max() < 5000 for a in frequencies)
    assert bool(factors) == bool(settings or name in ("expertpinn", "piratenet"))
    assert all((np.asarray(a) == 7.0).all() for a in factors)


@each_variant
def test_gates_stay_in_their_range(name, settings):
    """Large changes leave a HyResPINN's gates in [0, 1].

    The α of a PirateNet and the |α| of a StackedPINN are free by their own definition: these are
    reported and finite, no more. The others have nothing to report.
    """
    theta, assemble = flatten(small(name, **settings))
    rng = np.random.default_rng(5)
    for _ in range(5):
        model = assemble(theta + 50 * rng.normal(size=theta.size))
        values = np.asarray(list(model.diagnostics().values()))
        expected = {
            "hyrespinn": lambda: 2 * len(model.blocks),
            "stackedpinn": lambda: len(model.levels),
            "piratenet": lambda: len(model.blocks),
        }
        assert len(values) == expected.get(name, lambda: 0)()
        assert np.isfinite(values).all()
        if name == "hyrespinn":
            assert ((values >= 0) & (values <= 1)).all()


@each_variant
def test_every_network_fulfils_the_contract(name, settings):
    model = small(name, **settings)
    assert isinstance(model, Model)
    penalty = model.penalty()
    assert (penalty is None) == (name not in ("hyrespinn", "stackedpinn"))
    assert penalty is None or penalty.shape == ()
    assert model.linear_leaves()


# The last layer.


@each_variant
def test_the_output_is_affine_in_the_last_layer(name, settings):
    model, x = small(name, **settings), some_points()
    rng = np.random.default_rng(7)
    last = model.linear_leaves()

    def output(arrays):
        return np.asarray(eqx.tree_at(lambda m: m.linear_leaves(), model, arrays)(x))

    other = tuple(a + rng.normal(size=a.shape) for a in last)
    between = tuple(3.5 * a - 2.5 * b for a, b in zip(last, other, strict=True))
    np.testing.assert_array_equal(output(last), model(x))
    np.testing.assert_allclose(
        output(between), 3.5 * output(last) - 2.5 * output(other), atol=1e-10
    )
    for i, array in enumerate(last):
        moved = [*last[:i], array + rng.normal(size=array.shape), *last[i + 1 :]]
        assert np.abs(output(tuple(moved)) - output(last)).max() > 1e-2


@each_variant
@each_precision
def test_the_last_layer_within_the_flat_parameters(name, settings, dtype):
    model = cast(small(name, **settings), dtype)
    theta, assemble = flatten(model)
    values, put = linear_part(assemble, theta)
    expected = np.concatenate([np.ravel(a) for a in model.linear_leaves()])
    assert values.dtype == dtype
    np.testing.assert_array_equal(values, expected)
    changed = put(jnp.arange(values.size, dtype=dtype))
    found = np.concatenate([np.ravel(a) for a in assemble(changed).linear_leaves()])
    np.testing.assert_array_equal(found, np.arange(values.size))
    assert (np.asarray(changed) != np.asarray(theta)).sum() == values.size
    np.testing.assert_array_equal(put(values), theta)
    jitted = jax.jit(lambda t: linear_part(assemble, t)[1](linear_part(assemble, t)[0] + 1))(theta)
    np.testing.assert_array_equal(jitted, put(values + 1))


def test_a_model_that_names_no_linear_leaves():
    class Plain(Model):
        weight: jax.Array

        def __call__(self, x):
            return jnp.tanh(x @ self.weight)

    theta, assemble = flatten(Plain(jnp.ones((2, 1))))
    with pytest.raises(UserError, match=r"Plain.linear_leaves\(\) names no arrays"):
        linear_part(assemble, theta)


# Each model by its own formulas, in numpy.


def dense(layer, h):
    weight = getattr(layer, "weight", None)
    if weight is None:
        weight = layer.direction * jnp.exp(layer.log_scale)
    return np.asarray(h) @ np.asarray(weight) + np.asarray(layer.bias)


def waves(fourier, h):
    angles = h @ np.asarray(getattr(fourier.frequencies, "array", fourier.frequencies))
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1)


def features(model, h):
    return h if model.features.fourier is None else waves(model.features.fourier, h)


def embedded(x):
    t, angle = 2 * x[:, 0] - 1, np.pi * (x[:, 1] + 1) / 2 - np.pi
    return np.stack([t, np.cos(angle), np.sin(angle)], axis=1)


def mlp(layers, h):
    for layer in layers[:-1]:
        h = np.tanh(dense(layer, h))
    return dense(layers[-1], h)


def hyrespinn(model, h):
    """Gaussian kernels and diagonal distances; only the deep branch of block 1 sees the waves."""
    skip = dense(model.lift, h)
    for i, block in enumerate(model.blocks):
        rbf, dnn, deep = block.rbf, block.deep, h
        if hasattr(dnn, "features"):
            assert i == 0
            deep, dnn = waves(dnn.features, h), dnn.network
        scaled = (h[:, None] - np.asarray(rbf.centers)) * np.exp(np.asarray(rbf.shapes[0]))
        local = np.exp(-np.sum(scaled**2, axis=-1) / 2) @ np.asarray(rbf.coefficients)
        a, b = (1 / (1 + np.exp(-float(z))) for z in (block.alpha, block.beta))
        h = skip = b * np.tanh(a * local + (1 - a) * mlp(dnn.layers, deep)) + (1 - b) * skip
    return mlp(model.head.layers, skip)


def pinn(model, h):
    return mlp(model.mlp.layers, features(model, h))


def respinn(model, h):
    h = np.tanh(dense(model.first, features(model, h)))
    for block in model.blocks:
        h = h + np.tanh(dense(block, h))
    for layer in model.last:
        h = np.tanh(dense(layer, h))
    return dense(model.head, h)


def expertpinn(model, h):
    h = features(model, h)
    u, v = np.tanh(dense(model.mlp.first, h)), np.tanh(dense(model.mlp.second, h))
    for layer in model.mlp.mlp.layers[:-1]:
        z = np.tanh(dense(layer, h))
        h = z * u + (1 - z) * v
    return dense(model.mlp.mlp.layers[-1], h)


def piratenet(model, h):
    h = features(model, h)
    u, v = np.tanh(dense(model.first, h)), np.tanh(dense(model.second, h))
    for block in model.blocks:
        f = np.tanh(dense(block.layers[0], h))
        f = f * u + (1 - f) * v
        g = np.tanh(dense(block.layers[1], f))
        g = g * u + (1 - g) * v
        alpha = float(block.alpha)
        h = alpha * np.tanh(dense(block.layers[2], g)) + (1 - alpha) * h
    for layer in model.last:
        h = dense(layer, h)
    return dense(model.head, h)


def stackedpinn(model, h):
    h = features(model, h)
    u = mlp(model.first.layers, h)
    for level in model.levels:
        entering = np.concatenate([h, u], axis=1)
        share = abs(float(level.alpha))
        u = (1 - share) * dense(level.linear, entering) + share * mlp(
            level.nonlinear.layers, entering
        )
    return u


def kernel_expansion(model, h):
    """Gaussians one by one, of a lattice all products; and an affine function of the features."""
    kernels = model.kernels
    if isinstance(kernels, RBF):
        parts = [(kernels.centers.array, kernels.shapes.array[0], h)]
    else:
        chosen = [h[:, a:b] for a, b in kernels.columns]
        factors = [factor.array for factor in kernels.factors]
        parts = [(c, s[0], own) for (c, s), own in zip(factors, chosen, strict=True)]
    values = np.ones((len(h), 1))
    for centers, logs, own in parts:
        scaled = (own[:, None] - np.asarray(centers)) * np.exp(np.asarray(logs))
        factor = np.exp(-np.sum(scaled**2, axis=-1) / 2)
        values = (values[:, :, None] * factor[:, None]).reshape(len(h), -1)
    return values @ np.asarray(kernels.coefficients) + dense(model.affine, h)


FORMULAS = {
    "kernel-expansion": (kernel_expansion, {}),
    "hyrespinn": (hyrespinn, {"blocks": 3, "head_depth": 1, "gates": Gates(beta=0.6)}),
    "pinn": (pinn, {}),
    "respinn": (respinn, {"depth": 4}),
    "expertpinn": (expertpinn, {"fourier": Fourier(trained=False)}),
    "piratenet": (piratenet, {"blocks": 3}),
    "stackedpinn": (stackedpinn, {"levels": 3}),
}


@each_variant
def test_a_model_is_its_formula(name, settings):
    formula, own = FORMULAS[name]
    model, x = small(name, **{**own, **settings}), np.asarray(some_points())
    np.testing.assert_allclose(model(jnp.asarray(x)), formula(model, embedded(x)), atol=1e-12)


@pytest.mark.parametrize("name", ["pinn", "respinn", "stackedpinn"])
def test_the_last_hidden_layer_may_have_another_width(name):
    """Of one hidden layer, it is that one; of a ResPINN of more, it is the one without a skip."""
    for depth in (1, 3):
        model = small(name, depth=depth, last_width=3)
        networks = {
            "pinn": lambda: [model.mlp.layers],
            "respinn": lambda: [[model.first, *model.blocks, *model.last, model.head]],
            "stackedpinn": lambda: [
                model.first.layers,
                *(v.nonlinear.layers for v in model.levels),
            ],
        }[name]()
        for layers in networks:
            assert [layer.bias.size for layer in layers] == [4] * (depth - 1) + [3, 2]
        if name == "respinn":
            assert len(model.last) == (depth > 1)


@pytest.mark.parametrize("last_width", [0, 5])
def test_piratenet_starts_linear_in_its_features(last_width):
    config = MODELS["piratenet"](width=8, blocks=3, last_width=last_width)
    model = config.build(inputs(), KEY)
    x = np.asarray(some_points(40))
    seen = np.column_stack([features(model, embedded(x)), np.ones(40)])
    values = np.asarray(model(jnp.asarray(x)))
    linear = seen @ np.linalg.lstsq(seen, values, rcond=None)[0]
    np.testing.assert_allclose(values, linear, atol=1e-12)
    assert all(float(a) == 0 for a in model.diagnostics().values())
    assert len(model.last) == bool(last_width)
    moved = np.asarray(replace(config, alpha=0.5).build(inputs(), KEY)(jnp.asarray(x)))
    assert np.abs(moved - seen @ np.linalg.lstsq(seen, moved, rcond=None)[0]).max() > 1e-4


@pytest.mark.parametrize("fourier", [None, WAVES])
def test_closed_blocks_leave_lift_and_head(fourier):
    """With φ(β) = 0 in every block nothing else of a HyResPINN is seen."""
    model = small("hyrespinn", blocks=3, head_depth=1, deep=Deep(fourier=fourier))
    closed = eqx.tree_at(
        lambda m: [block.beta for block in m.blocks], model, [jnp.asarray(-1e5)] * 3
    )
    assert all(float(v) == 0 for k, v in closed.diagnostics().items() if k.startswith("phi_beta"))
    x = np.asarray(some_points())
    expected = mlp(closed.head.layers, dense(closed.lift, embedded(x)))
    np.testing.assert_allclose(closed(jnp.asarray(x)), expected, atol=1e-13)


STARTS = {
    "fast": (
        hp.HyResPINN(kernels=Moving(12), deep=Deep(2, fourier=Fourier(features=24, scale=2.0))),
        (18.41375523677351, 468.88902443267455, -10.860638095754272),
    ),
    "default": (
        hp.HyResPINN(),
        (32.85520462134398, 446.0958959207272, 8.352480897229487),
    ),
    "three blocks, gated": (
        hp.HyResPINN(blocks=3, deep=Deep(gated=True)),
        (332.2778989952607, 2305.517844878207, 1.9417330581597878),
    ),
    "gated, factorised": (
        hp.HyResPINN(
            blocks=2, kernels=Moving(8, distance=Full()), head_depth=1,
            deep=Deep(gated=True, factorisation=FACTORS, fourier=Fourier()),
        ),
        (202.3239517821667, 931.105933687184, -9.095198416398869),
    ),
    "rbf only": (
        hp.HyResPINN(
            blocks=2, deep=None, kernels=Moving(kernel=Gaussian(), distance=Isotropic()),
            gates=Gates(FreeGate()),
        ),
        (20.162142906978406, 484.4668190372545, 1.4471789323403776),
    ),
    "dnn only": (
        hp.HyResPINN(blocks=2, kernels=None, deep=Deep(width=5)),
        (3.0554703663431577, 136.10681573079512, -5.530373982663033),
    ),
    "pinn": (
        MODELS["pinn"](),
        (-1.9407003903284217, 323.9887648252868, 9.09558636276892),
    ),
    "respinn": (
        MODELS["respinn"](),
        (-0.547840878531288, 325.0998935871065, 9.245381330483994),
    ),
    "expertpinn": (
        MODELS["expertpinn"](),
        (98.80379133211491, 268.7504863993809, 5.398564344189276),
    ),
    "stackedpinn": (
        MODELS["stackedpinn"](),
        (6.776357117399588, 395.0817403052379, 15.502660170197744),
    ),
    "piratenet": (
        MODELS["piratenet"](),
        (127.61947949775266, 339.31270396280513, -1.7540607876794003),
    ),
    "rich pinn": (
        MODELS["pinn"](**LAYERED),
        (62.95539144624637, 154.28738336473376, 3.4799829284243766),
    ),
    "rich respinn": (
        MODELS["respinn"](**LAYERED),
        (67.52733096280468, 151.61344958845604, 1.8884291255151677),
    ),
    "rich stacked": (
        MODELS["stackedpinn"](harmonics=2, **LAYERED),
        (76.59787176616197, 178.0438568090923, -5.420334510893801),
    ),
    "rich expert": (
        MODELS["expertpinn"](**RICH["expertpinn"]),
        (90.29176695417611, 167.75364776531956, -3.8295826388217415),
    ),
    "rich pirate": (
        MODELS["piratenet"](last_width=3, blocks=2),
        (199.54614065466654, 528.1933927274913, -2.900279647276993),
    ),
}  # fmt: skip
"""Specifications, and the sum, the sum of sizes and a weighted sum of all parameters at the start."""


@pytest.mark.parametrize("name", STARTS)
def test_a_seed_gives_the_same_start_as_ever(name):
    """Recorded results rest on it: these sums are those of the first version."""
    spec, expected = STARTS[name]
    theta = np.asarray(flatten(spec.build(inputs(), KEY))[0])
    sums = theta.sum(), np.abs(theta).sum(), theta @ np.cos(np.arange(theta.size))
    np.testing.assert_allclose(sums, expected, rtol=1e-12)


def test_fourier_features_change_nothing_else_of_a_hyrespinn():
    """Lift, head, later blocks' layers and the RBF branch of block 1 start as without them."""
    plain, rich = (
        hp.HyResPINN(blocks=2, kernels=Moving(4), deep=Deep(fourier=f)).build(inputs(), KEY)
        for f in (None, WAVES)
    )
    for part in (
        lambda m: m.lift,
        lambda m: m.head,
        lambda m: m.blocks[0].rbf,
        lambda m: m.blocks[1].deep,
        lambda m: (m.blocks[0].deep if m is plain else m.blocks[0].deep.network).layers[1:],
    ):
        assert eqx.tree_equal(part(plain), part(rich))


# The levels of a stack.


def stack():
    model = small("stackedpinn", levels=3, fourier=WAVES, penalty=0.5)
    return model, [(model.features, model.first), *model.levels]


def test_a_stacked_level_reads_the_level_before():
    """Whatever comes before it is moved, the last level's answer moves too."""
    model, x = stack()[0], some_points()
    for k in (1, 2, 3):
        part = (lambda m: m.first) if k == 1 else (lambda m: m.levels[k - 2].linear)
        moved = eqx.tree_at(part, model, replace_fn=lambda n: jax.tree.map(lambda a: a + 1.0, n))
        for j in range(1, 5):
            change = np.abs(np.asarray(moved.upto(j)(x) - model.upto(j)(x))).max()
            assert (change > 1e-3) == (j >= k)


def test_a_stack_is_its_parts():
    model, x = stack()[0], np.asarray(some_points())
    assert model.parts == 4
    np.testing.assert_array_equal(model.upto(4)(jnp.asarray(x)), model(jnp.asarray(x)))
    for k in range(1, 5):
        part = model.upto(k)
        assert part.parts == k
        np.testing.assert_allclose(part(jnp.asarray(x)), stackedpinn(part, embedded(x)), atol=1e-12)
    for k in (0, 5):
        with pytest.raises(UserError, match=f"A stack of 4 networks has no part {k}"):
            model.upto(k)


@pytest.mark.parametrize("k", some_slow([1, 2, 3, 4], {1, 3, 4}))
def test_only_the_last_part_is_trained(k):
    """No gradient reaches any other network, nor its penalty; the features are the first one's."""
    model, networks = stack()
    theta, assemble = flatten(model)
    x = some_points()

    def loss(vector):
        part = assemble(vector).upto(k)
        return jnp.sum(part(x) ** 2) + part.penalty()

    gradient = assemble(jax.grad(loss)(theta))
    parts = [(gradient.features, gradient.first), *gradient.levels]
    for number, part in enumerate(parts, start=1):
        leaves = jax.tree.leaves(part)
        assert [bool((np.asarray(a) != 0).any()) for a in leaves] == [number == k] * len(leaves)
    penalty = 0.5 * float(networks[k - 1].alpha) ** 4 if k > 1 else 0.0
    np.testing.assert_allclose(model.upto(k).penalty(), penalty)
    assert list(model.upto(k).diagnostics()) == [f"alpha_{i}" for i in range(1, k)]


def test_the_penalty_of_a_stack_is_the_sum_of_fourth_powers():
    model = small("stackedpinn", penalty=0.5)
    expected = 0.5 * sum(float(level.alpha) ** 4 for level in model.levels)
    np.testing.assert_allclose(model.penalty(), expected)


@pytest.mark.parametrize("trained", [True, False])
def test_frequencies_are_trained_or_not(trained):
    sizes = {
        t: flatten(MODELS["expertpinn"](fourier=Fourier(trained=t)).build(inputs(), KEY))[0].size
        for t in (True, False)
    }
    assert sizes[True] - sizes[False] == 3 * 12
    model = small("piratenet", fourier=Frequencies(trained=trained))
    theta, assemble = flatten(model)
    gradient = jax.grad(lambda v: jnp.sum(assemble(v)(some_points()) ** 2))(theta)
    assert np.isfinite(np.asarray(gradient)).all()


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("expertpinn", {"width": 5}, "ExpertPINN: width must be even, not 5"),
        ("piratenet", {"width": 5}, "PirateNet: width must be even, not 5"),
        ("hyrespinn", {"width": 5, "deep": Deep(fourier=Fourier())}, "width must be even"),
        ("piratenet", {"last_width": -1}, "PirateNet: last_width must be at least 0, not -1"),
        ("stackedpinn", {"penalty": -1.0}, "StackedPINN: penalty must be at least 0"),
        ("respinn", {"depth": 0}, "ResPINN: depth must be at least 1"),
    ],
    ids=str,
)
def test_impossible_specifications_are_refused(name, change, message):
    config = MODELS[name](**change)
    for use in (lambda: config.build(inputs(), KEY), lambda: config.count(inputs())):
        with pytest.raises(UserError, match=message):
            use()


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (lambda: Fourier(features=3), "Fourier: features must be even and at least 2, not 3"),
        (lambda: Fourier(features=-2), "Fourier: features must be even and at least 2, not -2"),
        (lambda: Fourier(scale=0.0), "Fourier: scale must be positive"),
        (lambda: Frequencies(scale=-1.0), "Frequencies: scale must be positive"),
        (lambda: Factorisation(deviation=-0.1), "Factorisation: deviation must be at least 0"),
    ],
    ids=range(5),
)
def test_impossible_parts_are_refused_at_once(part, message):
    with pytest.raises(UserError, match=message):
        part()
