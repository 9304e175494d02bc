"""What a treatment of the boundary decides."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from ...derivatives import propagate
from ...models.inputs import Inputs
from ...models.layers import Series
from ..conditions import Condition
from ..statement import Statement

Network = Callable[[Series], Series]
"""Coordinates, as an array ``(points, d)`` or a series, to raw outputs ``(points, fields)``."""


@dataclass(frozen=True)
class Ansatz:
    """Turns the raw outputs of a network into fields; this one takes them as they are."""

    def __call__(self, network: Network, x: Series) -> Series:
        """The fields at coordinates ``x``, an array ``(points, d)`` or a series."""
        return propagate(network, x)

    def given(self, conditions: Sequence[Condition]) -> Ansatz:
        """The same with the data of these conditions, those of other values of the parameters."""
        return self


class Imposed(NamedTuple):
    """The ansatz, and the conditions that it leaves to the loss, by their places in the statement."""

    ansatz: Ansatz
    left: tuple[int, ...]


@dataclass(frozen=True)
class BoundaryTreatment(ABC):
    """How conditions on the boundary enter a solution: by its form, or by the loss."""

    kind: ClassVar[str]
    embeds: ClassVar[bool]
    """Whether conditions that do not say so themselves (``exact=``) are built in."""

    @abstractmethod
    def impose(self, statement: Statement) -> Imposed:
        """Which conditions hold by the form of the solution, and which are left."""

    def embedded(self, statement: Statement) -> tuple[str, ...]:
        """The periodic axes that are built into the network's input."""
        axes = {c.seam() for c in statement.conditions if self.builds_in(c)}
        return tuple(name for name in statement.domain.space if name in axes)

    def builds_in(self, condition: Condition) -> bool:
        """Whether a condition is to be built in, where that is possible."""
        return self.embeds if condition.exact is None else condition.exact

    def inputs(self, statement: Statement) -> Inputs:
        """What a network must know of the problem.

        >>> import hyrespinn as hp
        >>> from hyrespinn.problems.boundary import Lifted, Reflected
        >>> burgers = hp.problems.state(hp.problems.Burgers())
        >>> Lifted().inputs(burgers).periodic, Reflected().inputs(burgers).periodic
        ((False, False), (False, True))
        """
        domain, axes = statement.domain, self.embedded(statement)
        return Inputs(
            bounds=domain.bounds,
            periodic=tuple(c in axes for c in domain.coordinates),
            outputs=len(statement.fields),
            order=statement.order,
            spread=domain.spread,
            cover=domain.cover,
            has_time=domain.has_time,
        )

    def on_lattice(self, statement: Statement) -> tuple[Statement, BoundaryTreatment]:
        """What is trained on a lattice of points, and how the boundary is treated there."""
        return statement, self


def not_embedded(treatment: BoundaryTreatment, statement: Statement) -> list[int]:
    """The places of all conditions but the periodic ones that are built into the network's input."""
    return [
        place
        for place, condition in enumerate(statement.conditions)
        if condition.seam() is None or not treatment.builds_in(condition)
    ]
