"""hyrespinn: solve partial differential equations with hybrid residual networks.

>>> import hyrespinn as hp
>>> "allen-cahn-dirichlet" in hp.problems.PROBLEMS
True
"""

from importlib.metadata import PackageNotFoundError, version

from . import discretise, methods, models, optim, problems
from .discretise import Discretisation
from .errors import UserError
from .geometry import Annulus, Box, Disk, Domain, TimeBox
from .methods import Method
from .models import HyResPINN
from .problems import (
    Boundary,
    Condition,
    Dirichlet,
    Initial,
    Interface,
    MeanValue,
    Neumann,
    Periodic,
    Problem,
    places,
    register,
)
from .run.config import configure, match_parameters
from .run.solve import resume, solve
from .solution import Solution

try:
    __version__ = version("hyrespinn")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0.0.0"

__all__ = [
    "Annulus",
    "Boundary",
    "Box",
    "Condition",
    "Dirichlet",
    "Discretisation",
    "Disk",
    "Domain",
    "HyResPINN",
    "Initial",
    "Interface",
    "MeanValue",
    "Method",
    "Neumann",
    "Periodic",
    "Problem",
    "Solution",
    "TimeBox",
    "UserError",
    "configure",
    "discretise",
    "match_parameters",
    "methods",
    "models",
    "optim",
    "places",
    "problems",
    "register",
    "resume",
    "solve",
]
