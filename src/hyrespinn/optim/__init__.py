"""Optimisers: objects with their own settings, on top of pure functions of one parameter vector."""

from .adam import Adam
from .gauss_newton import GaussNewton
from .gauss_newton_cg import GaussNewtonCG
from .lbfgs import LBFGS
from .levenberg_marquardt import LevenbergMarquardt
from .optimiser import Linearised, Optimiser, OptimiserState, Preconditioner, RoundOptimiser, System
from .soap import Soap
from .ssbroyden import BFGS, SSBFGS, SSBroyden

OPTIMISERS: dict[str, type[Optimiser[OptimiserState]]] = {
    "adam": Adam,
    "soap": Soap,
    "lbfgs": LBFGS,
    "bfgs": BFGS,
    "ssbfgs": SSBFGS,
    "ssbroyden": SSBroyden,
    "lm": LevenbergMarquardt,
    "gauss-newton": GaussNewton,
    "gauss-newton-cg": GaussNewtonCG,
}
"""Optimisers by name."""


def name_of(optimiser: Optimiser[OptimiserState]) -> str:
    """The name of an optimiser; that of its class in lower case where it is not in the table."""
    names = {cls: name for name, cls in OPTIMISERS.items()}
    return names.get(type(optimiser), type(optimiser).__name__.lower())


__all__ = [
    "BFGS",
    "LBFGS",
    "OPTIMISERS",
    "SSBFGS",
    "Adam",
    "GaussNewton",
    "GaussNewtonCG",
    "LevenbergMarquardt",
    "Linearised",
    "Optimiser",
    "OptimiserState",
    "Preconditioner",
    "RoundOptimiser",
    "SSBroyden",
    "Soap",
    "System",
    "name_of",
]
