"""hyrespinn: solve partial differential equations with hybrid residual networks.

>>> import hyrespinn as hp
>>> "allen-cahn-dirichlet" in hp.problems.PROBLEMS
True
"""

from importlib.metadata import PackageNotFoundError, version

from . import problems
from .errors import UserError
from .experiments.presets import match_parameters
from .experiments.solve import resume, solve
from .geometry import Annulus, Box, Disk, Domain, TimeBox
from .models import HyResPINN
from .problems import (
    Boundary,
    Dirichlet,
    Initial,
    Interface,
    MeanValue,
    Neumann,
    Periodic,
    Problem,
    register,
)
from .solution import Solution

try:
    __version__ = version("hyrespinn")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0.0.0"

__all__ = [
    "Annulus",
    "Boundary",
    "Box",
    "Dirichlet",
    "Disk",
    "Domain",
    "HyResPINN",
    "Initial",
    "Interface",
    "MeanValue",
    "Neumann",
    "Periodic",
    "Problem",
    "Solution",
    "TimeBox",
    "UserError",
    "match_parameters",
    "problems",
    "register",
    "resume",
    "solve",
]
