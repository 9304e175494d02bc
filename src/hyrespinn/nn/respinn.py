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
from .mlp import layer_sizes, mlp_count
from .settings import Knob, Settings, apart, at_least, check_shared


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
class ResPINNConfig(Settings):
    """The settings of a ResPINN; ``depth`` counts the hidden layers, as in a PINN.

    With a ``last_width`` the last hidden layer has that width, and no skip.
    """

    width: int = 32
    depth: int = 3
    last_width: int = 0
    fourier: int | None = 0
    factorised: bool = False

    def check(self) -> None:
        check_shared(self, "depth")
        at_least(self, 0, "last_width")

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

    def count(self, inputs: Inputs) -> int:
        self.check()
        sizes = self.seen(inputs), inputs.outputs, self.width, self.depth
        return self.fourier_count(inputs) + mlp_count(*sizes, self.factorised, self.last_width)

    def knob(self, inputs: Inputs) -> Knob:
        return Knob("last_width", self.last_width or self.width, inputs.outputs)
