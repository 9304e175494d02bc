"""Kernels: functions of a distance, the kinds of distance, and where kernels stand."""

from .distances import DISTANCES, Diagonal, Distance, Full, Isotropic
from .kernel import (
    KERNELS,
    Gaussian,
    InverseMultiquadric,
    Kernel,
    Matern52,
    Multiquadric,
    WendlandC2,
    WendlandC4,
)
from .lattice import Lattice
from .moving import Moving
from .scattered import Scattered

__all__ = [
    "DISTANCES",
    "KERNELS",
    "Diagonal",
    "Distance",
    "Full",
    "Gaussian",
    "InverseMultiquadric",
    "Isotropic",
    "Kernel",
    "Lattice",
    "Matern52",
    "Moving",
    "Multiquadric",
    "Scattered",
    "WendlandC2",
    "WendlandC4",
]
