"""Problems: an equation, its domain and its conditions, stated once."""

from .advection import Advection
from .allen_cahn import AllenCahnDirichlet, AllenCahnPeriodic
from .burgers import Burgers
from .conditions import (
    Boundary,
    Condition,
    Dirichlet,
    Initial,
    Interface,
    MeanValue,
    Neumann,
    Periodic,
    places,
)
from .darcy import Darcy2DDirichlet, Darcy2DNeumann, Darcy3DDirichlet, Darcy3DNeumann
from .five_strip import DarcyFiveStrip
from .grey_scott import GreyScott
from .heat import Heat1D
from .helmholtz import Helmholtz2D
from .korteweg_de_vries import KortewegDeVries
from .kuramoto_sivashinsky import KuramotoSivashinsky
from .poisson import Poisson2D
from .problem import PROBLEMS, Problem, problem_named, register
from .statement import Statement, state
from .wave import Wave1D

__all__ = [
    "PROBLEMS",
    "Advection",
    "AllenCahnDirichlet",
    "AllenCahnPeriodic",
    "Boundary",
    "Burgers",
    "Condition",
    "Darcy2DDirichlet",
    "Darcy2DNeumann",
    "Darcy3DDirichlet",
    "Darcy3DNeumann",
    "DarcyFiveStrip",
    "Dirichlet",
    "GreyScott",
    "Heat1D",
    "Helmholtz2D",
    "Initial",
    "Interface",
    "KortewegDeVries",
    "KuramotoSivashinsky",
    "MeanValue",
    "Neumann",
    "Periodic",
    "Poisson2D",
    "Problem",
    "Statement",
    "Wave1D",
    "places",
    "problem_named",
    "register",
    "state",
]
