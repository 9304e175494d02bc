"""A PINN with identity skips (the residual blocks of He et al.)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
from jax import Array

from ..derivatives import activation
from .features import Features
from .inputs import Inputs
from .layered import LayeredSettings
from .mlp import layer_sizes
from .settings import apart


class ResPINN(eqx.Module):
    """``h ← h + σ(W h + b)`` in every hidden layer after the first.

    ``last`` is empty, or a last hidden layer of another width, which has no skip.
    """

    features: Features
    first: Any
    blocks: list[Any]
    last: list[Any]
    head: Any
    activation: str = eqx.field(static=True)

    def __call__(self, x: Any) -> Any:
        act = activation(self.activation)
        h = act(self.first(self.features(x)))
        for block in self.blocks:
            h = h + act(block(h))
        for layer in self.last:
            h = act(layer(h))
        return self.head(h)

    def last_layer(self) -> tuple[Any, ...]:
        """The arrays in which the output is affine."""
        return self.head.affine()


@dataclass(frozen=True)
class ResPINNConfig(LayeredSettings):
    """The settings of a ResPINN; ``depth`` counts the hidden layers, as in a PINN.

    With a ``last_width`` the last hidden layer has that width, and no skip.
    """

    def build(self, inputs: Inputs, key: Array) -> ResPINN:
        self.check()
        sizes = layer_sizes(
            self.seen(inputs), inputs.outputs, self.width, self.depth, self.last_width
        )
        first_key, head_key, *keys = jax.random.split(key, 1 + self.depth)
        keys = [first_key, *keys, head_key]
        first, *blocks, head = [self.layer(*size, k) for size, k in zip(sizes, keys, strict=True)]
        last = [blocks.pop()] if self.last_width and blocks else []
        features = self.see(inputs, apart(key))
        return ResPINN(features, first, blocks, last, head, self.activation)
