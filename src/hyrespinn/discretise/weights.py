"""The weights of the terms of a loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..errors import UserError
from ..losses.balance import Balance
from ..losses.causal import Causality
from ..losses.terms import Weights as TermWeights


@dataclass(frozen=True)
class GradientNorm:
    """All terms pull equally hard: ``λ ← m λ + (1 − m) mean_j ‖∇L_j‖ / ‖∇L_i‖``.

    Args:
        momentum: ``m``.
        every: Steps of an optimiser on fresh points between two updates.
    """

    kind: ClassVar[str] = "gradient-norm"

    momentum: float = 0.9
    every: int = 1000

    def __post_init__(self) -> None:
        if self.every < 1:
            raise UserError(f"Weights are updated every 1 step or more, not every {self.every}.")
        _ = self.balance  # which checks the momentum

    @property
    def balance(self) -> Balance:
        return Balance("gradient-norm", self.momentum)


@dataclass(frozen=True)
class NeuralTangentKernel(GradientNorm):
    """All terms converge at one rate, by the diagonal of their neural tangent kernels."""

    kind: ClassVar[str] = "ntk"

    @property
    def balance(self) -> Balance:
        return Balance("ntk", self.momentum)


@dataclass(frozen=True)
class Causal:
    """A moment of time counts once the moments before it are solved: ``w_i = exp(−ε Σ_{k<i} L_k)``.

    Args:
        chunks: Into how many parts time is cut.
        tolerances: The values of ε, one after the other as weights pass 0.99.
        every: Steps of an optimiser on fresh points between two looks at that.
    """

    chunks: int = 32
    tolerances: tuple[float, ...] = (1.0,)
    every: int = 1000

    def __post_init__(self) -> None:
        if self.chunks < 1 or self.every < 1:
            raise UserError(
                "Causal weights need at least one chunk and one step between updates, not "
                f"{self.chunks} and {self.every}."
            )
        _ = self.causality  # which checks the tolerances

    @property
    def causality(self) -> Causality:
        return Causality(self.chunks, self.tolerances)


@dataclass(frozen=True)
class Weights:
    """What multiplies the mean squares; conditions may bring their own.

    Args:
        residual: The equation.
        initial: Conditions at the initial time.
        boundary: A condition on the boundary one order below the equation.
        per_order: What multiplies that for every further order below.
        balance: How weights follow the training; ``None``: they stay.
        causal: Weights in the order of time; ``None``: all of it counts alike.
    """

    residual: float = 1.0
    initial: float = 100.0
    boundary: float = 100.0
    per_order: float = 1.0
    balance: GradientNorm | NeuralTangentKernel | None = None
    causal: Causal | None = None

    @property
    def terms(self) -> TermWeights:
        return TermWeights(self.residual, self.initial, self.boundary, self.per_order)

    @property
    def rebalance_every(self) -> int | None:
        """After how many steps on fresh points weights are brought up to date."""
        if self.balance is not None:
            return self.balance.every
        several = self.causal is not None and len(self.causal.tolerances) > 1
        return self.causal.every if self.causal is not None and several else None
