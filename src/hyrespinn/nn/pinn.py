"""The plain physics-informed neural network (Raissi, Perdikaris and Karniadakis)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import equinox as eqx
from jax import Array

from .embeddings import Embedding
from .inputs import Inputs
from .mlp import MLP
from .settings import check_settings


class PINN(eqx.Module):
    """A multilayer perceptron of the embedded point."""

    embedding: Embedding
    mlp: MLP

    def __call__(self, x: Any) -> Any:
        return self.mlp(self.embedding(x))


@dataclass(frozen=True)
class PINNConfig:
    """The settings of a PINN."""

    width: int = 32
    depth: int = 3
    activation: str = "tanh"
    harmonics: int = 1

    def build(self, inputs: Inputs, key: Array) -> PINN:
        check_settings(self, "width", "depth", "harmonics")
        embedding = Embedding(inputs.bounds, inputs.periodic, self.harmonics)
        mlp = MLP(embedding.size, inputs.outputs, self.width, self.depth, key, self.activation)
        return PINN(embedding, mlp)
