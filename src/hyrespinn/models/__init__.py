"""Models: specifications, which are plain values, and the networks that are built from them."""

from .collocation import KernelExpansion
from .dense import Factorisation
from .expertpinn import ExpertPINN
from .features import Fourier, Frequencies
from .gates import FreeGate, Gate, Gates, SigmoidGate
from .hyrespinn import HyResPINN
from .inputs import Inputs
from .kernels import Lattice, Moving, Scattered
from .linear_part import linear_part
from .matching import match_parameters, tolerance
from .mlp import Deep
from .model import Chain, Model
from .pinn import PINN
from .piratenet import PirateNet
from .registered import MODELS
from .respinn import ResPINN
from .spec import Knob, ModelSpec
from .stackedpinn import StackedPINN

__all__ = [
    "MODELS",
    "PINN",
    "Chain",
    "Deep",
    "ExpertPINN",
    "Factorisation",
    "Fourier",
    "FreeGate",
    "Frequencies",
    "Gate",
    "Gates",
    "HyResPINN",
    "Inputs",
    "KernelExpansion",
    "Knob",
    "Lattice",
    "Model",
    "ModelSpec",
    "Moving",
    "PirateNet",
    "ResPINN",
    "Scattered",
    "SigmoidGate",
    "StackedPINN",
    "linear_part",
    "match_parameters",
    "tolerance",
]
