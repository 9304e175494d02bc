"""The two learned gates of a block."""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..errors import UserError


class Gate(eqx.Module):
    """``φ(z) = sigmoid(z/τ)``, always inside (0, 1); a small ``τ`` is sharp (decision D2).

    >>> round(float(Gate(0.01)()), 6)
    0.01
    """

    z: Array
    tau: float = eqx.field(static=True)

    def __init__(self, start: float, tau: float = 1.0):
        if not 0 < start < 1:
            raise UserError(
                f"A sigmoid gate starts strictly between 0 and 1, not at {start}: a sigmoid never "
                "reaches its ends. Take 0.01 or 0.99, or the unconstrained gate."
            )
        if tau <= 0:
            raise UserError(f"The gate temperature tau must be positive, not {tau}.")
        self.z = jnp.asarray(tau * math.log(start / (1 - start)))
        self.tau = tau

    def __call__(self) -> Array:
        return jax.nn.sigmoid(self.z / self.tau)


class FreeGate(eqx.Module):
    """``φ(z) = z``, unconstrained, for the gate ablation."""

    z: Array

    def __init__(self, start: float, tau: float = 1.0):
        self.z = jnp.asarray(float(start))

    def __call__(self) -> Array:
        return self.z


GATES: dict[str, Any] = {"sigmoid": Gate, "unconstrained": FreeGate}
