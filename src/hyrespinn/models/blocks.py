"""The hybrid residual block."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from ..derivatives import tanh
from .changes import median_change, median_shift
from .gates import Gate
from .kernels.rbf import RBF
from .layers import Layer, Series, scaled
from .parameters import value


class HybridBlock(eqx.Module):
    """``H = φ(β) tanh(φ(α) F_R + (1−φ(α)) F_N) + (1−φ(β)) H_prev``.

    ``φ(α)`` is the share of the RBF branch, as in the paper's equation (D2 in docs/differences.md). In an
    ablation one of the branches is missing.
    """

    rbf: RBF | None
    deep: Layer | None
    alpha: Array
    beta: Array
    gate: Gate = eqx.field(static=True)

    @property
    def share(self) -> Array:
        """``φ(α)``, the share of the RBF branch."""
        return self.gate(self.alpha)

    @property
    def strength(self) -> Array:
        """``φ(β)``."""
        return self.gate(self.beta)

    def __call__(self, h: Series, skip: Series) -> Series:
        """``h`` enters the branches, ``skip`` goes past them (they differ in the first block)."""
        strength = self.strength
        return strength * self.activated(h) + (1 - strength) * skip

    def activated(self, h: Series) -> Series:
        """``tanh(φ(α) F_R + (1−φ(α)) F_N)``."""
        share = self.share
        local = None if self.rbf is None else scaled(self.rbf, share)(h)
        deep = None if self.deep is None else scaled(self.deep, 1 - share)(h)
        if local is None or deep is None:
            return tanh(deep if local is None else local)
        return tanh(local + deep)

    def changes(self, start: HybridBlock) -> dict[str, Array]:
        """Medians: gates by their values, centres by the spacing at the start, widths by their logarithms,
        coefficients and the weights of the deep branch relatively."""
        gates = jnp.stack([self.share - start.share, self.strength - start.strength])
        found = {"gates": jnp.median(jnp.abs(gates))}
        if self.rbf is not None and start.rbf is not None:
            found["centres"] = median_shift(value(self.rbf.centers), value(start.rbf.centers))
            scales = jnp.log(self.rbf.widths() / start.rbf.widths())
            found["log_widths"] = jnp.median(jnp.abs(scales))
            found["coefficients"] = median_change(self.rbf.coefficients, start.rbf.coefficients)
        if self.deep is not None:
            found["deep"] = median_change(self.deep, start.deep)
        return found

    def penalty(self) -> Array:
        """``α² + β²``, the paper's gate regularisation."""
        return self.alpha**2 + self.beta**2
