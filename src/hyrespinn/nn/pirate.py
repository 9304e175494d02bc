"""PirateNet: residual blocks whose strength is learned from zero (Wang, Li, Chen, Perdikaris)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..derivatives import activation
from .dense import Dense, dense_count
from .features import Features
from .inputs import Inputs
from .settings import Knob, Settings, apart, at_least, check_shared


class PirateBlock(eqx.Module):
    """Three layers, the first two mixed between ``U`` and ``V``, and a skip ``α h + (1−α) x``."""

    layers: list[Any]
    alpha: Array

    def __call__(self, x: Any, u: Any, v: Any, act: Any) -> Any:
        h = x
        for layer in self.layers[:2]:
            h = v + act(layer(h)) * (u - v)
        h = act(self.layers[2](h))
        return self.alpha * h + (1 - self.alpha) * x


class PirateNet(eqx.Module):
    """Linear in its Fourier features at the start, where every α is zero.

    ``last`` is empty, or one more linear layer before the output.
    """

    features: Features
    first: Any
    second: Any
    blocks: list[PirateBlock]
    last: list[Dense]
    head: Dense
    activation: str = eqx.field(static=True)

    def __call__(self, x: Any) -> Any:
        act = activation(self.activation)
        h = self.features(x)
        u, v = act(self.first(h)), act(self.second(h))
        for block in self.blocks:
            h = block(h, u, v, act)
        for layer in self.last:
            h = layer(h)
        return self.head(h)

    def gates(self) -> dict[str, Array]:
        """The strength of each block, a number that nothing keeps between 0 and 1."""
        return {f"alpha_{i}": block.alpha for i, block in enumerate(self.blocks, start=1)}

    def last_layer(self) -> tuple[Any, ...]:
        """The arrays in which the output is affine; of two linear layers the wider one."""
        return (self.last[0] if self.last else self.head).affine()


@dataclass(frozen=True)
class PirateNetConfig(Settings):
    """The settings of a PirateNet; its width is also the number of Fourier features.

    A ``last_width`` adds a linear layer of that width before the output. It has no activation, so
    that the network starts linear in its features all the same.
    """

    blocks: int = 1
    last_width: int = 0
    factorised: bool = True
    alpha: float = 0.0

    @property
    def fourier(self) -> None:
        """As many as the width, for the first skip carries the features themselves."""

    def check(self) -> None:
        check_shared(self, "blocks")
        at_least(self, 0, "last_width")

    def build(self, inputs: Inputs, key: Array) -> PirateNet:
        self.check()
        features_key, u_key, v_key, head_key, *keys = jax.random.split(key, 4 + self.blocks)
        square = partial(self.layer, self.width, self.width)

        def block(block_key: Array) -> PirateBlock:
            layers = [square(k) for k in jax.random.split(block_key, 3)]
            return PirateBlock(layers, jnp.asarray(self.alpha, float))

        narrow = self.last_width
        return PirateNet(
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
        return self.fourier_count(inputs) + 2 * square + blocks + last + head

    def knob(self, inputs: Inputs) -> Knob:
        return Knob("last_width", self.last_width, inputs.outputs)
