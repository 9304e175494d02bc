"""StackedPINN: a chain of networks, each correcting the one before (Howard et al.)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..derivatives import concatenate
from ..errors import UserError
from .dense import Dense, dense_count
from .features import Features
from .inputs import Inputs
from .mlp import MLP, mlp_count
from .parameters import freeze
from .settings import Knob, Settings, apart, at_least, check_shared


class Level(eqx.Module):
    """``u_k = (1 − |α|) · linear(x, u_{k−1}) + |α| · nonlinear(x, u_{k−1})``."""

    linear: Dense
    nonlinear: MLP
    alpha: Array

    def __call__(self, entering: Any) -> Any:
        share = jnp.abs(self.alpha)
        return (1 - share) * self.linear(entering) + share * self.nonlinear(entering)


class StackedPINN(eqx.Module):
    """A first network, and levels that take the point and the last answer.

    The first ``frozen`` networks are used as they are: no gradient reaches them. Fourier features
    belong to the first network.
    """

    features: Features
    first: MLP
    levels: list[Level]
    penalty_weight: float = eqx.field(static=True)
    frozen: int = eqx.field(static=True, default=0)

    def __call__(self, x: Any) -> Any:
        features, first, *levels = self._networks()
        point = features(x)
        u = first(point)
        for level in levels:
            u = level(concatenate([point, u]))
        return u

    def _networks(self) -> list[Any]:
        """The features, the first network and the levels, each trained or frozen."""
        first_frozen = self.frozen > 0
        stops = [first_frozen, first_frozen, *(k < self.frozen for k in range(1, self.parts))]
        networks = [self.features, self.first, *self.levels]
        return [freeze(n) if stop else n for n, stop in zip(networks, stops, strict=True)]

    @property
    def parts(self) -> int:
        """The number of networks: the first one and the levels."""
        return 1 + len(self.levels)

    def upto(self, k: int) -> StackedPINN:
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

    def gates(self) -> dict[str, Array]:
        """The nonlinear share of each level, a number that nothing keeps below 1."""
        return {f"alpha_{i}": jnp.abs(level.alpha) for i, level in enumerate(self.levels, start=1)}

    def last_layer(self) -> tuple[Any, ...]:
        """The arrays in which the output is affine: of the last network's linear layer."""
        return self.levels[-1].linear.affine() if self.levels else self.first.last_layer()


@dataclass(frozen=True)
class StackedPINNConfig(Settings):
    """The settings of a StackedPINN; ``levels`` come after the first network.

    ``last_width`` is the width of the last hidden layer of each network, 0 for ``width``.
    """

    depth: int = 2
    levels: int = 2
    last_width: int = 0
    fourier: int | None = 0
    factorised: bool = False
    alpha: float = 0.1
    lambda_alpha: float = 0.0

    def check(self) -> None:
        check_shared(self, "depth", "levels")
        at_least(self, 0, "last_width", "lambda_alpha")

    def build(self, inputs: Inputs, key: Array) -> StackedPINN:
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
        return StackedPINN(features, network(size, first), levels, self.lambda_alpha)

    def count(self, inputs: Inputs) -> int:
        self.check()
        size, outputs = self.seen(inputs), inputs.outputs

        def network(entering: int) -> int:
            sizes = entering, outputs, self.width, self.depth
            return mlp_count(*sizes, self.factorised, self.last_width)

        level = dense_count(size + outputs, outputs) + network(size + outputs) + 1
        return self.fourier_count(inputs) + network(size) + self.levels * level

    def knob(self, inputs: Inputs) -> Knob:
        return Knob("last_width", self.last_width or self.width, inputs.outputs)
