"""What a network sees of a point: its embedding, or Fourier features of the embedding."""

from __future__ import annotations

from typing import Any

import equinox as eqx

from .embeddings import Embedding
from .fourier import FourierFeatures


class Features(eqx.Module):
    """The embedding of a point and, where there are any, the Fourier features of that."""

    embedding: Embedding
    fourier: FourierFeatures | None

    def __call__(self, x: Any) -> Any:
        embedded = self.embedding(x)
        return embedded if self.fourier is None else self.fourier(embedded)


class FourierBranch(eqx.Module):
    """A deep branch that sees the Fourier features of what enters it."""

    features: FourierFeatures
    dnn: Any

    def __call__(self, h: Any) -> Any:
        return self.dnn(self.features(h))

    def last_layer(self) -> tuple[Any, ...]:
        return self.dnn.last_layer()
