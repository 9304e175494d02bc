"""Networks. Every layer takes arrays and :class:`~hyrespinn.derivatives.Taylor` series alike."""

from collections.abc import Mapping
from typing import Any

from ..errors import unknown
from .expert import ExpertPINNConfig
from .hyrespinn import HyResPINN, HyResPINNConfig
from .inputs import Inputs
from .last_layer import linear_part
from .matching import match_parameters, tolerance
from .pinn import PINNConfig
from .pirate import PirateNetConfig
from .respinn import ResPINNConfig
from .stacked import StackedPINNConfig

MODELS: dict[str, type[Any]] = {
    "hyrespinn": HyResPINNConfig,
    "pinn": PINNConfig,
    "respinn": ResPINNConfig,
    "expertpinn": ExpertPINNConfig,
    "stackedpinn": StackedPINNConfig,
    "piratenet": PirateNetConfig,
}
"""Model settings by name; ``settings.build(inputs, key)`` gives the network."""


def model_named(name: str) -> type[Any]:
    if name not in MODELS:
        raise unknown("model", name, MODELS)
    return MODELS[name]


def settings_from_json(model: str, content: Mapping[str, Any]) -> Any:
    """The settings of a model that ``dataclasses.asdict`` and JSON have made lists of.

    >>> settings_from_json("hyrespinn", {"lattice": [8, 256]}).lattice
    (8, 256)
    """
    read = {k: tuple(v) if isinstance(v, list) else v for k, v in content.items()}
    return model_named(model)(**read)


__all__ = [
    "MODELS",
    "ExpertPINNConfig",
    "HyResPINN",
    "HyResPINNConfig",
    "Inputs",
    "PINNConfig",
    "PirateNetConfig",
    "ResPINNConfig",
    "StackedPINNConfig",
    "linear_part",
    "match_parameters",
    "model_named",
    "settings_from_json",
    "tolerance",
]
