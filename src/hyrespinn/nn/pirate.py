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
from .dense import Dense, FactorisedDense
from .embeddings import Embedding
from .fourier import FourierFeatures
from .inputs import Inputs
from .settings import check_fourier, check_settings


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
    """Linear in its Fourier features at the start, where every α is zero."""

    embedding: Embedding
    features: FourierFeatures
    first: Any
    second: Any
    blocks: list[PirateBlock]
    head: Any
    activation: str = eqx.field(static=True)

    def __call__(self, x: Any) -> Any:
        act = activation(self.activation)
        h = self.features(self.embedding(x))
        u, v = act(self.first(h)), act(self.second(h))
        for block in self.blocks:
            h = block(h, u, v, act)
        return self.head(h)

    def gates(self) -> dict[str, Array]:
        """The strength of each block."""
        return {f"alpha_{i}": block.alpha for i, block in enumerate(self.blocks, start=1)}


@dataclass(frozen=True)
class PirateNetConfig:
    """The settings of a PirateNet; its width is also the number of Fourier features."""

    width: int = 24
    blocks: int = 1
    activation: str = "tanh"
    harmonics: int = 1
    fourier_scale: float = 1.0
    train_fourier: bool = True
    factor_mean: float = 1.0
    factor_deviation: float = 0.1
    alpha: float = 0.0

    @property
    def fourier(self) -> int:
        return self.width

    def build(self, inputs: Inputs, key: Array) -> PirateNet:
        check_settings(self, "width", "blocks", "harmonics")
        check_fourier(self)
        embedding = Embedding(inputs.bounds, inputs.periodic, self.harmonics)
        keys = jax.random.split(key, 4 + self.blocks)
        layer = partial(FactorisedDense, mean=self.factor_mean, deviation=self.factor_deviation)
        square = partial(layer, self.width, self.width)

        def block(block_key: Array) -> PirateBlock:
            layers = [square(k) for k in jax.random.split(block_key, 3)]
            return PirateBlock(layers, jnp.asarray(self.alpha, float))

        return PirateNet(
            embedding,
            FourierFeatures(
                embedding.size, self.width, keys[0], self.fourier_scale, self.train_fourier
            ),
            square(keys[1]),
            square(keys[2]),
            [block(k) for k in keys[4:]],
            Dense(self.width, inputs.outputs, keys[3]),
            self.activation,
        )
