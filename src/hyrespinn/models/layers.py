"""What every layer is: a function of arrays and of Taylor series, affine in some of its arrays."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TypeAlias, TypeVar

import equinox as eqx
from jax import Array

from ..derivatives import Taylor

Series: TypeAlias = Array | Taylor
"""Values at points, ``(..., features)``, with or without their derivatives."""
Function: TypeAlias = Callable[[Series], Series]


class Layer(eqx.Module):
    """A part of a network; a Taylor series gives a Taylor series, an array an array."""

    @abstractmethod
    def __call__(self, h: Series) -> Series: ...

    @abstractmethod
    def linear_leaves(self) -> tuple[Array, ...]:
        """The arrays in which the output is affine (or what stands for them in ``eqx.tree_at``)."""


L = TypeVar("L", bound=Layer)


def scaled(layer: L, factor: Array | float) -> L:
    """The layer with outputs ``factor`` times as large.

    The factor goes into the few arrays in which the output is linear, and not over the outputs,
    which there are for every point and derivative.
    """
    arrays = layer.linear_leaves()
    return eqx.tree_at(lambda p: p.linear_leaves(), layer, tuple(factor * a for a in arrays))
