"""Optimisers: objects with their own settings, on top of pure functions of one parameter vector."""

from ..registry import Registry
from .adam import Adam
from .gauss_newton import GaussNewton
from .gauss_newton_cg import GaussNewtonCG
from .lbfgs import LBFGS
from .levenberg_marquardt import LevenbergMarquardt
from .optimiser import (
    GrowingRounds,
    Linearised,
    Optimiser,
    OptimiserState,
    Preconditioner,
    RoundOptimiser,
    System,
)
from .soap import Soap
from .ssbroyden import BFGS, SSBFGS, SSBroyden
from .trust_region import TrustRegion

OPTIMISERS = Registry("optimiser", Optimiser)
"""Optimisers by name."""
OPTIMISERS.register("adam", Adam)
OPTIMISERS.register("soap", Soap)
OPTIMISERS.register("lbfgs", LBFGS)
OPTIMISERS.register("bfgs", BFGS)
OPTIMISERS.register("ssbfgs", SSBFGS)
OPTIMISERS.register("ssbroyden", SSBroyden)
OPTIMISERS.register("lm", LevenbergMarquardt)
OPTIMISERS.register("trust-region", TrustRegion)
OPTIMISERS.register("gauss-newton", GaussNewton)
OPTIMISERS.register("gauss-newton-cg", GaussNewtonCG)

__all__ = [
    "BFGS",
    "LBFGS",
    "OPTIMISERS",
    "SSBFGS",
    "Adam",
    "GaussNewton",
    "GaussNewtonCG",
    "GrowingRounds",
    "LevenbergMarquardt",
    "Linearised",
    "Optimiser",
    "OptimiserState",
    "Preconditioner",
    "RoundOptimiser",
    "SSBroyden",
    "Soap",
    "System",
    "TrustRegion",
]
