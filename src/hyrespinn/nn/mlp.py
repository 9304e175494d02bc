"""The deep branch: plain and modified multilayer perceptrons, and the branch that is zero."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
from jax import Array

from ..derivatives import activation
from .dense import Dense, FactorisedDense


class MLP(eqx.Module):
    """``depth`` hidden layers of ``width`` neurons and a linear output."""

    layers: list[Any]
    activation: str = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        outputs: int,
        width: int,
        depth: int,
        key: Array,
        activation: str = "tanh",
        layer: Callable[..., Any] = Dense,
    ):
        sizes = [inputs, *[width] * depth, outputs]
        keys = jax.random.split(key, len(sizes) - 1)
        self.layers = [layer(a, b, k) for a, b, k in zip(sizes[:-1], sizes[1:], keys, strict=True)]
        self.activation = activation

    def __call__(self, h: Any) -> Any:
        act = activation(self.activation)
        for layer in self.layers[:-1]:
            h = act(layer(h))
        return self.layers[-1](h)


class ModifiedMLP(eqx.Module):
    """Every hidden layer is mixed between two encodings of the input, ``U`` and ``V``:
    ``h ← z·U + (1−z)·V`` (the modified MLP of Wang, Teng and Perdikaris)."""

    mlp: MLP
    first: Any
    second: Any

    def __init__(
        self,
        inputs: int,
        outputs: int,
        width: int,
        depth: int,
        key: Array,
        activation: str = "tanh",
        layer: Callable[..., Any] = Dense,
    ):
        keys = jax.random.split(key, 3)
        self.mlp = MLP(inputs, outputs, width, depth, keys[0], activation, layer)
        self.first = layer(inputs, width, keys[1])
        self.second = layer(inputs, width, keys[2])

    def __call__(self, h: Any) -> Any:
        act = activation(self.mlp.activation)
        u, v = act(self.first(h)), act(self.second(h))
        difference = u - v
        for layer in self.mlp.layers[:-1]:
            h = v + act(layer(h)) * difference
        return self.mlp.layers[-1](h)


class Zero(eqx.Module):
    """A branch that contributes nothing: the other half of an ablation."""

    def __call__(self, h: Any) -> float:
        return 0.0


DNNS: dict[str, Callable[..., Any]] = {
    "mlp": MLP,
    "mlp-rwf": partial(MLP, layer=FactorisedDense),
    "modified": ModifiedMLP,
    "modified-rwf": partial(ModifiedMLP, layer=FactorisedDense),
}
"""The deep branches by name; ``-rwf`` has random weight factorisation."""
