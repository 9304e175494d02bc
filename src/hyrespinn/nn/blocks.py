"""The hybrid residual block."""

from __future__ import annotations

from typing import Any

import equinox as eqx
from jax import Array

from ..derivatives import tanh
from .parameters import scaled


class HybridBlock(eqx.Module):
    """``H = φ(β) tanh(φ(α) F_R + (1−φ(α)) F_N) + (1−φ(β)) H_prev``.

    ``φ(α)`` is the share of the RBF branch, as in the paper's equation (decision D2). Ablations
    put a :class:`~hyrespinn.nn.mlp.Zero` in the slot of either branch.
    """

    rbf: Any
    dnn: Any
    alpha: Any
    beta: Any

    def __call__(self, h: Any, skip: Any) -> Any:
        """``h`` enters the branches, ``skip`` goes past them (they differ in the first block)."""
        strength = self.beta()
        return strength * self.activated(h) + (1 - strength) * skip

    def activated(self, h: Any) -> Any:
        """``tanh(φ(α) F_R + (1−φ(α)) F_N)``."""
        share = self.alpha()
        return tanh(scaled(self.rbf, share)(h) + scaled(self.dnn, 1 - share)(h))

    def penalty(self) -> Array:
        """``α² + β²``, the paper's gate regularisation."""
        return self.alpha.z**2 + self.beta.z**2
