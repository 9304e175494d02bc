"""StackedPINN: a chain of networks, each correcting the one before (Howard et al.)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..derivatives import concatenate
from ..errors import UserError
from .checks import at_least
from .dense import Dense, dense_count
from .features import Features, Fourier
from .inputs import Inputs
from .keys import apart
from .layers import Series
from .mlp import MLP, mlp_count
from .model import Chain, Model
from .parameters import freeze
from .spec import Knob, Layered


class Level(eqx.Module):
    """``u_k = (1 − |α|) · linear(x, u_{k−1}) + |α| · nonlinear(x, u_{k−1})``."""

    linear: Dense
    nonlinear: MLP
    alpha: Array

    def __call__(self, entering: Series) -> Series:
        share = jnp.abs(self.alpha)
        return (1 - share) * self.linear(entering) + share * self.nonlinear(entering)


class StackedPINNNetwork(Chain):
    """A first network, and levels that take the point and the last answer.

    The first ``frozen`` networks are used as they are: no gradient reaches them. Fourier features
    belong to the first network.
    """

    features: Features
    first: MLP
    levels: list[Level]
    penalty_weight: float = eqx.field(static=True)
    frozen: int = eqx.field(static=True, default=0)

    def __call__(self, x: Series) -> Series:
        features, first = self.features, self.first
        if self.frozen:
            features, first = freeze((features, first))
        point = features(x)
        u = first(point)
        for k, level in enumerate(self.levels, start=1):
            u = (freeze(level) if k < self.frozen else level)(concatenate([point, u]))
        return u

    @property
    def parts(self) -> int:
        """The number of networks: the first one and the levels."""
        return 1 + len(self.levels)

    def upto(self, k: int) -> StackedPINNNetwork:
        """The chain of the first ``k`` networks, of which only the last is trained.

        Training ``upto(1)``, ``upto(2)`` … ``upto(parts)`` one after the other is the sequential
        training of the paper.
        """
        if not 1 <= k <= self.parts:
            raise UserError(f"A stack of {self.parts} networks has no part {k}: count from 1.")
        return replace(self, levels=self.levels[: k - 1], frozen=k - 1)

    def penalty(self) -> Array:
        """``λ_α Σ α⁴`` over the levels that are trained keeps them linear where that is enough."""
        trained = self.levels[max(self.frozen - 1, 0) :]
        total = sum((level.alpha**4 for level in trained), start=jnp.zeros(()))
        return self.penalty_weight * total

    def diagnostics(self) -> dict[str, Array]:
        """The nonlinear share of each level, a number that nothing keeps below 1."""
        return {f"alpha_{i}": jnp.abs(level.alpha) for i, level in enumerate(self.levels, start=1)}

    def linear_leaves(self) -> tuple[Array, ...]:
        """Of the last network's linear layer."""
        last = self.levels[-1].linear if self.levels else self.first
        return last.linear_leaves()


@dataclass(frozen=True)
class StackedPINN(Layered):
    """A chain of networks that correct one another.

    Args:
        width: The number of neurons in a hidden layer.
        activation: The function of the hidden layers.
        harmonics: The number of waves that stand for a periodic coordinate.
        fourier: Fourier features of the embedded point, which the networks see in place of it.
        factorisation: Random weight factorisation of the nonlinear networks.
        depth: The number of hidden layers of each nonlinear network.
        levels: The number of networks after the first one.
        last_width: The width of the last hidden layer of each network, 0 for ``width``.
        alpha: The share of the nonlinear network in a level at the start.
        penalty: ``λ_α``, the weight of ``Σ α⁴`` in the loss.
    """

    is_chain: ClassVar[bool] = True

    fourier: Fourier | None = None
    depth: int = 2
    levels: int = 2
    last_width: int = 0
    alpha: float = 0.1
    penalty: float = 0.0

    def check(self) -> None:
        super().check()
        at_least(self, 1, depth=self.depth, levels=self.levels)
        at_least(self, 0, last_width=self.last_width, penalty=self.penalty)

    def build(self, inputs: Inputs, key: Array) -> Model:
        self.check()
        size, outputs = self.seen(inputs), inputs.outputs
        first, *keys = jax.random.split(key, 1 + self.levels)

        def network(entering: int, network_key: Array) -> MLP:
            sizes = entering, outputs, self.width, self.depth
            return MLP(*sizes, network_key, self.activation, self.layer, self.last_width)

        def level(level_key: Array) -> Level:
            one, two = jax.random.split(level_key)
            entering = size + outputs
            linear = Dense(entering, outputs, one)
            return Level(linear, network(entering, two), jnp.asarray(self.alpha, float))

        levels = [level(k) for k in keys]
        features = self.see(inputs, apart(key))
        return StackedPINNNetwork(features, network(size, first), levels, self.penalty)

    def count(self, inputs: Inputs) -> int:
        self.check()
        size, outputs = self.seen(inputs), inputs.outputs

        def network(entering: int) -> int:
            sizes = entering, outputs, self.width, self.depth
            return mlp_count(*sizes, self.factorised, self.last_width)

        level = dense_count(size + outputs, outputs) + network(size + outputs) + 1
        return self.frequencies(inputs) + network(size) + self.levels * level

    def knob(self, inputs: Inputs) -> Knob:
        """The width of the last hidden layers."""
        width = self.last_width or self.width
        return Knob(width, lambda w: replace(self, last_width=w), inputs.outputs)
