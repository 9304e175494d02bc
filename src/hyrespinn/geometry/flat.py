"""Boxes, rectangles and points as patches."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import UserError
from .patch import Patch, Placed, Points

Bounds = tuple[tuple[float, float], ...]


def check_side(name: str, side: Any) -> tuple[float, float]:
    """A side of a box as two numbers, or a message about it."""
    if len(name) != 1 or not name.isalpha():
        raise UserError(
            f"A coordinate is named by one letter (derivatives such as u.xx spell it), not {name!r}."
        )
    try:
        a, b = (float(v) for v in side)
    except (TypeError, ValueError):
        raise UserError(f"The side {name} must be a pair (lower, upper), not {side!r}.") from None
    if not (np.isfinite(a) and np.isfinite(b) and a < b):
        raise UserError(f"The side {name} must go from a lower to a higher number, not {side!r}.")
    return a, b


def box_patch(bounds: Bounds) -> Patch:
    """The body of a box."""

    def place(unit: Points) -> Placed:
        xp = unit.__array_namespace__()
        lower = xp.asarray([a for a, _ in bounds], dtype=unit.dtype)
        size = xp.asarray([b - a for a, b in bounds], dtype=unit.dtype)
        return Placed(lower + size * unit)

    return Patch(len(bounds), float(np.prod([b - a for a, b in bounds])), place)


def plane_patch(others: Bounds, axis: int, at: float, normal: float) -> Patch:
    """The rectangle where coordinate ``axis`` is ``at`` and the others lie between their bounds."""
    flat = box_patch(others)

    def place(unit: Points) -> Placed:
        xp = unit.__array_namespace__()
        free = flat.place(unit).points if others else unit

        def insert(columns: Points, value: float) -> Points:
            column = xp.full((unit.shape[0], 1), value, dtype=unit.dtype)
            return xp.concatenate([columns[:, :axis], column, columns[:, axis:]], axis=1)

        return Placed(insert(free, at), insert(xp.zeros_like(free), normal))

    return Patch(len(others), flat.full, place)


def moment_patch(at: float) -> Patch:
    """A single value of one coordinate, such as the initial time."""

    def place(unit: Points) -> Placed:
        xp = unit.__array_namespace__()
        return Placed(xp.full((unit.shape[0], 1), at, dtype=unit.dtype))

    return Patch(0, 1.0, place)
