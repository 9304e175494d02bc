"""The hybrid residual block."""

from __future__ import annotations

from typing import Any

import equinox as eqx
from jax import Array

from ..derivatives import tanh


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
        share, strength = self.alpha(), self.beta()
        mixed = share * self.rbf(h) + (1 - share) * self.dnn(h)
        return strength * tanh(mixed) + (1 - strength) * skip

    def penalty(self) -> Array:
        """``α² + β²``, the paper's gate regularisation."""
        return self.alpha.z**2 + self.beta.z**2
