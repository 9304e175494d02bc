"""Plain and modified multilayer perceptrons, and the deep branch of a HyResPINN."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import equinox as eqx
import jax
from jax import Array

from ..derivatives import activation
from .checks import at_least, known_activation
from .dense import Dense, Factorisation, MakeLayer, dense_count, layer_maker
from .features import Fourier, FourierBranch
from .keys import apart
from .layers import Layer, Series


class MLP(Layer):
    """``depth`` hidden layers of ``width`` neurons and a linear output.

    ``last`` is the width of the last hidden layer, 0 for the same as the others.
    """

    layers: list[Layer]
    activation: str = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        outputs: int,
        width: int,
        depth: int,
        key: Array,
        activation: str = "tanh",
        layer: MakeLayer = Dense,
        last: int = 0,
    ):
        sizes = layer_sizes(inputs, outputs, width, depth, last)
        keys = jax.random.split(key, len(sizes))
        self.layers = [layer(*size, k) for size, k in zip(sizes, keys, strict=True)]
        self.activation = activation

    def __call__(self, h: Series) -> Series:
        act = activation(self.activation)
        for layer in self.layers[:-1]:
            h = act(layer(h))
        return self.layers[-1](h)

    def linear_leaves(self) -> tuple[Array, ...]:
        return self.layers[-1].linear_leaves()


class ModifiedMLP(Layer):
    """Every hidden layer is mixed between two encodings of the input, ``U`` and ``V``:
    ``h ← z·U + (1−z)·V`` (the modified MLP of Wang, Teng and Perdikaris)."""

    mlp: MLP
    first: Layer
    second: Layer

    def __init__(
        self,
        inputs: int,
        outputs: int,
        width: int,
        depth: int,
        key: Array,
        activation: str = "tanh",
        layer: MakeLayer = Dense,
    ):
        keys = jax.random.split(key, 3)
        self.mlp = MLP(inputs, outputs, width, depth, keys[0], activation, layer)
        self.first = layer(inputs, width, keys[1])
        self.second = layer(inputs, width, keys[2])

    def __call__(self, h: Series) -> Series:
        act = activation(self.mlp.activation)
        u, v = act(self.first(h)), act(self.second(h))
        difference = u - v
        for layer in self.mlp.layers[:-1]:
            h = v + act(layer(h)) * difference
        return self.mlp.layers[-1](h)

    def linear_leaves(self) -> tuple[Array, ...]:
        return self.mlp.linear_leaves()


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


@dataclass(frozen=True)
class Deep:
    """The deep branch of a HyResPINN's blocks.

    Args:
        depth: The number of hidden layers; with none the branch is linear.
        width: The neurons of a hidden layer; 0 for as many as the network is wide.
        gated: A modified MLP, whose layers are mixed between two encodings of what enters.
        activation: The function of the hidden layers.
        fourier: Fourier features that the branch of the first block sees in place of the point.
        factorisation: Random weight factorisation of all its layers.
    """

    depth: int = 2
    width: int = 0
    gated: bool = False
    activation: str = "tanh"
    fourier: Fourier | None = None
    factorisation: Factorisation | None = None

    def __post_init__(self) -> None:
        at_least(self, 0, depth=self.depth, width=self.width)
        known_activation(self.activation)

    def branch(self, inputs: int, width: int, key: Array, first: bool) -> Layer:
        """The branch of a block of this ``width``, the ``first`` one or another."""
        fourier = self.fourier if first else None
        size = fourier.size(width) if fourier else inputs
        kind = ModifiedMLP if self.gated else MLP
        layer = layer_maker(self.factorisation)
        network = kind(size, width, self.width or width, self.depth, key, self.activation, layer)
        if fourier is None:
            return network
        return FourierBranch(fourier.layer(inputs, width, apart(key)), network)

    def parameters(self, inputs: int, width: int, first: bool) -> int:
        """The number of trained parameters of that branch."""
        fourier = self.fourier if first else None
        size = fourier.size(width) if fourier else inputs
        count = modified_count if self.gated else mlp_count
        factorised = self.factorisation is not None
        network = count(size, width, self.width or width, self.depth, factorised)
        return network + (fourier.parameters(inputs, width) if fourier else 0)
