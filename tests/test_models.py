"""What every model must do, and what each baseline is by its own definition."""

from __future__ import annotations

from dataclasses import replace

import equinox as eqx
import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.derivatives import closure, coordinates
from hyrespinn.errors import UserError
from hyrespinn.nn import MODELS, Inputs
from hyrespinn.nn.parameters import cast, flatten

from helpers import Heat

pytestmark = pytest.mark.usefixtures("x64")
BOUNDS = ((0.0, 1.0), (-1.0, 3.0))
KEY = jax.random.key(3)
SMALL = {"hyrespinn": {"centers": 4, "kernel": "gaussian"}, "expertpinn": {"fourier": 6}}
each_model = pytest.mark.parametrize("name", MODELS)


def spread(count, rng):
    return rng.uniform(*np.transpose(BOUNDS), (count, 2))


def inputs(outputs=2, periodic=(False, True)):
    return Inputs(BOUNDS, periodic, outputs, 4, spread, spread)


def small(name, **settings):
    """A network of a few neurons with every trained number moved, so that no gate is at zero."""
    config = MODELS[name](**{"width": 4, **SMALL.get(name, {}), **settings})
    model = config.build(inputs(), KEY)
    rng = np.random.default_rng(2)
    return jax.tree.map(
        lambda a: a + 0.1 * rng.normal(size=a.shape) if eqx.is_inexact_array(a) else a, model
    )


def some_points(count=5):
    return jnp.asarray(spread(count, np.random.default_rng(1)))


@each_model
def test_shapes_and_batches(name):
    """Points by themselves give what they give in a batch, in any shape of batch."""
    model, x = small(name), some_points(6)
    values = model(x)
    assert values.shape == (6, 2)
    np.testing.assert_allclose(jax.vmap(model)(x), values, atol=1e-14)
    np.testing.assert_allclose(model(x.reshape(2, 3, 2)), values.reshape(2, 3, 2), atol=1e-14)
    assert np.ptp(np.asarray(values), axis=0).min() > 1e-6


@each_model
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_precision_is_kept(name, dtype):
    model = cast(small(name), dtype)
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
    one, again, other = (flatten(config.build(inputs(), jax.random.key(s)))[0] for s in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert np.abs(one - other).max() > 1e-3


@each_model
def test_derivatives_equal_nested_reverse_mode(name):
    model, x = small(name), some_points(3)
    indices = [(1, 0), (0, 1), (1, 1), (0, 2), (0, 3), (0, 4)]
    series = jax.jit(lambda x: model(coordinates(x, closure(indices, 2))))(x)

    def nested(index, field):
        function = lambda p: model(p)[field]  # noqa: E731
        for axis, times in enumerate(index):
            for _ in range(times):
                function = (lambda f, a: lambda p: jax.grad(f)(p)[a])(function, axis)
        return jax.vmap(function)(x)

    for index in indices:
        for field in range(2):
            expected = nested(index, field)
            np.testing.assert_allclose(
                series[index][:, field], expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max()
            )


@each_model
def test_periodic_coordinates_wrap(name):
    model, x = small(name), some_points()
    np.testing.assert_allclose(model(x + jnp.asarray([0.0, 4.0])), model(x), atol=1e-12)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "hyrespinn"])
def test_it_trains_saves_and_loads(name, tmp_path):
    """A few steps lower the error, and the saved solution gives the same values.

    The same of a HyResPINN is in the tests of runs and solutions.
    """
    quick = {"model.width": 6, "train.adam_steps": 30, "train.ssbroyden_steps": 15,
             "train.points": 64, "train.pool": 1}  # fmt: skip
    if name == "expertpinn":
        quick["model.fourier"] = 6
    solution = hp.solve(Heat(), model=name, settings=quick, progress=False, out=tmp_path / "run")
    assert solution.result["model"] == name
    assert solution.result["rel_l2"]["u"] < solution.result["rel_l2_initial"]["u"]
    loaded = hp.Solution.load(tmp_path / "run" / "solution.hyres", problem=Heat())
    x = np.linspace(0, 1, 7)
    np.testing.assert_array_equal(loaded(t=0.3, x=x), solution(t=0.3, x=x))


@each_model
def test_bad_settings_are_refused(name):
    with pytest.raises(UserError, match=r"model\.width"):
        MODELS[name](width=0).build(inputs(), KEY)
    with pytest.raises(UserError, match=r"Unknown model\.activation 'tahn'. Did you mean 'tanh'"):
        MODELS[name](activation="tahn").build(inputs(), KEY)


# Each baseline by its own formulas, in numpy.


def dense(layer, h):
    weight = getattr(layer, "weight", None)
    if weight is None:
        weight = layer.direction * jnp.exp(layer.log_scale)
    return np.asarray(h) @ np.asarray(weight) + np.asarray(layer.bias)


def features(model, h):
    frequencies = model.features.frequencies
    angles = h @ np.asarray(getattr(frequencies, "array", frequencies))
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1)


def embedded(model, x):
    t, angle = 2 * x[:, 0] - 1, np.pi * (x[:, 1] + 1) / 2 - np.pi
    return np.stack([t, np.cos(angle), np.sin(angle)], axis=1)


def mlp(layers, h):
    for layer in layers[:-1]:
        h = np.tanh(dense(layer, h))
    return dense(layers[-1], h)


def pinn(model, h):
    return mlp(model.mlp.layers, h)


def respinn(model, h):
    h = np.tanh(dense(model.first, h))
    for block in model.blocks:
        h = h + np.tanh(dense(block, h))
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
    return dense(model.head, h)


def stackedpinn(model, h):
    u = mlp(model.first.layers, h)
    for level in model.levels:
        entering = np.concatenate([h, u], axis=1)
        share = abs(float(level.alpha))
        u = (1 - share) * dense(level.linear, entering) + share * mlp(
            level.nonlinear.layers, entering
        )
    return u


FORMULAS = {
    "pinn": (pinn, {}),
    "respinn": (respinn, {"depth": 4}),
    "expertpinn": (expertpinn, {"train_fourier": False}),
    "piratenet": (piratenet, {"blocks": 3}),
    "stackedpinn": (stackedpinn, {"levels": 3}),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_baseline_is_its_formula(name):
    formula, settings = FORMULAS[name]
    model, x = small(name, **settings), np.asarray(some_points())
    np.testing.assert_allclose(
        model(jnp.asarray(x)), formula(model, embedded(model, x)), atol=1e-12
    )


def test_piratenet_starts_linear_in_its_features():
    config = MODELS["piratenet"](width=8, blocks=3)
    model = config.build(inputs(), KEY)
    x = np.asarray(some_points())
    linear = dense(model.head, features(model, embedded(model, x)))
    np.testing.assert_allclose(model(jnp.asarray(x)), linear, atol=1e-13)
    assert all(float(a) == 0 for a in model.gates().values())
    moved = replace(config, alpha=0.5).build(inputs(), KEY)
    assert np.abs(np.asarray(moved(jnp.asarray(x))) - linear).max() > 1e-3


def test_a_stacked_level_reads_the_level_before():
    model, x = small("stackedpinn"), some_points()
    moved = eqx.tree_at(lambda m: m.first.layers[-1].bias, model, replace_fn=lambda b: b + 1)
    assert np.abs(np.asarray(moved(x) - model(x))).max() > 1e-3


def test_the_penalty_of_a_stack_is_the_sum_of_fourth_powers():
    model = small("stackedpinn", lambda_alpha=0.5)
    expected = 0.5 * sum(float(level.alpha) ** 4 for level in model.levels)
    np.testing.assert_allclose(model.penalty(), expected)


@pytest.mark.parametrize("trained", [True, False])
def test_frequencies_are_trained_or_not(trained):
    sizes = {
        t: flatten(MODELS["expertpinn"](train_fourier=t).build(inputs(), KEY))[0].size
        for t in (True, False)
    }
    assert sizes[True] - sizes[False] == 3 * 12
    model = small("piratenet", train_fourier=trained)
    theta, assemble = flatten(model)
    gradient = jax.grad(lambda v: jnp.sum(assemble(v)(some_points()) ** 2))(theta)
    assert np.isfinite(np.asarray(gradient)).all()


@pytest.mark.parametrize("fourier", [0, 3, -2])
def test_odd_numbers_of_features_are_refused(fourier):
    with pytest.raises(UserError, match=r"model\.fourier must be even and at least 2"):
        MODELS["expertpinn"](fourier=fourier).build(inputs(), KEY)
