"""What is chosen for a problem, as one object of objects."""

from ..problems.boundary import Lifted, Penalty, Reflected
from .discretisation import Discretisation, Stopping
from .marching import Adaptive, Fixed, Given, Whole
from .points import Drawn, Grid, ResidualAdaptive
from .weights import Causal, GradientNorm, NeuralTangentKernel, Weights

__all__ = [
    "Adaptive",
    "Causal",
    "Discretisation",
    "Drawn",
    "Fixed",
    "Given",
    "GradientNorm",
    "Grid",
    "Lifted",
    "NeuralTangentKernel",
    "Penalty",
    "Reflected",
    "ResidualAdaptive",
    "Stopping",
    "Weights",
    "Whole",
]
