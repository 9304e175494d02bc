"""The plain physics-informed neural network (Raissi, Perdikaris and Karniadakis)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import equinox as eqx
from jax import Array

from .features import Features
from .inputs import Inputs
from .layered import LayeredSettings
from .mlp import MLP
from .settings import apart


class PINN(eqx.Module):
    """A multilayer perceptron of the embedded point."""

    features: Features
    mlp: MLP

    def __call__(self, x: Any) -> Any:
        return self.mlp(self.features(x))

    def last_layer(self) -> tuple[Any, ...]:
        """The arrays in which the output is affine."""
        return self.mlp.last_layer()


@dataclass(frozen=True)
class PINNConfig(LayeredSettings):
    """The settings of a PINN; ``last_width`` is the width of its last hidden layer, 0 for width."""

    def build(self, inputs: Inputs, key: Array) -> PINN:
        self.check()
        sizes = self.seen(inputs), inputs.outputs, self.width, self.depth
        mlp = MLP(*sizes, key, self.activation, self.layer, self.last_width)
        return PINN(self.see(inputs, apart(key)), mlp)
