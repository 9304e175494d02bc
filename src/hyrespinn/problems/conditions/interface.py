"""Any condition on planes inside the domain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..equation import Equation
from .places import Planes, cut
from .surface import OnSurface


@dataclass(frozen=True)
class Interface(OnSurface):
    """A condition on planes inside the domain: ``residual(*fields, p)`` is to vanish where
    coordinate ``axis`` is one of ``at``; the point carries the normal along the axis.

    The jump of a coefficient is stated so: ``Interface(lambda u, p: 3 * u.y, axis="y", at=0.5)``.
    """

    residual: Callable[..., Any]
    axis: str
    at: float | Sequence[float]
    name: str = "interface"
    weight: float | None = None

    @property
    def planes(self) -> tuple[float, ...]:
        return tuple(float(at) for at in np.ravel(self.at))

    def check(self, equation: Equation) -> None:
        for plane in self.planes:
            cut(equation.domain, self.axis, plane)

    def place(self, equation: Equation) -> Planes:
        return Planes(self.axis, self.planes)
