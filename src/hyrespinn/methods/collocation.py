"""The method ``collocation``: kernels that stay where they are, with Gauss–Newton.

It is the linear limit of one hybrid block: while what enters the block's tanh is small and its
kernels do not move, the block is linear in the coefficients of its kernels. Nothing else is trained.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..discretise import Discretisation
from ..errors import UserError
from ..problems.statement import Statement
from ..registry import register
from . import collocation_lattice, collocation_scattered
from .method import Effort, Method, Suits, WhyNot


@register("collocation")
@dataclass(frozen=True)
class Collocation(Method):
    """Kernels on a lattice where space is periodic or between reflecting walls; scattered ones without
    time, and for equations of the third order and more."""

    trains: ClassVar[str] = "the coefficients of fixed kernels, and an affine function"

    def suits(self, statement: Statement, precision: str) -> Suits | WhyNot:
        lattice = collocation_lattice.suits(statement)
        if isinstance(lattice, Suits):
            if precision != "float64":
                return WhyNot("nearly dependent kernels on a lattice are lost in single precision")
            return lattice
        scattered = collocation_scattered.suits(statement)
        if isinstance(scattered, Suits):
            return scattered
        return WhyNot(f"{lattice.reason}, and {scattered.reason}")

    def discretise(self, statement: Statement, effort: Effort) -> Discretisation:
        if isinstance(collocation_lattice.suits(statement), Suits):
            return collocation_lattice.discretise(statement, effort)
        scattered = collocation_scattered.suits(statement)
        if isinstance(scattered, WhyNot):
            raise UserError(
                f"The method collocation does not suit {statement.problem.name}: "
                f"{scattered.reason}. Take --method network."
            )
        return collocation_scattered.discretise(statement, effort)
