"""Which method for which problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..discretise import Discretisation
from ..errors import UserError, unknown
from ..models import ModelSpec
from ..problems.statement import Statement
from .collocation import Collocation
from .method import METHODS, Effort, Method, WhyNot
from .network import Network

GIVEN = "given"
"""The name for a discretisation that was given as an object."""


@dataclass(frozen=True)
class Choice:
    """What was chosen for a problem, why, and why other methods were not: ``rejected`` by name."""

    method: str
    discretisation: Discretisation
    why: str
    rejected: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Reasoned:
    method: Method
    why: str
    rejected: Mapping[str, str] = field(default_factory=dict)


def choose(
    method: str | Method | Discretisation,
    statement: Statement,
    *,
    preset: str = "fast",
    model: str | ModelSpec | None = None,
    precision: str = "float64",
) -> Choice:
    """What a method chooses for a problem; ``auto`` looks at the problem.

    Args:
        method: The name of a method, ``auto``, or a method or a discretisation as an object.
        preset: The effort, one of those that the method has.
        model: A model by name or as a specification, for methods that have a choice.

    >>> import hyrespinn as hp
    >>> choice = choose("auto", hp.problems.state(hp.problems.Poisson2D()))
    >>> choice.method, choice.why
    ('collocation', 'a steady equation, for scattered kernels and Gauss–Newton')
    """
    if isinstance(method, Discretisation):
        if model is not None:
            raise UserError("A discretisation has its model already; leave model=.")
        return Choice(GIVEN, method, "it was given")
    found = _reasoned(method, model, statement, precision)
    effort: Effort = found.method.effort_named(preset)
    discretisation = found.method.discretise(statement, effort)
    return Choice(found.method.name, discretisation, found.why, found.rejected)


def _reasoned(
    method: str | Method, model: str | ModelSpec | None, statement: Statement, precision: str
) -> _Reasoned:
    if method == "auto":
        return _automatic(model, statement, precision)
    if isinstance(method, str):
        if method not in METHODS:
            raise unknown("method", method, ("auto", *METHODS))
        method = METHODS[method]()
    if model is not None:
        method = method.with_model(model)
    found = method.suits(statement, precision)
    if isinstance(found, WhyNot):
        raise UserError(
            f"The method {method.name} does not suit {statement.problem.name}: {found.reason}. Take "
            "--method auto or network."
        )
    return _Reasoned(method, "it was asked for")


def _automatic(model: str | ModelSpec | None, statement: Statement, precision: str) -> _Reasoned:
    """Collocation where it suits, which is far quicker; a network otherwise, and for any model that
    is asked for."""
    if model is not None:
        name = model if isinstance(model, str) else type(model).__name__
        return _Reasoned(
            Network().with_model(model),
            f"the model {name} was asked for",
            {"collocation": "it has no choice of model"},
        )
    found = Collocation().suits(statement, precision)
    if isinstance(found, WhyNot):
        return _Reasoned(Network(), "it takes any problem", {"collocation": found.reason})
    return _Reasoned(
        Collocation(), found.why, {"network": "slower and less accurate where collocation suits"}
    )
