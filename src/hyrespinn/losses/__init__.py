"""The loss of a problem as residual vectors, term by term."""

from .objective import Objective, Weights
from .terms import Samples

__all__ = ["Objective", "Samples", "Weights"]
