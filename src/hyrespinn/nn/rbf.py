"""The local branch: a radial-basis-function network."""

from __future__ import annotations

from typing import Any

import equinox as eqx
from jax import Array

from .dense import glorot
from .distances import DIRECT, DIRECT_FIXED, Distance
from .kernels import KERNELS
from .parameters import Fixed, value


class RBF(eqx.Module):
    """``F_R(h) = K(h) W`` with ``K_ij = ψ(r(h_i, c_j; ω_j))`` (the paper's eq. for ``F_R``)."""

    centers: Array | Fixed
    distance: Distance | Fixed
    coefficients: Array
    kernel: str = eqx.field(static=True)

    def __init__(
        self,
        centers: Array,
        distance: Distance,
        outputs: int,
        kernel: str,
        key: Array,
        train_centers: bool = True,
        train_shapes: bool = True,
    ):
        self.centers = centers if train_centers else Fixed(centers)
        self.distance = distance if train_shapes else Fixed(distance)
        self.coefficients = glorot(key, centers.shape[0], outputs)
        self.kernel = kernel

    def basis(self, h: Any) -> Any:
        """The kernel matrix ``(points, centres)``."""
        direct = DIRECT_FIXED if isinstance(self.centers, Fixed) else DIRECT
        return KERNELS[self.kernel](value(self.distance)(h, value(self.centers), direct))

    def __call__(self, h: Any) -> Any:
        return self.basis(h) @ self.coefficients

    def last_layer(self) -> tuple[Any, ...]:
        """The array in which the output is linear."""
        return (self.coefficients,)


def rbf_count(
    inputs: int,
    outputs: int,
    centers: int,
    distance: type[Any],
    train_centers: bool,
    train_shapes: bool = True,
) -> int:
    """The number of trained parameters: of each centre its place, shape and coefficients."""
    place = inputs if train_centers else 0
    shape = distance.count(inputs) if train_shapes else 0
    return centers * (place + shape + outputs)
