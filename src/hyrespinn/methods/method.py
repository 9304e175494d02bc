"""The contract of a method: whether it suits a problem, and what it chooses for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..discretise import Discretisation
from ..errors import UserError
from ..models import ModelSpec
from ..problems.statement import Statement
from ..registry import Registry, registered_name


@dataclass(frozen=True)
class Effort:
    """How much a run may cost: ``scale`` is 1 for minutes on two cores."""

    name: str
    scale: float


SMOKE, FAST, ACCURATE = Effort("smoke", 0.25), Effort("fast", 1.0), Effort("accurate", 1.6)
EFFORTS = {effort.name: effort for effort in (SMOKE, FAST, ACCURATE)}


@dataclass(frozen=True)
class Suits:
    """The method can solve the problem; ``why`` says why it is a good choice."""

    why: str


@dataclass(frozen=True)
class WhyNot:
    """The method cannot solve the problem, for this reason."""

    reason: str


@dataclass(frozen=True)
class Method(ABC):
    """How problems are solved. A new method is one class, and ``@register("name")`` above it."""

    efforts: ClassVar[Mapping[str, Effort]] = EFFORTS
    """The presets of the method."""
    trains: ClassVar[str] = "everything"
    """What is trained, for tables and reports."""

    def suits(self, statement: Statement, precision: str) -> Suits | WhyNot:
        """Whether it can solve this problem; any problem unless stated otherwise."""
        return Suits("it takes any problem")

    @abstractmethod
    def discretise(self, statement: Statement, effort: Effort) -> Discretisation:
        """What it chooses for a problem that it suits."""

    def with_model(self, model: str | ModelSpec) -> Method:
        """The same method for another model, by name or as a specification."""
        name = model if isinstance(model, str) else type(model).__name__
        raise UserError(
            f"The method {self.name} has no choice of model: {name} is for the methods network and "
            "paper. Leave the model, or take --method network."
        )

    @property
    def name(self) -> str:
        """The name under which it is registered, or that of its class."""
        return registered_name(type(self)) or type(self).__name__

    def effort_named(self, preset: str) -> Effort:
        if preset not in self.efforts:
            raise UserError(
                f"The method {self.name} has no preset {preset!r}; it has "
                f"{', '.join(self.efforts)}."
            )
        return self.efforts[preset]


METHODS = Registry("method", Method)
"""Methods by name."""
