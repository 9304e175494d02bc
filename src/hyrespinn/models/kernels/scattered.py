"""Kernels that stay where they are, evenly scattered over a domain and around it."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from ...geometry.exterior import with_exterior
from ..checks import at_least, positive
from ..embeddings import Embedding
from ..inputs import Inputs
from ..parameters import Fixed
from .distances import Diagonal
from .initialise import spaced_widths
from .kernel import Gaussian, Kernel
from .rbf import RBF


@dataclass(frozen=True)
class Scattered:
    """Centres that cover a domain of any shape evenly; nothing but coefficients is trained.

    Args:
        count: The number of kernels.
        kernel: The function of the distance.
        overlap: The width of a kernel, in spacings of the centres.
        time_width: The width along time, in half durations (0: as along space).
        time_levels: With a ``time_width``, about so many centres stand behind one another in time;
            the others resolve space.
        exterior: Centres stand up to so many spacings outside the domain, too: near the boundary
            kernels inside it alone need large coefficients that cancel. There are none before or
            after the domain's time, nor beyond a periodic end.
    """

    count: int = 1024
    kernel: Kernel = Gaussian()
    overlap: float = 2.7
    time_width: float = 0.0
    time_levels: float = 6.0
    exterior: float = 3.0

    def __post_init__(self) -> None:
        at_least(self, 1, count=self.count, time_levels=self.time_levels)
        at_least(self, 0, time_width=self.time_width, exterior=self.exterior)
        positive(self, overlap=self.overlap)

    @property
    def number(self) -> int:
        """The number of kernels."""
        return self.count

    def layer(self, embedding: Embedding, inputs: Inputs, rng: np.random.Generator) -> RBF:
        """The kernels, with coefficients of zero for each field."""
        self.kernel.check(inputs.order)
        outward = [not p for p in inputs.periodic]
        outward[0] &= not inputs.has_time
        points, in_box = with_exterior(
            inputs.cover, inputs.bounds, outward, self.count, self.exterior, rng
        )
        time_width = self.time_width if inputs.has_time else 0.0
        along = spaced_widths(
            embedding.extents(), in_box, self.overlap, time_width, self.time_levels
        )
        widths = np.tile(embedding.widths(along.tolist()), (self.count, 1))
        distance = Diagonal()
        return RBF(
            Fixed(embedding.places(points)),
            Fixed(distance.start(jnp.asarray(widths), embedding.size)),
            jnp.zeros((self.count, inputs.outputs)),
            self.kernel,
            distance,
        )
