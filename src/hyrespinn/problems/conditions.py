"""Initial, boundary and other side conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from ..errors import UserError
from .calls import call
from .fields import Point

Value = float | Callable[[Point], Any]
"""A number, or a function of the point."""


def evaluate(value: Value, point: Point, like: Array) -> Array:
    """The data at these points, with the shape and precision of ``like``."""
    data = call(value, (point,), "p") if callable(value) else value
    if jnp.shape(data) not in ((), like.shape):
        raise UserError(
            f"The data of a condition have shape {jnp.shape(data)}; expected {like.shape}, one number "
            "for each point, or a single number."
        )
    return jnp.broadcast_to(jnp.asarray(data, like.dtype), like.shape)


def is_zero(value: Value) -> bool:
    """Whether the data are the number zero."""
    return not callable(value) and value == 0


@dataclass(frozen=True)
class Condition:
    """``weight`` multiplies the mean square in the loss (``None``: the preset's);
    ``exact`` asks to build the condition into the solution where that is possible
    (``None``: the preset's choice)."""


@dataclass(frozen=True)
class Initial(Condition):
    """``u = value`` at the initial time; with ``derivative="t"`` the same for ``u_t``."""

    value: Value
    field: str | None = None
    derivative: str = ""
    weight: float | None = None


@dataclass(frozen=True)
class Dirichlet(Condition):
    """``u = value`` on a piece of the boundary (all of it for ``None``)."""

    value: Value
    on: str | tuple[str, ...] | None = None
    field: str | None = None
    weight: float | None = None
    exact: bool | None = None


@dataclass(frozen=True)
class Neumann(Condition):
    """``∂u/∂n = value`` with the outward normal, on a piece of the boundary."""

    value: Value
    on: str | tuple[str, ...] | None = None
    field: str | None = None
    weight: float | None = None


@dataclass(frozen=True)
class Boundary(Condition):
    """Any condition on a piece of the boundary: ``residual(*fields, p)`` is to vanish there.

    The point carries the outward normal: a Robin condition is
    ``Boundary(lambda u, p: p.nx * u.x + 2 * u, on="x.max")``.
    """

    residual: Callable[..., Any]
    on: str | tuple[str, ...] | None = None
    name: str = "boundary"
    weight: float | None = None


@dataclass(frozen=True)
class Interface(Condition):
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


@dataclass(frozen=True)
class Periodic(Condition):
    """Periodic along an axis, with all derivatives that the equation reads."""

    axis: str
    weight: float | None = None
    exact: bool | None = None


@dataclass(frozen=True)
class MeanValue(Condition):
    """The mean of a field over the domain; fixes the constant of a pure Neumann problem."""

    value: float
    field: str | None = None
    weight: float | None = None


def embedded(condition: Periodic, exact: bool) -> bool:
    """Whether this periodicity is built into the network's input, given the preset's choice."""
    return exact if condition.exact is None else condition.exact
