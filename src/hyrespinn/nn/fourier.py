"""Random Fourier features."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..derivatives import sin
from .parameters import Fixed, value


class FourierFeatures(eqx.Module):
    """``[cos(hB), sin(hB)]`` with normal random frequencies ``B`` (Tancik et al.).

    ``scale`` is their standard deviation; they are trained or kept as they are drawn.
    """

    frequencies: Array | Fixed

    def __init__(self, inputs: int, size: int, key: Array, scale: float, trained: bool):
        drawn = scale * jax.random.normal(key, (inputs, size // 2))
        self.frequencies = drawn if trained else Fixed(drawn)

    def __call__(self, h: Any) -> Any:
        # A cosine is a sine a quarter turn later: one product and one function for both halves,
        # where joining two halves would copy every derivative.
        frequencies = value(self.frequencies)
        turns = jnp.repeat(jnp.asarray([np.pi / 2, 0.0], h.dtype), frequencies.shape[1])
        return sin(h @ jnp.concatenate([frequencies, frequencies], axis=1) + turns)


def fourier_count(inputs: int, size: int, trained: bool) -> int:
    """The number of trained frequencies."""
    return inputs * (size // 2) if trained else 0
