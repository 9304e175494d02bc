"""The two learned gates of a block."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from ..registry import Registry
from .checks import at_least, positive, refused


@dataclass(frozen=True)
class Gate(ABC):
    """A function ``φ`` of a trained number ``z``, which a network holds.

    A new gate is one class with these two methods and ``@register("name")`` above it; its own fields, such
    as a temperature, are not trained.
    """

    @abstractmethod
    def start(self, value: float) -> Array:
        """The ``z`` at which ``φ(z) = value``."""

    @abstractmethod
    def __call__(self, z: Array) -> Array:
        """``φ(z)``."""


@dataclass(frozen=True)
class SigmoidGate(Gate):
    """``φ(z) = sigmoid(z/τ)``, always inside (0, 1).

    Args:
        tau: The temperature; a small one is sharp (D2 in docs/differences.md).

    >>> gate = SigmoidGate()
    >>> round(float(gate(gate.start(0.01))), 6)
    0.01
    """

    tau: float = 1.0

    def __post_init__(self) -> None:
        positive(self, tau=self.tau)

    def start(self, value: float) -> Array:
        if not 0 < value < 1:
            raise refused(
                self,
                f"it starts strictly between 0 and 1, not at {value}: a sigmoid never reaches its "
                "ends. Take 0.01 or 0.99, or FreeGate.",
            )
        return jnp.asarray(self.tau * math.log(value / (1 - value)))

    def __call__(self, z: Array) -> Array:
        return jax.nn.sigmoid(z / self.tau)


@dataclass(frozen=True)
class FreeGate(Gate):
    """``φ(z) = z``, unconstrained, for the gate ablation."""

    def start(self, value: float) -> Array:
        return jnp.asarray(float(value))

    def __call__(self, z: Array) -> Array:
        return z


GATES = Registry("gate", Gate)
GATES.register("sigmoid", SigmoidGate)
GATES.register("unconstrained", FreeGate)


@dataclass(frozen=True)
class Gates:
    """The gates of all blocks of a HyResPINN.

    Args:
        gate: The function of the trained number.
        alpha: ``φ(α)`` at the start, the share of the kernels in a block.
        beta: ``φ(β)`` at the start, the strength of a block beside what goes past it (D3 in
            docs/differences.md).
        penalty: ``λ_g``, the weight of ``Σ (α² + β²)`` in the loss.
    """

    gate: Gate = SigmoidGate()
    alpha: float = 0.5
    beta: float = 0.01
    penalty: float = 0.0

    def __post_init__(self) -> None:
        at_least(self, 0, penalty=self.penalty)
