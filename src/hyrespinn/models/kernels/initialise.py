"""Where inner RBF centres start, and how wide all of them are."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import scipy
from jaxtyping import Float

from ..embeddings import Embedding


def k_means(
    features: Float[np.ndarray, "n d"], count: int, rng: np.random.Generator
) -> Float[np.ndarray, "{count} d"]:
    """``count`` cluster means of ``(points, features)``; never an empty cluster."""
    if len(features) < count:
        raise ValueError(f"{count} centres need at least as many points; there are {len(features)}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an empty cluster keeps its start, which is a data point
        means, _ = scipy.cluster.vq.kmeans2(features, count, minit="++", rng=rng)
    return means


def spaced_widths(
    extents: Float[np.ndarray, " d"],
    count: float,
    overlap: float,
    time_width: float = 0.0,
    time_levels: float = 1.0,
) -> Float[np.ndarray, " d"]:
    """Widths along the coordinates: ``overlap`` times the spacing of ``count`` points in a box.

    With a ``time_width``, the first coordinate has that one, and so many of the points stand behind
    one another in time as there are ``time_levels``: the rest resolve space.

    >>> spaced_widths(np.array([2.0, 2.0]), 100, 1.5).tolist()
    [0.30000000000000004, 0.30000000000000004]
    >>> spaced_widths(np.array([2.0, 6.0]), 60, 2.0, time_width=4.0, time_levels=5).tolist()
    [4.0, 1.0]
    """
    if not time_width or len(extents) == 1:
        spacing = (np.prod(extents) / count) ** (1 / len(extents))
        return np.full(len(extents), overlap * spacing)
    space = extents[1:]
    spacing = (np.prod(space) * time_levels / count) ** (1 / len(space))
    return np.asarray([time_width, *np.full(len(space), overlap * spacing)])


def quantile_widths(
    centers: Float[np.ndarray, "n d"], quantile: float, factor: float = 1.0
) -> Float[np.ndarray, " n"]:
    """One width for each centre: a quantile of its distances to the other centres.

    ``quantile`` near 0 is the nearest neighbour, 0.5 the median distance; ``factor`` scales it.
    """
    if len(centers) == 1:
        return np.ones(1)
    distances = scipy.spatial.distance.squareform(scipy.spatial.distance.pdist(centers))
    others = distances[~np.eye(len(centers), dtype=bool)].reshape(len(centers), -1)
    widths = factor * np.quantile(others, quantile, axis=1)
    smallest = 1e-3 * max(float(distances.max()), 1e-12)
    return np.maximum(widths, smallest)  # centres that coincide still get a width


class Layers(NamedTuple):
    """Kernels along walls: their centres and widths, ``(n, features)`` each."""

    centers: np.ndarray
    widths: np.ndarray


THICKEST, LONGEST = 0.08, 1.5
"""The widths across and along a wall of the first layer, of coordinates that go from −1 to 1."""


def wall_layers(embedding: Embedding, has_time: bool, count: int) -> Layers | None:
    """Layers in the middle of each wall in turn, each time half as thick; none without a wall.

    >>> from hyrespinn.models.embeddings import Embedding
    >>> found = wall_layers(Embedding(((0.0, 1.0), (0.0, 5.0))), True, 3)
    >>> found.centers.tolist(), found.widths[:, 1].tolist()
    ([[0.0, -1.0], [0.0, 1.0], [0.0, -1.0]], [0.08, 0.08, 0.04])
    """
    free = [i for i, p in enumerate(embedding.periodic) if not p and not (has_time and i == 0)]
    walls = [(i, end) for i in free for end in (0, 1)]
    if not walls or not count:
        return None
    bounds = np.array([embedding.lower, embedding.upper])
    centers, widths = [], []
    for k in range(count):
        axis, end = walls[k % len(walls)]
        place, along = bounds.mean(axis=0), np.full(bounds.shape[1], LONGEST)
        place[axis], along[axis] = bounds[end, axis], THICKEST / 2 ** (k // len(walls))
        centers.append(place)
        widths.append(embedding.widths(along.tolist()))
    return Layers(np.asarray(embedding.places(np.stack(centers))), np.stack(widths))
