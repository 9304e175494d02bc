"""The plain physics-informed neural network (Raissi, Perdikaris and Karniadakis)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import equinox as eqx
from jax import Array

from .features import Features
from .inputs import Inputs
from .mlp import MLP, mlp_count
from .settings import Knob, Settings, apart, at_least, check_shared


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
class PINNConfig(Settings):
    """The settings of a PINN; ``last_width`` is the width of its last hidden layer, 0 for width."""

    width: int = 32
    depth: int = 3
    last_width: int = 0
    fourier: int | None = 0
    factorised: bool = False

    def check(self) -> None:
        check_shared(self, "depth")
        at_least(self, 0, "last_width")

    def build(self, inputs: Inputs, key: Array) -> PINN:
        self.check()
        sizes = self.seen(inputs), inputs.outputs, self.width, self.depth
        mlp = MLP(*sizes, key, self.activation, self.layer, self.last_width)
        return PINN(self.see(inputs, apart(key)), mlp)

    def count(self, inputs: Inputs) -> int:
        self.check()
        sizes = self.seen(inputs), inputs.outputs, self.width, self.depth
        return self.fourier_count(inputs) + mlp_count(*sizes, self.factorised, self.last_width)

    def knob(self, inputs: Inputs) -> Knob:
        return Knob("last_width", self.last_width or self.width, inputs.outputs)
