"""The deep branch: plain and modified multilayer perceptrons, and the branch that is zero."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import equinox as eqx
import jax
from jax import Array

from ..derivatives import activation
from .dense import Dense, FactorisedDense, dense_count


class MLP(eqx.Module):
    """``depth`` hidden layers of ``width`` neurons and a linear output.

    ``last`` is the width of the last hidden layer, 0 for the same as the others.
    """

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
        last: int = 0,
    ):
        sizes = layer_sizes(inputs, outputs, width, depth, last)
        keys = jax.random.split(key, len(sizes))
        self.layers = [layer(*size, k) for size, k in zip(sizes, keys, strict=True)]
        self.activation = activation

    def __call__(self, h: Any) -> Any:
        act = activation(self.activation)
        for layer in self.layers[:-1]:
            h = act(layer(h))
        return self.layers[-1](h)

    def last_layer(self) -> tuple[Any, ...]:
        return self.layers[-1].affine()


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

    def last_layer(self) -> tuple[Any, ...]:
        return self.mlp.last_layer()


class Zero(eqx.Module):
    """A branch that contributes nothing: the other half of an ablation."""

    def __call__(self, h: Any) -> float:
        return 0.0

    def last_layer(self) -> tuple[Any, ...]:
        return ()


DNNS: dict[str, Callable[..., Any]] = {
    "mlp": MLP,
    "mlp-rwf": partial(MLP, layer=FactorisedDense),
    "modified": ModifiedMLP,
    "modified-rwf": partial(ModifiedMLP, layer=FactorisedDense),
}
"""The deep branches by name; ``-rwf`` has random weight factorisation."""


def layer_sizes(
    inputs: int, outputs: int, width: int, depth: int, last: int = 0
) -> list[tuple[int, int]]:
    """What goes into and comes out of each layer.

    >>> layer_sizes(2, 1, 8, 3, last=5)
    [(2, 8), (8, 8), (8, 5), (5, 1)]
    """
    hidden = [width] * depth
    if last and hidden:
        hidden[-1] = last
    return list(pairwise([inputs, *hidden, outputs]))


def mlp_count(
    inputs: int, outputs: int, width: int, depth: int, factorised: bool = False, last: int = 0
) -> int:
    """The number of parameters of an :class:`MLP`."""
    sizes = layer_sizes(inputs, outputs, width, depth, last)
    return sum(dense_count(*size, factorised) for size in sizes)


def modified_count(
    inputs: int, outputs: int, width: int, depth: int, factorised: bool = False
) -> int:
    """The number of parameters of a :class:`ModifiedMLP`: an MLP and the two encodings."""
    encodings = 2 * dense_count(inputs, width, factorised)
    return mlp_count(inputs, outputs, width, depth, factorised) + encodings


DNN_COUNTS: dict[str, Callable[..., int]] = {
    "mlp": mlp_count,
    "mlp-rwf": partial(mlp_count, factorised=True),
    "modified": modified_count,
    "modified-rwf": partial(modified_count, factorised=True),
}
"""The numbers of parameters of the deep branches, by the same names."""
