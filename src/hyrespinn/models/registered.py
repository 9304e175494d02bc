"""The models by name."""

from __future__ import annotations

from ..registry import Registry
from .collocation import KernelExpansion
from .expertpinn import ExpertPINN
from .hyrespinn import HyResPINN
from .pinn import PINN
from .piratenet import PirateNet
from .respinn import ResPINN
from .spec import ModelSpec
from .stackedpinn import StackedPINN

MODELS = Registry("model", ModelSpec)
MODELS.register("hyrespinn", HyResPINN)
MODELS.register("pinn", PINN)
MODELS.register("respinn", ResPINN)
MODELS.register("expertpinn", ExpertPINN)
MODELS.register("stackedpinn", StackedPINN)
MODELS.register("piratenet", PirateNet)
MODELS.register("kernel-expansion", KernelExpansion)
"""Specifications by name; ``MODELS[name]().build(inputs, key)`` gives a network."""
