"""What every condition can do. A new kind is one class, wherever it is written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol, TypeAlias, TypeVar, runtime_checkable

import jax.numpy as jnp
from jax import Array

from ...derivatives import MultiIndex, Taylor, closure, coordinates, parse
from ...errors import UserError
from ..calls import call
from ..equation import Equation
from ..fields import Point
from .places import Place, Samples

Value: TypeAlias = float | Array | Callable[[Point], Array | float]
"""A number, which may be traced, or a function of the point."""
S = TypeVar("S", Array, Taylor)


@runtime_checkable
class SolutionMap(Protocol):
    """A solution: coordinates, as an array or a Taylor series, to fields ``(points, fields)``."""

    def __call__(self, x: S, /) -> S: ...


ODD, EVEN = -1, 1


class Condition(ABC):
    """A side condition: where it holds, and what is to vanish there.

    ``weight`` multiplies the mean square in the loss (``None``: the loss's own choice); ``exact``
    asks to build the condition into the solution, or not to, where that is possible (``None``: the
    choice of the boundary treatment).

    A kind of one's own says ``place`` and ``residuals``; the rest has defaults. This one gives the
    value of a field at one point:

    >>> import hyrespinn as hp
    >>> from dataclasses import dataclass
    >>> from hyrespinn.problems.statement import state
    >>> @dataclass(frozen=True)
    ... class Pinned(hp.Condition):
    ...     point: tuple[float, ...]
    ...     value: float
    ...     def place(self, equation):
    ...         return hp.places.FixedPoints([self.point])
    ...     def residuals(self, equation, solution, at):
    ...         return solution(at.points)[:, 0] - self.value
    >>> Pinned((0.5, 0.5), 1.0).label(state(hp.problems.Heat1D()))
    'pinned'
    """

    weight: float | None = None
    exact: bool | None = None

    # What a kind of one's own must say.

    @abstractmethod
    def place(self, equation: Equation) -> Place:
        """Where its points are."""

    @abstractmethod
    def residuals(
        self, equation: Equation, solution: SolutionMap, at: Samples
    ) -> Array | Mapping[str, Array]:
        """What is to vanish: one vector, or several by name."""

    # What it may say.

    def check(self, equation: Equation) -> None:
        """Raise a :class:`UserError` where the condition does not fit the equation."""
        return

    def label(self, equation: Equation) -> str:
        """The name of its column in the history of a training."""
        return type(self).__name__.lower()

    def order(self, equation: Equation) -> int | None:
        """The most derivatives by space in it, by which it is weighed; ``None``: one below the
        equation's."""
        return None

    # What it is able to, for those who treat some conditions in ways of their own.

    def start(self, equation: Equation) -> Start | None:
        """The initial value that it gives, where it does nothing but that."""
        return None

    def wall(self, equation: Equation) -> Wall | None:
        """The value or slope that it gives on the boundary, where it does nothing but that."""
        return None

    def seam(self) -> str | None:
        """The axis that it makes periodic."""
        return None


@dataclass(frozen=True)
class Start:
    """``∂^index field = value`` at the initial time; ``derivative`` is the name of ∂^index."""

    equation: Equation
    field: str
    derivative: str
    value: Value

    @property
    def index(self) -> MultiIndex:
        names = self.equation.domain.coordinates
        return parse(self.derivative, names) if self.derivative else (0,) * len(names)

    def given(self, at: Samples) -> Array:
        """The data at points."""
        return evaluate(self.value, self.equation.point(at.points), at.points[:, 0])

    def observe(self, solution: SolutionMap, at: Samples, grid: tuple[int, ...] = ()) -> Array:
        """What the condition is about, in a solution."""
        column = self.equation.fields.index(self.field)
        return values_at(solution, at.points, [self.index], grid)[self.index][:, column]

    def residual(self, solution: SolutionMap, at: Samples, grid: tuple[int, ...] = ()) -> Array:
        """By how much a solution misses the data, or those that come with the points."""
        data = self.given(at) if at.data is None else at.data
        return self.observe(solution, at, grid) - data


@dataclass(frozen=True)
class Wall:
    """The value of a field on pieces of the boundary, or its outward slope (``normal_order`` 1)."""

    field: str
    pieces: tuple[str, ...]
    normal_order: int
    value: Value

    @property
    def homogeneous(self) -> bool:
        return is_zero(self.value)

    @property
    def parity(self) -> int:
        """With which parity a solution goes on behind the wall, if the data are zero."""
        return EVEN if self.normal_order else ODD


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
    """Whether the data are the number zero, and not a value that may change."""
    return isinstance(value, (int, float)) and value == 0


def values_at(
    solution: SolutionMap,
    points: Array,
    indices: Sequence[MultiIndex],
    grid: tuple[int, ...] = (),
) -> dict[MultiIndex, Array]:
    """Derivatives ``(points, fields)``; those of all points of a grid together, as on a grid."""
    count, dimension = points.shape
    if grid and prod(grid) == count:
        points = points.reshape(*grid, dimension)
    series = solution(coordinates(points, closure(indices, dimension)))
    return {index: series[index].reshape(count, -1) for index in indices}
