"""The loss of a problem as residual vectors, term by term."""

from .objective import Objective
from .terms import Samples, Weights

__all__ = ["Objective", "Samples", "Weights"]
