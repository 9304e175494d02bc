"""Initial, boundary and other side conditions; each kind is one class."""

from . import places
from .boundary import Boundary
from .condition import EVEN, ODD, Condition, SolutionMap, Start, Value, Wall, evaluate, is_zero
from .dirichlet import Dirichlet
from .initial import Initial
from .interface import Interface
from .mean_value import MeanValue
from .neumann import Neumann
from .periodic import Periodic
from .places import Counts, Place, Samples, Sampling

__all__ = [
    "EVEN",
    "ODD",
    "Boundary",
    "Condition",
    "Counts",
    "Dirichlet",
    "Initial",
    "Interface",
    "MeanValue",
    "Neumann",
    "Periodic",
    "Place",
    "Samples",
    "Sampling",
    "SolutionMap",
    "Start",
    "Value",
    "Wall",
    "evaluate",
    "is_zero",
    "places",
]
