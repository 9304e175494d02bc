"""The expert's PINN: Fourier features, a modified MLP, random weight factorisation (Wang et al.)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
from jax import Array

from .checks import at_least
from .dense import Factorisation
from .features import Features, Fourier
from .inputs import Inputs
from .layers import Series
from .mlp import ModifiedMLP, modified_count
from .model import Model
from .spec import Knob, Layered


class ExpertPINNNetwork(Model):
    """A modified MLP of the Fourier features of the embedded point."""

    features: Features
    mlp: ModifiedMLP

    def __call__(self, x: Series) -> Series:
        return self.mlp(self.features(x))

    def linear_leaves(self) -> tuple[Array, ...]:
        return self.mlp.linear_leaves()


@dataclass(frozen=True)
class ExpertPINN(Layered):
    """A modified MLP with Fourier features and random weight factorisation.

    Args:
        width: The number of neurons in a hidden layer.
        activation: The function of the hidden layers.
        harmonics: The number of waves that stand for a periodic coordinate.
        fourier: Fourier features of the embedded point, by default as many as the width.
        factorisation: Random weight factorisation of its layers.
        depth: The number of hidden layers.
    """

    fourier: Fourier | None = Fourier()
    factorisation: Factorisation | None = Factorisation()
    depth: int = 2

    def check(self) -> None:
        super().check()
        at_least(self, 1, depth=self.depth)

    def build(self, inputs: Inputs, key: Array) -> Model:
        self.check()
        first, second = jax.random.split(key)
        sizes = self.seen(inputs), inputs.outputs, self.width, self.depth
        mlp = ModifiedMLP(*sizes, second, self.activation, self.layer)
        return ExpertPINNNetwork(self.see(inputs, first), mlp)

    def count(self, inputs: Inputs) -> int:
        self.check()
        sizes = self.seen(inputs), inputs.outputs, self.width, self.depth
        return self.frequencies(inputs) + modified_count(*sizes, self.factorised)

    def knob(self, inputs: Inputs) -> Knob | None:
        """The number of Fourier features; a network without any stays without."""
        fourier = self.fourier
        if fourier is None:
            return None
        return Knob(
            fourier.size(self.width),
            lambda n: replace(self, fourier=replace(fourier, features=n)),
            smallest=2,
            step=2,
        )
