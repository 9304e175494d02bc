"""A PINN with identity skips (the residual blocks of He et al.)."""

from __future__ import annotations

from dataclasses import dataclass

import equinox as eqx
import jax
from jax import Array

from ..derivatives import activation
from .features import Features
from .inputs import Inputs
from .keys import apart
from .layers import Layer, Series
from .mlp import layer_sizes
from .model import Model
from .pinn import PINN


class ResPINNNetwork(Model):
    """``h ← h + σ(W h + b)`` in every hidden layer after the first.

    ``last`` is empty, or a last hidden layer of another width, which has no skip.
    """

    features: Features
    first: Layer
    blocks: list[Layer]
    last: list[Layer]
    head: Layer
    activation: str = eqx.field(static=True)

    def __call__(self, x: Series) -> Series:
        act = activation(self.activation)
        h = act(self.first(self.features(x)))
        for block in self.blocks:
            h = h + act(block(h))
        for layer in self.last:
            h = act(layer(h))
        return self.head(h)

    def linear_leaves(self) -> tuple[Array, ...]:
        return self.head.linear_leaves()


@dataclass(frozen=True)
class ResPINN(PINN):
    """A multilayer perceptron with identity skips; its fields, and its size, are those of a PINN.

    With a ``last_width`` the last hidden layer has that width, and no skip.
    """

    def build(self, inputs: Inputs, key: Array) -> Model:
        self.check()
        sizes = layer_sizes(
            self.seen(inputs), inputs.outputs, self.width, self.depth, self.last_width
        )
        first_key, head_key, *keys = jax.random.split(key, 1 + self.depth)
        keys = [first_key, *keys, head_key]
        first, *blocks, head = [self.layer(*size, k) for size, k in zip(sizes, keys, strict=True)]
        last = [blocks.pop()] if self.last_width and blocks else []
        features = self.see(inputs, apart(key))
        return ResPINNNetwork(features, first, blocks, last, head, self.activation)
