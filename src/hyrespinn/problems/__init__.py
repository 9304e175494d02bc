"""Problems: an equation, its domain and its conditions, stated once."""

from .allen_cahn import AllenCahnDirichlet
from .conditions import Boundary, Dirichlet, Initial, MeanValue, Neumann, Periodic
from .heat import Heat1D
from .helmholtz import Helmholtz2D
from .poisson import Poisson2D
from .problem import PROBLEMS, Problem, problem_named, register
from .wave import Wave1D

__all__ = [
    "PROBLEMS",
    "AllenCahnDirichlet",
    "Boundary",
    "Dirichlet",
    "Heat1D",
    "Helmholtz2D",
    "Initial",
    "MeanValue",
    "Neumann",
    "Periodic",
    "Poisson2D",
    "Problem",
    "Wave1D",
    "problem_named",
    "register",
]
