"""What a network sees of a point: its embedding, or Fourier features of the embedding."""

from __future__ import annotations

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..derivatives import sin
from .checks import positive, refused
from .embeddings import Embedding
from .layers import Layer, Series
from .parameters import Fixed, value


class FourierFeatures(eqx.Module):
    """``[cos(hB), sin(hB)]`` with normal random frequencies ``B`` (Tancik et al.)."""

    frequencies: Array | Fixed[Array]

    def __call__(self, h: Series) -> Series:
        # A cosine is a sine a quarter turn later: one product and one function for both halves,
        # where joining two halves would copy every derivative.
        frequencies = value(self.frequencies)
        turns = jnp.repeat(jnp.asarray([np.pi / 2, 0.0], h.dtype), frequencies.shape[1])
        return sin(h @ jnp.concatenate([frequencies, frequencies], axis=1) + turns)


@dataclass(frozen=True)
class Frequencies:
    """Random Fourier features, as many as the network is wide.

    Args:
        scale: The standard deviation of the frequencies.
        trained: Whether they are trained, or kept as they are drawn.
    """

    scale: float = 1.0
    trained: bool = True

    def __post_init__(self) -> None:
        positive(self, scale=self.scale)

    def size(self, width: int) -> int:
        """The number of features in a network of this width."""
        return width

    @property
    def width_step(self) -> int:
        """The network's width is a multiple of this: half of the features are cosines."""
        return 2

    def layer(self, inputs: int, width: int, key: Array) -> FourierFeatures:
        """Features of ``inputs`` numbers in a network of this width."""
        drawn = self.scale * jax.random.normal(key, (inputs, self.size(width) // 2))
        return FourierFeatures(drawn if self.trained else Fixed(drawn))

    def parameters(self, inputs: int, width: int) -> int:
        """The number of trained frequencies."""
        return inputs * (self.size(width) // 2) if self.trained else 0


@dataclass(frozen=True)
class Fourier(Frequencies):
    """Random Fourier features.

    Args:
        scale: The standard deviation of the frequencies.
        trained: Whether they are trained, or kept as they are drawn.
        features: Their number, which is even; ``None`` for as many as the network is wide.

    >>> Fourier(features=24).size(width=64), Fourier().size(width=64)
    (24, 64)
    """

    features: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.features is not None and (self.features < 2 or self.features % 2):
            raise refused(self, f"features must be even and at least 2, not {self.features}.")

    def size(self, width: int) -> int:
        return width if self.features is None else self.features

    @property
    def width_step(self) -> int:
        return 2 if self.features is None else 1


class Features(eqx.Module):
    """The embedding of a point and, where there are any, the Fourier features of that."""

    embedding: Embedding
    fourier: FourierFeatures | None

    def __call__(self, x: Series) -> Series:
        embedded = self.embedding(x)
        return embedded if self.fourier is None else self.fourier(embedded)


class FourierBranch(Layer):
    """A deep branch that sees the Fourier features of what enters it."""

    features: FourierFeatures
    network: Layer

    def __call__(self, h: Series) -> Series:
        return self.network(self.features(h))

    def linear_leaves(self) -> tuple[Array, ...]:
        return self.network.linear_leaves()
