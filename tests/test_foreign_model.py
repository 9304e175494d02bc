"""A model of plain JAX functions, which knows nothing of series, is solved all the same."""

from __future__ import annotations

from dataclasses import dataclass

import equinox as eqx
import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.derivatives import closure, coordinates, propagate
from hyrespinn.models import MODELS, Model, ModelSpec

from helpers import TINY, Heat


class Foreign(Model):
    """An Equinox network, mapped over the points."""

    mlp: eqx.nn.MLP

    def __call__(self, x):
        return jax.vmap(self.mlp)(x)


@dataclass(frozen=True)
class ForeignSpec(ModelSpec):
    width: int = 6

    def build(self, inputs, key):
        return Foreign(eqx.nn.MLP(2, inputs.outputs, self.width, 2, jnp.tanh, key=key))


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr(MODELS, "_classes", dict(MODELS))
    hp.register("foreign")(ForeignSpec)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 5])
def test_its_derivatives_are_those_of_nested_reverse_mode(x64, count):
    model = ForeignSpec().build(type("I", (), {"outputs": 1}), jax.random.key(0))
    points = jax.random.uniform(jax.random.key(1), (count, 2))
    series = propagate(model, coordinates(points, closure([(1, 2)], 2)))

    def u(t, x):
        return model(jnp.stack([t, x])[None])[0, 0]

    wanted = jax.vmap(jax.grad(jax.grad(jax.grad(u, 1), 1), 0))(*points.T)
    np.testing.assert_allclose(series[(1, 2)][:, 0], wanted, rtol=1e-9)


def test_a_mistake_inside_it_is_not_hidden():
    def broken(x):
        return x.nonsense

    with pytest.raises(AttributeError, match="nonsense"):
        propagate(broken, coordinates(jnp.zeros((3, 2)), ((0, 0), (0, 1))))


def test_it_can_be_trained_saved_and_loaded(registered, tmp_path):
    settings = {key: value for key, value in TINY.items() if not key.startswith("model.")}
    solution = hp.solve(Heat(), model="foreign", preset="smoke", progress=False, settings=settings)
    result = solution.result
    assert (result["method"], result["model"]) == ("network", "foreign")
    assert isinstance(solution.model, Foreign)
    assert result["rel_l2"]["u"] < 0.2
    solution.save(tmp_path / "foreign.hyres")
    again = hp.Solution.load(tmp_path / "foreign.hyres")
    assert float(again(t=0.3, x=0.4)) == float(solution(t=0.3, x=0.4))


def test_a_specification_without_a_name_can_be_solved_and_not_be_saved(tmp_path):
    """A file could not say what it is."""
    options = {"settings": {"stages": "adam:2", "points.interior": 16}, "progress": False}
    solution = hp.solve(Heat(), model=ForeignSpec(width=3), preset="smoke", **options)
    assert solution.result["model"] == "ForeignSpec"
    assert solution.result["why"] == "the model ForeignSpec was asked for"
    assert solution.spec == ForeignSpec(width=3)
    with pytest.raises(hp.UserError, match="ForeignSpec has no name as a model; write @register"):
        solution.save(tmp_path / "foreign.hyres")
