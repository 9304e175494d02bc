"""The models by name."""

from __future__ import annotations

from ..errors import unknown
from .collocation import KernelExpansion
from .expertpinn import ExpertPINN
from .hyrespinn import HyResPINN
from .pinn import PINN
from .piratenet import PirateNet
from .respinn import ResPINN
from .spec import ModelSpec
from .stackedpinn import StackedPINN

MODELS: dict[str, type[ModelSpec]] = {
    "hyrespinn": HyResPINN,
    "pinn": PINN,
    "respinn": ResPINN,
    "expertpinn": ExpertPINN,
    "stackedpinn": StackedPINN,
    "piratenet": PirateNet,
    "kernel-expansion": KernelExpansion,
}
"""Specifications by name; ``MODELS[name]().build(inputs, key)`` gives a network."""


def model_named(name: str) -> type[ModelSpec]:
    """The specification of that name."""
    if name not in MODELS:
        raise unknown("model", name, MODELS)
    return MODELS[name]
