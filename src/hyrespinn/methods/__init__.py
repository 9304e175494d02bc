"""Methods: what is chosen for a problem, and why."""

from .auto import Choice, choose
from .collocation import Collocation
from .method import ACCURATE, EFFORTS, FAST, METHODS, SMOKE, Effort, Method, Suits, WhyNot
from .network import Network
from .paper import Paper

__all__ = [
    "ACCURATE",
    "EFFORTS",
    "FAST",
    "METHODS",
    "SMOKE",
    "Choice",
    "Collocation",
    "Effort",
    "Method",
    "Network",
    "Paper",
    "Suits",
    "WhyNot",
    "choose",
]
