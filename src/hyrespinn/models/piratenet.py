"""PirateNet: residual blocks whose strength is learned from zero (Wang, Li, Chen, Perdikaris)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..derivatives import activation
from .checks import at_least
from .dense import Dense, Factorisation, dense_count
from .features import Features, Frequencies
from .inputs import Inputs
from .keys import apart
from .layers import Function, Layer, Series
from .model import Model
from .spec import Knob, Layered


class PirateBlock(eqx.Module):
    """Three layers, the first two mixed between ``U`` and ``V``, and a skip ``α h + (1−α) x``."""

    layers: list[Layer]
    alpha: Array

    def __call__(self, x: Series, u: Series, v: Series, act: Function) -> Series:
        h = x
        for layer in self.layers[:2]:
            h = v + act(layer(h)) * (u - v)
        h = act(self.layers[2](h))
        return self.alpha * h + (1 - self.alpha) * x


class PirateNetNetwork(Model):
    """Linear in its Fourier features at the start, where every α is zero.

    ``last`` is empty, or one more linear layer before the output.
    """

    features: Features
    first: Layer
    second: Layer
    blocks: list[PirateBlock]
    last: list[Dense]
    head: Dense
    activation: str = eqx.field(static=True)

    def __call__(self, x: Series) -> Series:
        act = activation(self.activation)
        h = self.features(x)
        u, v = act(self.first(h)), act(self.second(h))
        for block in self.blocks:
            h = block(h, u, v, act)
        for layer in self.last:
            h = layer(h)
        return self.head(h)

    def diagnostics(self) -> dict[str, Array]:
        """The strength of each block, a number that nothing keeps between 0 and 1."""
        return {f"alpha_{i}": block.alpha for i, block in enumerate(self.blocks, start=1)}

    def linear_leaves(self) -> tuple[Array, ...]:
        """Of two linear layers at the end those of the wider one."""
        return (self.last[0] if self.last else self.head).linear_leaves()


@dataclass(frozen=True)
class PirateNet(Layered):
    """Residual blocks that begin as identities.

    Args:
        width: The number of neurons in a layer and of Fourier features: the first skip carries the
            features themselves.
        activation: The function of the hidden layers.
        harmonics: The number of waves that stand for a periodic coordinate.
        fourier: The frequencies of the Fourier features.
        factorisation: Random weight factorisation of its layers.
        blocks: The number of residual blocks, of three layers each.
        last_width: Adds a linear layer of that width before the output, 0 for none. It has no
            activation, so that the network starts linear in its features all the same.
        alpha: The strength of a block at the start.
    """

    fourier: Frequencies = Frequencies()
    factorisation: Factorisation | None = Factorisation()
    blocks: int = 1
    last_width: int = 0
    alpha: float = 0.0

    def check(self) -> None:
        super().check()
        at_least(self, 1, blocks=self.blocks)
        at_least(self, 0, last_width=self.last_width)

    def build(self, inputs: Inputs, key: Array) -> Model:
        self.check()
        features_key, u_key, v_key, head_key, *keys = jax.random.split(key, 4 + self.blocks)
        square = partial(self.layer, self.width, self.width)

        def block(block_key: Array) -> PirateBlock:
            layers = [square(k) for k in jax.random.split(block_key, 3)]
            return PirateBlock(layers, jnp.asarray(self.alpha, float))

        narrow = self.last_width
        return PirateNetNetwork(
            self.see(inputs, features_key),
            square(u_key),
            square(v_key),
            [block(k) for k in keys],
            [Dense(self.width, narrow, apart(key))] if narrow else [],
            Dense(narrow or self.width, inputs.outputs, head_key),
            self.activation,
        )

    def count(self, inputs: Inputs) -> int:
        self.check()
        square = dense_count(self.width, self.width, self.factorised)
        last = dense_count(self.width, self.last_width) if self.last_width else 0
        head = dense_count(self.last_width or self.width, inputs.outputs)
        blocks = self.blocks * (3 * square + 1)
        return self.frequencies(inputs) + 2 * square + blocks + last + head

    def knob(self, inputs: Inputs) -> Knob:
        """The width of the last linear layer."""
        return Knob(self.last_width, lambda w: replace(self, last_width=w), inputs.outputs)
