"""The plain physics-informed neural network (Raissi, Perdikaris and Karniadakis)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from jax import Array

from .checks import at_least
from .features import Features, Fourier
from .inputs import Inputs
from .keys import apart
from .layers import Series
from .mlp import MLP, mlp_count
from .model import Model
from .spec import Knob, Layered


class PINNNetwork(Model):
    """A multilayer perceptron of the embedded point."""

    features: Features
    mlp: MLP

    def __call__(self, x: Series) -> Series:
        return self.mlp(self.features(x))

    def linear_leaves(self) -> tuple[Array, ...]:
        return self.mlp.linear_leaves()


@dataclass(frozen=True)
class PINN(Layered):
    """A multilayer perceptron.

    Args:
        width: The number of neurons in a hidden layer.
        activation: The function of the hidden layers.
        harmonics: The number of waves that stand for a periodic coordinate.
        fourier: Fourier features of the embedded point, which the network sees in place of it.
        factorisation: Random weight factorisation of its layers.
        depth: The number of hidden layers.
        last_width: The width of the last hidden layer, 0 for ``width``.
    """

    width: int = 32
    fourier: Fourier | None = None
    depth: int = 3
    last_width: int = 0

    def check(self) -> None:
        super().check()
        at_least(self, 1, depth=self.depth)
        at_least(self, 0, last_width=self.last_width)

    def build(self, inputs: Inputs, key: Array) -> Model:
        self.check()
        sizes = self.seen(inputs), inputs.outputs, self.width, self.depth
        mlp = MLP(*sizes, key, self.activation, self.layer, self.last_width)
        return PINNNetwork(self.see(inputs, apart(key)), mlp)

    def count(self, inputs: Inputs) -> int:
        self.check()
        sizes = self.seen(inputs), inputs.outputs, self.width, self.depth
        return self.frequencies(inputs) + mlp_count(*sizes, self.factorised, self.last_width)

    def knob(self, inputs: Inputs) -> Knob:
        """The width of the last hidden layer."""
        width = self.last_width or self.width
        return Knob(width, lambda w: replace(self, last_width=w), inputs.outputs)
