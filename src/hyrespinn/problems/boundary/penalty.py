"""Conditions as terms of the loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..statement import Statement
from .lifted import lift_values
from .treatment import BoundaryTreatment, Imposed


@dataclass(frozen=True)
class Penalty(BoundaryTreatment):
    """All conditions are left to the loss, but for those that ask to be built in (``exact=True``)."""

    kind: ClassVar[str] = "penalty"
    embeds: ClassVar[bool] = False

    def impose(self, statement: Statement) -> Imposed:
        return lift_values(self, statement)
