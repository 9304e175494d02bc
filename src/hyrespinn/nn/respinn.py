"""A PINN with identity skips (the residual blocks of He et al.)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
from jax import Array

from ..derivatives import activation
from .dense import Dense
from .embeddings import Embedding
from .inputs import Inputs
from .settings import check_settings


class ResPINN(eqx.Module):
    """``h ← h + σ(W h + b)`` in every hidden layer after the first."""

    embedding: Embedding
    first: Dense
    blocks: list[Dense]
    head: Dense
    activation: str = eqx.field(static=True)

    def __call__(self, x: Any) -> Any:
        act = activation(self.activation)
        h = act(self.first(self.embedding(x)))
        for block in self.blocks:
            h = h + act(block(h))
        return self.head(h)


@dataclass(frozen=True)
class ResPINNConfig:
    """The settings of a ResPINN; ``depth`` counts the hidden layers, as in a PINN."""

    width: int = 32
    depth: int = 3
    activation: str = "tanh"
    harmonics: int = 1

    def build(self, inputs: Inputs, key: Array) -> ResPINN:
        check_settings(self, "width", "depth", "harmonics")
        embedding = Embedding(inputs.bounds, inputs.periodic, self.harmonics)
        first, head, *blocks = jax.random.split(key, 1 + self.depth)
        return ResPINN(
            embedding,
            Dense(embedding.size, self.width, first),
            [Dense(self.width, self.width, k) for k in blocks],
            Dense(self.width, inputs.outputs, head),
            self.activation,
        )
