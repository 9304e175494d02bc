"""Rings and disks in the plane."""

from __future__ import annotations

import math

from ..errors import UserError
from .domain import Domain
from .flat import check_side
from .patch import Patch, Placed, Points


class Annulus(Domain):
    """The ring ``inner ≤ r ≤ outer`` around a centre; its pieces are ``inner`` and ``outer``.

    >>> ring = Annulus(inner=0.25, outer=1)
    >>> ring.pieces, ring.bounds
    (('inner', 'outer'), ((-1.0, 1.0), (-1.0, 1.0)))
    >>> ring.extrude(z=(0, 1)).pieces
    ('inner', 'outer', 'z.min', 'z.max')
    """

    def __init__(
        self,
        inner: float,
        outer: float,
        center: tuple[float, float] = (0.0, 0.0),
        coordinates: tuple[str, str] = ("x", "y"),
    ):
        if not (math.isfinite(outer) and 0 <= inner < outer):
            raise UserError(
                f"An annulus needs 0 ≤ inner < outer, not inner = {inner:g}, outer = {outer:g}."
            )
        if len(center) != 2 or len(coordinates) != 2:
            raise UserError(
                "A ring lies in a plane: its center has two numbers and its coordinates two names, "
                f"not {center!r} and {coordinates!r}."
            )
        middle = (float(center[0]), float(center[1]))
        if not all(math.isfinite(c) for c in middle):
            raise UserError(f"The center must be two finite numbers, not {center!r}.")
        bounds = tuple(
            check_side(name, (c - outer, c + outer))
            for name, c in zip(coordinates, middle, strict=True)
        )
        circles = {"inner": (inner, -1.0), "outer": (outer, 1.0)}
        size = f"Annulus(inner={inner:g}, outer={outer:g}"
        if inner == 0:
            del circles["inner"]
            size = f"Disk(radius={outer:g}"

        def level(points: Points) -> Points:
            xp = points.__array_namespace__()
            r = xp.hypot(points[..., 0] - middle[0], points[..., 1] - middle[1])
            return xp.maximum(inner - r, r - outer) if inner > 0 else r - outer

        super().__init__(
            tuple(coordinates),
            bounds,
            _ring(inner, outer, middle),
            {name: _circle(radius, side, middle) for name, (radius, side) in circles.items()},
            level,
            f"{size}, center=({middle[0]:g}, {middle[1]:g}))",
            made_by=(Annulus, (inner, outer, middle, tuple(coordinates))),
        )


def Disk(
    radius: float,
    center: tuple[float, float] = (0.0, 0.0),
    coordinates: tuple[str, str] = ("x", "y"),
) -> Annulus:
    """A disk: the annulus without a hole; its boundary is the piece ``outer``."""
    return Annulus(0.0, radius, center, coordinates)


def _direction(angle: Points) -> Points:
    xp = angle.__array_namespace__()
    return xp.stack([xp.cos(angle), xp.sin(angle)], axis=-1)


def _middle(unit: Points, middle: tuple[float, float]) -> Points:
    return unit.__array_namespace__().asarray(middle, dtype=unit.dtype)


def _ring(inner: float, outer: float, middle: tuple[float, float]) -> Patch:
    def place(unit: Points) -> Placed:
        # Equal areas: r² is uniform between the squares of the radii.
        r = (inner**2 + (outer**2 - inner**2) * unit[:, :1]) ** 0.5
        return Placed(_middle(unit, middle) + r * _direction(2 * math.pi * unit[:, 1]))

    return Patch(2, math.pi * (outer**2 - inner**2), place)


def _circle(radius: float, side: float, middle: tuple[float, float]) -> Patch:
    def place(unit: Points) -> Placed:
        direction = _direction(2 * math.pi * unit[:, 0])
        return Placed(_middle(unit, middle) + radius * direction, side * direction)

    return Patch(1, 2 * math.pi * radius, place)
