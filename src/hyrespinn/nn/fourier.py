"""Random Fourier features."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
from jax import Array

from ..derivatives import concatenate, cos, sin
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
        angles = h @ value(self.frequencies)
        return concatenate([cos(angles), sin(angles)])


def fourier_count(inputs: int, size: int, trained: bool) -> int:
    """The number of trained frequencies."""
    return inputs * (size // 2) if trained else 0
