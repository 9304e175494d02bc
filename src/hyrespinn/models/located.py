"""Where the kernels of a network lie in the domain."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from .embeddings import Embedding
from .kernels.kernel import Kernel
from .kernels.rbf import RBF
from .parameters import value


class Located(NamedTuple):
    """Kernels in the coordinates of the domain, ``(n, d)`` each but the last.

    ``centers`` may lie outside of it. Within ``widths`` of a centre a kernel falls to half its height;
    ``sizes`` are the norms of the coefficients.
    """

    centers: np.ndarray
    widths: np.ndarray
    sizes: np.ndarray

    @classmethod
    def of(cls, rbf: RBF, embedding: Embedding) -> Located:
        """The kernels of a layer that sees embedded points."""
        places, widths = np.asarray(value(rbf.centers)), np.asarray(rbf.widths())
        widths = widths * half_radius(rbf.kernel)
        centers, along = [], []
        for (begin, end), low, high, periodic in zip(
            embedding.columns(), embedding.lower, embedding.upper, embedding.periodic, strict=True
        ):
            half = 0.5 * (high - low)
            if not periodic:
                centers.append(low + half * (places[:, begin] + 1))
                along.append(half * widths[:, begin])
                continue
            # The first wave tells the angle; a step along the circle changes all cosines and sines.
            angle = np.arctan2(places[:, begin + 1], places[:, begin])
            wave = np.arange(1, embedding.harmonics + 1)
            angles = np.outer(angle, wave)
            pairs = np.stack([wave * np.sin(angles), wave * np.cos(angles)], axis=2)
            slopes = pairs.reshape(len(places), -1)
            inverse = np.linalg.norm(slopes / widths[:, begin:end], axis=1)
            centers.append(low + half * np.mod(angle / np.pi + 1, 2))
            along.append(half / (np.pi * inverse))
        sizes = np.linalg.norm(np.asarray(rbf.coefficients), axis=1)
        return cls(np.stack(centers, axis=1), np.stack(along, axis=1), sizes)

    def in_window(self, start: float, length: float, time: tuple[float, float]) -> Located:
        """The kernels of a network that takes a window of time for all of ``time``."""
        share = length / (time[1] - time[0])
        centers, widths = self.centers.copy(), self.widths.copy()
        centers[:, 0] = start + share * (centers[:, 0] - time[0])
        widths[:, 0] *= share
        return Located(centers, widths, self.sizes)


def half_radius(kernel: Kernel) -> float:
    """The distance at which a kernel has half its height; 1 for one that grows.

    >>> from hyrespinn.models.kernels import Gaussian
    >>> round(half_radius(Gaussian()), 2)  # √(2 log 2)
    1.18
    """
    radii = np.linspace(0, 10, 2001)
    heights = np.asarray(kernel(jnp.asarray(radii**2)))
    below = np.flatnonzero(heights <= 0.5 * heights[0])
    return float(radii[below[0]]) if below.size else 1.0
