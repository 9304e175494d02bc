"""Poisson-disk points: as many as wanted, none closer to another than a distance."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy

Throw = Callable[[int, np.random.Generator], tuple[np.ndarray, np.ndarray | None]]
"""``throw(n, rng)``: ``n`` uniform points of a set in random order, and normals where it has them."""

TRIES = 14
ROUNDS = 12


def poisson_disk(
    throw: Throw, dimension: int, measure: float, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray | None, float]:
    """``count`` points of a set, their normals, and the distance that no two of them are within.

    Darts are thrown and kept where no kept one is near. The distance is found by trial: large
    sets scale as ``count ~ distance^(−dimension)``. The set then holds a few points too many, which
    are dropped at random.
    """
    if count < 2 or dimension == 0:
        points, normals = throw(count, rng)
        return points, normals, 0.0
    # Random sequential packings fill a bit more than half of what is possible.
    radius = 0.75 * (measure / count) ** (1 / dimension)
    best: tuple[np.ndarray, np.ndarray | None, float] | None = None
    too_large = np.inf
    for _ in range(TRIES):
        points, normals = _darts(throw, radius, count, rng)
        found = len(points)
        if found >= count:
            if best is None or radius > best[2]:
                best = points, normals, radius
            if found <= 1.01 * count + 1:
                break
        else:
            too_large = min(too_large, radius)
        # Aim a little below the radius at which exactly ``count`` fit, and stay in the bracket.
        radius = radius * (found / (1.005 * count)) ** (1 / dimension)
        if best is not None and not best[2] < radius < too_large:
            radius = 0.5 * (best[2] + min(too_large, 1.2 * best[2]))
        elif best is None and radius >= too_large:
            radius = 0.97 * too_large
    if best is None:
        raise RuntimeError(f"no Poisson-disk sample of {count} points was found")
    points, normals, radius = best
    chosen = np.sort(rng.permutation(len(points))[:count])
    return points[chosen], None if normals is None else normals[chosen], radius


def _darts(
    throw: Throw, radius: float, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray | None]:
    """Greedy dart throwing, a whole volley at a time: the same as one dart after the other."""
    points, normals = throw(4 * count, rng)
    kept = _first_come(points, radius)
    points, normals = points[kept], None if normals is None else normals[kept]
    for _ in range(ROUNDS):
        more, more_normals = throw(6 * count, rng)
        free = np.isinf(scipy.spatial.KDTree(points).query(more, distance_upper_bound=radius)[0])
        if not free.any():
            break
        more, more_normals = more[free], None if more_normals is None else more_normals[free]
        kept = _first_come(more, radius)
        points = np.concatenate([points, more[kept]])
        if normals is not None and more_normals is not None:
            normals = np.concatenate([normals, more_normals[kept]])
    return points, normals


def _first_come(points: np.ndarray, radius: float) -> np.ndarray:
    """Which points stay when each, in order, stays unless an earlier one that stayed is near."""
    pairs = scipy.spatial.KDTree(points).query_pairs(radius, output_type="ndarray")
    earlier, later = pairs.min(axis=1), pairs.max(axis=1)
    undecided = np.ones(len(points), dtype=bool)
    stays = np.zeros(len(points), dtype=bool)
    while undecided.any():
        blocked = np.zeros(len(points), dtype=bool)
        blocked[later] = True
        new = undecided & ~blocked  # nobody before them is near
        stays |= new
        gone = np.zeros(len(points), dtype=bool)
        gone[later[new[earlier]]] = True
        undecided &= ~new & ~gone
        alive = undecided[earlier] & undecided[later]
        earlier, later = earlier[alive], later[alive]
    return stays
