"""Exact partial derivatives of networks, propagated through their layers."""

from .elementwise import ACTIVATIONS, activation, cos, exp, reciprocal, sin, tanh
from .fallback import lift, propagate
from .multiindex import MultiIndex, closure, name_of, parse
from .taylor import Operator, Taylor, column, compose, concatenate, coordinates, square

__all__ = [
    "ACTIVATIONS",
    "MultiIndex",
    "Operator",
    "Taylor",
    "activation",
    "closure",
    "column",
    "compose",
    "concatenate",
    "coordinates",
    "cos",
    "exp",
    "lift",
    "name_of",
    "parse",
    "propagate",
    "reciprocal",
    "sin",
    "square",
    "tanh",
]
