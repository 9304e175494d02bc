"""The points at which equation and conditions are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..errors import UserError
from ..geometry.sampling import Kronecker, Sampler
from ..losses.adaptive import Adaptivity
from ..losses.terms import Counts


@dataclass(frozen=True)
class ResidualAdaptive:
    """Points are chosen from ``pool`` times as many, with densities ``|r|^power / mean + floor``.

    Args:
        pool: How many candidates there are for a point.
        power: How strongly large residuals attract points.
        floor: How many points go evenly everywhere, beside those that residuals attract.
        even_loss: Whether the loss makes up for the density, so that it is the mean over all of the
            domain; otherwise it counts the more where more points are.
    """

    pool: int = 8
    power: float = 1.0
    floor: float = 1.0
    even_loss: bool = False

    def __post_init__(self) -> None:
        if self.pool < 2:
            raise UserError(f"A choice of points needs a pool of at least 2, not {self.pool}.")
        if self.power < 0 or self.floor < 0:
            raise UserError(
                "Neither power nor floor of a choice of points can be negative, and they are "
                f"{self.power:g} and {self.floor:g}."
            )


@dataclass(frozen=True)
class Drawn:
    """Points drawn at random, or from a sequence that covers the domain evenly.

    Args:
        interior: Points of the equation; the nodes of a mean value are about as many.
        initial: Points of a condition at the initial time.
        boundary: Points of a condition on the boundary.
        sampler: How they are drawn; ``poisson`` is one fixed set.
        adaptive: How the points of a new round follow the residual; ``None``: they do not.
    """

    kind: ClassVar[str] = "drawn"

    interior: int = 4096
    initial: int = 256
    boundary: int = 256
    sampler: Sampler = Kronecker()
    adaptive: ResidualAdaptive | None = ResidualAdaptive()

    def __post_init__(self) -> None:
        for name, count in vars(self).items():
            if isinstance(count, int) and count < 1:
                raise UserError(
                    f"{name} is {count}; a term of the loss needs at least one point (a mean over "
                    "none is not a number)."
                )

    @property
    def counts(self) -> Counts:
        return Counts(self.interior, self.initial, self.boundary)

    @property
    def adaptivity(self) -> Adaptivity:
        chosen = self.adaptive
        return Adaptivity(1, 1.0, 1.0) if chosen is None else Adaptivity(**vars(chosen))


@dataclass(frozen=True)
class Grid:
    """Points on a lattice, for kernels that stand on one.

    Args:
        counts: Points along each coordinate, time first; along space a multiple of the kernels.
    """

    kind: ClassVar[str] = "grid"

    counts: tuple[int, ...] = (8, 64)

    def __post_init__(self) -> None:
        if not self.counts or min(self.counts) < 1:
            raise UserError(
                "A grid has at least one point along each coordinate; its counts are "
                f"{list(self.counts)}."
            )


Points = Drawn | Grid
