"""A radial-basis-function network."""

from __future__ import annotations

import equinox as eqx
from jax import Array

from ..layers import Layer, Series
from ..parameters import Fixed, value
from .distances import DIRECT, DIRECT_FIXED, Distance, Shapes
from .kernel import Kernel


class RBF(Layer):
    """``F_R(h) = K(h) W`` with ``K_ij = ψ(r(h_i, c_j; ω_j))`` (the paper's eq. for ``F_R``)."""

    centers: Array | Fixed[Array]
    shapes: Shapes | Fixed[Shapes]
    coefficients: Array
    kernel: Kernel = eqx.field(static=True)
    distance: Distance = eqx.field(static=True)

    def basis(self, h: Series) -> Series:
        """The kernel matrix ``(points, centres)``."""
        direct = DIRECT_FIXED if isinstance(self.centers, Fixed) else DIRECT
        shapes, centers = value(self.shapes), value(self.centers)
        return self.kernel(self.distance.squares(shapes, h, centers, direct))

    def __call__(self, h: Series) -> Series:
        return self.basis(h) @ self.coefficients

    def linear_leaves(self) -> tuple[Array, ...]:
        return (self.coefficients,)

    def widths(self) -> Array:
        """The widths ``(centres, dimension)`` along the coordinate axes."""
        return self.distance.widths(value(self.shapes), value(self.centers).shape[1])
