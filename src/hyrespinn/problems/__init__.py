"""Problems: an equation, its domain and its conditions, stated once."""

from .allen_cahn import AllenCahnDirichlet
from .conditions import Boundary, Dirichlet, Initial, MeanValue, Neumann, Periodic
from .problem import PROBLEMS, Problem, problem_named, register

__all__ = [
    "PROBLEMS",
    "AllenCahnDirichlet",
    "Boundary",
    "Dirichlet",
    "Initial",
    "MeanValue",
    "Neumann",
    "Periodic",
    "Problem",
    "problem_named",
    "register",
]
