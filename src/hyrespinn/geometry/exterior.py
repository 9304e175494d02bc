"""Points of a domain and of its near exterior."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy
from jaxtyping import Float

from .flat import Bounds
from .sampling import sobol_points

DENSE = 32
"""How many times as many points tell where the domain is, and how much of its surroundings is near."""
REACH = 1.0
"""The widest exterior, in half lengths of the domain."""


class Covered(NamedTuple):
    """Points, and how many of them the bounding box would hold as close together."""

    points: Float[np.ndarray, "n d"]
    in_box: float


def with_exterior(
    cover: Callable[[int, np.random.Generator], np.ndarray],
    bounds: Bounds,
    outward: Sequence[bool],
    count: int,
    exterior: float,
    rng: np.random.Generator,
) -> Covered:
    """``count`` points that cover a domain and all that is within ``exterior`` of their own spacings of it.

    ``cover(n, rng)`` are points of the domain itself. Lengths are those of the bounding box scaled
    to ``[−1, 1]``; there are points outside along the coordinates that go ``outward`` alone.

    >>> unit = lambda n, rng: rng.random((n, 1))
    >>> points, in_box = with_exterior(
    ...     unit, ((0.0, 1.0),), [True], 100, 3.0, np.random.default_rng(0)
    ... )
    >>> len(points), bool(points.min() < -0.02), bool(points.max() > 1.02), round(in_box)
    (100, True, True, 94)
    """
    if not exterior:
        return Covered(cover(count, rng), float(count))
    lower, upper = np.asarray(bounds).T
    half, dimension = 0.5 * (upper - lower), len(bounds)
    inside = scipy.spatial.KDTree((cover(DENSE * count, rng) - lower) / half - 1)
    sides = 2 + 2 * REACH * np.asarray(outward)
    number = DENSE * count
    while True:
        candidates = (sobol_points(number, dimension, rng) - 0.5) * sides
        distances, _ = inside.query(candidates)
        # The further out points go, the larger the volume that the points share and their spacing:
        # the exterior ends where it has become as wide as it should be in units of that.
        farther = np.sort(distances)
        volumes = np.prod(sides) * np.arange(1, number + 1) / number
        spacings = (volumes / count) ** (1 / dimension)
        wide = np.flatnonzero(farther >= np.minimum(exterior * spacings, REACH))
        last = wide[0] if len(wide) else number - 1
        if last + 1 >= count:
            break
        number *= 2  # the domain is a small part of its bounding box
    chosen = candidates[distances <= farther[last]][:count]
    return Covered(lower + half * (chosen + 1), float(2**dimension / spacings[last] ** dimension))
