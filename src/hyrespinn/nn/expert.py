"""The expert's PINN: Fourier features, a modified MLP, random weight factorisation (Wang et al.)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
from jax import Array

from .dense import FactorisedDense
from .embeddings import Embedding
from .fourier import FourierFeatures
from .inputs import Inputs
from .mlp import ModifiedMLP
from .settings import check_fourier, check_settings


class ExpertPINN(eqx.Module):
    """A modified MLP of the Fourier features of the embedded point."""

    embedding: Embedding
    features: FourierFeatures
    mlp: ModifiedMLP

    def __call__(self, x: Any) -> Any:
        return self.mlp(self.features(self.embedding(x)))


@dataclass(frozen=True)
class ExpertPINNConfig:
    """The settings of an ExpertPINN; ``fourier`` is the number of Fourier features."""

    width: int = 24
    depth: int = 2
    activation: str = "tanh"
    harmonics: int = 1
    fourier: int = 24
    fourier_scale: float = 1.0
    train_fourier: bool = True
    factor_mean: float = 1.0
    factor_deviation: float = 0.1

    def build(self, inputs: Inputs, key: Array) -> ExpertPINN:
        check_settings(self, "width", "depth", "harmonics")
        check_fourier(self)
        embedding = Embedding(inputs.bounds, inputs.periodic, self.harmonics)
        first, second = jax.random.split(key)
        features = FourierFeatures(
            embedding.size, self.fourier, first, self.fourier_scale, self.train_fourier
        )
        layer = partial(FactorisedDense, mean=self.factor_mean, deviation=self.factor_deviation)
        mlp = ModifiedMLP(
            self.fourier, inputs.outputs, self.width, self.depth, second, self.activation, layer
        )
        return ExpertPINN(embedding, features, mlp)
