"""The loss of a problem as residual vectors, term by term."""

from .objective import Objective
from .terms import Counts, Samples, Sampling, Weights

__all__ = ["Counts", "Objective", "Samples", "Sampling", "Weights"]
