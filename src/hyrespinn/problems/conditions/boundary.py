"""Any condition on the boundary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..equation import Equation
from .places import Pieces
from .surface import OnSurface


@dataclass(frozen=True)
class Boundary(OnSurface):
    """Any condition on a piece of the boundary: ``residual(*fields, p)`` is to vanish there.

    The point carries the outward normal: a Robin condition is
    ``Boundary(lambda u, p: p.nx * u.x + 2 * u, on="x.max")``.
    """

    residual: Callable[..., Any]
    on: str | tuple[str, ...] | None = None
    name: str = "boundary"
    weight: float | None = None

    def check(self, equation: Equation) -> None:
        equation.domain.expand(self.on)

    def place(self, equation: Equation) -> Pieces:
        return Pieces(equation.domain.expand(self.on))
