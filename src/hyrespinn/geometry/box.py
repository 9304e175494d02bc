"""Boxes, with or without time."""

from __future__ import annotations

from typing import Any

from ..errors import UserError
from .domain import Domain
from .flat import Bounds, box_patch, check_side, plane_patch
from .patch import Points


class Box(Domain):
    """A box with named sides, such as ``Box(x=(0, 1), y=(0, 2))``.

    Its faces are called ``x.min``, ``x.max``, ``y.min`` and so on; ``x`` stands for both faces
    across that axis.

    >>> Box(x=(0, 1), y=(0, 2)).pieces
    ('x.min', 'x.max', 'y.min', 'y.max')
    """

    def __init__(self, *, _time: bool = False, **sides: tuple[float, float]):
        if not sides:
            raise UserError("A box needs at least one side, such as Box(x=(0, 1)).")
        bounds = tuple(check_side(name, side) for name, side in sides.items())
        names = tuple(sides)
        faces = {
            f"{name}.{side}": _face(bounds, axis, end)
            for axis, name in enumerate(names)
            for end, side in enumerate(("min", "max"))
            if axis > 0 or not _time
        }

        def level(points: Points) -> Points:
            xp = points.__array_namespace__()
            middle = xp.asarray([0.5 * (a + b) for a, b in bounds], dtype=points.dtype)
            half = xp.asarray([0.5 * (b - a) for a, b in bounds], dtype=points.dtype)
            return xp.max(abs(points - middle) - half, axis=-1)

        listed = ", ".join(f"{c}=({a:g}, {b:g})" for c, (a, b) in zip(names, bounds, strict=True))
        super().__init__(
            names,
            bounds,
            box_patch(bounds),
            faces,
            level,
            f"{'TimeBox' if _time else 'Box'}({listed})",
            start=_face(bounds, 0, 0) if _time else None,
            made_by=(_box, (_time, dict(zip(names, bounds, strict=True)))),
        )

    def face(self, piece: str) -> tuple[int, int]:
        """The axis of a face and its side: 0 for the lower one, 1 for the upper."""
        coordinate, side = piece.split(".")
        return self.coordinates.index(coordinate), ("min", "max").index(side)


def _box(time: bool, sides: dict[str, tuple[float, float]]) -> Box:
    return Box(_time=time, **sides)


def _face(bounds: Bounds, axis: int, end: int) -> Any:
    others = bounds[:axis] + bounds[axis + 1 :]
    return plane_patch(others, axis, bounds[axis][end], 2.0 * end - 1)


def TimeBox(t: tuple[float, float], **sides: tuple[float, float]) -> Box:
    """A box in space over an interval of time, such as ``TimeBox(t=(0, 1), x=(-1, 1))``."""
    return Box(_time=True, t=t, **sides)
