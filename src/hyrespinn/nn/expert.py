"""The expert's PINN: Fourier features, a modified MLP, random weight factorisation (Wang et al.)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
from jax import Array

from .features import Features
from .inputs import Inputs
from .mlp import ModifiedMLP, modified_count
from .settings import Knob, Settings, check_shared


class ExpertPINN(eqx.Module):
    """A modified MLP of the Fourier features of the embedded point."""

    features: Features
    mlp: ModifiedMLP

    def __call__(self, x: Any) -> Any:
        return self.mlp(self.features(x))

    def last_layer(self) -> tuple[Any, ...]:
        """The arrays in which the output is affine."""
        return self.mlp.last_layer()


@dataclass(frozen=True)
class ExpertPINNConfig(Settings):
    """The settings of an ExpertPINN, with as many Fourier features as its width by default."""

    depth: int = 2
    fourier: int | None = None
    factorised: bool = True

    def check(self) -> None:
        check_shared(self, "depth")

    def build(self, inputs: Inputs, key: Array) -> ExpertPINN:
        self.check()
        first, second = jax.random.split(key)
        sizes = self.seen(inputs), inputs.outputs, self.width, self.depth
        mlp = ModifiedMLP(*sizes, second, self.activation, self.layer)
        return ExpertPINN(self.see(inputs, first), mlp)

    def count(self, inputs: Inputs) -> int:
        self.check()
        sizes = self.seen(inputs), inputs.outputs, self.width, self.depth
        return self.fourier_count(inputs) + modified_count(*sizes, self.factorised)

    def knob(self, inputs: Inputs) -> Knob | None:
        """The number of Fourier features; a network without any stays without."""
        return Knob("fourier", self.features, smallest=2, step=2) if self.features else None
