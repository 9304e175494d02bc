"""Networks. Every layer takes arrays and :class:`~hyrespinn.derivatives.Taylor` series alike."""

from typing import Any

from ..errors import unknown
from .hyrespinn import HyResPINN, HyResPINNConfig
from .inputs import Inputs

MODELS: dict[str, type[Any]] = {"hyrespinn": HyResPINNConfig}
"""Model settings by name; ``settings.build(inputs, key)`` gives the network."""


def model_named(name: str) -> type[Any]:
    if name not in MODELS:
        raise unknown("model", name, MODELS)
    return MODELS[name]


__all__ = ["MODELS", "HyResPINN", "HyResPINNConfig", "Inputs", "model_named"]
