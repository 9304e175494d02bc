"""Kernels whose centres and shapes are trained: the local branch of a HyResPINN."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array

from ..checks import at_least, positive, refused
from ..dense import glorot
from ..parameters import Fixed
from .distances import Diagonal, Distance
from .initialise import Layers, quantile_widths
from .kernel import Kernel, WendlandC4
from .rbf import RBF


@dataclass(frozen=True)
class Moving:
    """Kernels that move and change their shapes as they are trained.

    Args:
        count: The number of kernels in a block.
        kernel: The function of the distance.
        distance: The shapes that kernels can have: isotropic, diagonal or full.
        quantile: A kernel's first width is this quantile of the distances from its centre to the
            others: near 0 the nearest neighbour, 0.5 the median.
        factor: How many times as wide it is.
        train_centers: Whether centres move.
        train_shapes: Whether widths change.
        walls: So many kernels of the first block begin as layers along the walls of the domain's box, from
            thick to thin, as none that is wider than a layer ever finds it; as many as all, at most.

    >>> Moving(count=12).parameters(dimension=2, outputs=24)
    336
    """

    count: int = 32
    kernel: Kernel = WendlandC4()
    distance: Distance = Diagonal()
    quantile: float = 0.1
    factor: float = 1.0
    train_centers: bool = True
    train_shapes: bool = True
    walls: int = 0

    def __post_init__(self) -> None:
        at_least(self, 1, count=self.count)
        at_least(self, 0, walls=self.walls)
        positive(self, factor=self.factor)
        if not 0 <= self.quantile <= 1:
            raise refused(self, f"quantile is between 0 and 1, not {self.quantile}.")
        if self.walls >= self.count:
            raise refused(
                self,
                f"{self.walls} of {self.count} kernels cannot begin at walls; leave some for the rest.",
            )

    def layer(
        self, centers: np.ndarray, outputs: int, key: Array, layers: Layers | None = None
    ) -> RBF:
        """Kernels at these centres ``(n, d)``, then the ``layers``, with random coefficients."""
        widths = quantile_widths(centers, self.quantile, self.factor)
        if layers is not None:
            along = np.repeat(widths[:, None], centers.shape[1], axis=1)
            widths = np.concatenate([along, layers.widths])
            centers = np.concatenate([centers, layers.centers])
        places = jnp.asarray(centers)
        shapes = self.distance.start(jnp.asarray(widths), centers.shape[1])
        return RBF(
            places if self.train_centers else Fixed(places),
            shapes if self.train_shapes else Fixed(shapes),
            glorot(key, centers.shape[0], outputs),
            self.kernel,
            self.distance,
        )

    def parameters(self, dimension: int, outputs: int) -> int:
        """The number of trained parameters: of each kernel its centre, shape and coefficients."""
        center = dimension if self.train_centers else 0
        shape = self.distance.count(dimension) if self.train_shapes else 0
        return self.count * (center + shape + outputs)
