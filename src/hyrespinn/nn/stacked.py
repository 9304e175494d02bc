"""StackedPINN: a chain of networks, each correcting the one before (Howard et al.)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..derivatives import concatenate
from ..errors import UserError
from .dense import Dense
from .embeddings import Embedding
from .inputs import Inputs
from .mlp import MLP
from .settings import check_settings


class Level(eqx.Module):
    """``u_k = (1 − |α|) · linear(x, u_{k−1}) + |α| · nonlinear(x, u_{k−1})``."""

    linear: Dense
    nonlinear: MLP
    alpha: Array

    def __call__(self, entering: Any) -> Any:
        share = jnp.abs(self.alpha)
        return (1 - share) * self.linear(entering) + share * self.nonlinear(entering)


class StackedPINN(eqx.Module):
    """A first network, and levels that take the point and the last answer."""

    embedding: Embedding
    first: MLP
    levels: list[Level]
    penalty_weight: float = eqx.field(static=True)

    def __call__(self, x: Any) -> Any:
        point = self.embedding(x)
        u = self.first(point)
        for level in self.levels:
            u = level(concatenate([point, u]))
        return u

    def penalty(self) -> Array:
        """``λ_α Σ α⁴`` keeps a level linear where that is enough."""
        total = sum((level.alpha**4 for level in self.levels), start=jnp.zeros(()))
        return self.penalty_weight * total

    def gates(self) -> dict[str, Array]:
        """The nonlinear share of each level."""
        return {f"alpha_{i}": jnp.abs(level.alpha) for i, level in enumerate(self.levels, start=1)}


@dataclass(frozen=True)
class StackedPINNConfig:
    """The settings of a StackedPINN, trained jointly; ``levels`` come after the first network."""

    width: int = 24
    depth: int = 2
    levels: int = 2
    activation: str = "tanh"
    harmonics: int = 1
    alpha: float = 0.1
    lambda_alpha: float = 0.0

    def build(self, inputs: Inputs, key: Array) -> StackedPINN:
        check_settings(self, "width", "depth", "levels", "harmonics")
        if self.lambda_alpha < 0:
            raise UserError(f"model.lambda_alpha cannot be negative, and is {self.lambda_alpha}.")
        embedding = Embedding(inputs.bounds, inputs.periodic, self.harmonics)
        size, outputs = embedding.size, inputs.outputs
        first, *keys = jax.random.split(key, 1 + self.levels)

        def network(entering: int, network_key: Array) -> MLP:
            return MLP(entering, outputs, self.width, self.depth, network_key, self.activation)

        def level(level_key: Array) -> Level:
            one, two = jax.random.split(level_key)
            entering = size + outputs
            linear = Dense(entering, outputs, one)
            return Level(linear, network(entering, two), jnp.asarray(self.alpha, float))

        return StackedPINN(
            embedding, network(size, first), [level(k) for k in keys], self.lambda_alpha
        )
