"""The contract of an optimiser: what it is given of a loss, and what it does with it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import equinox as eqx
import jax
import numpy as np
from jax import Array
from jaxtyping import Float

from ..algebra import Columns, NormalEquations, Triangle
from ..errors import UserError

Product = Callable[[Array], Array]
"""A linear map of vectors."""


class Linearised(NamedTuple):
    """Rows and their Jacobian, or sketches of both."""

    rows: Float[Array, " m"]
    jacobian: Float[Array, "m n"]


class Preconditioner(NamedTuple):
    """``P`` and its transpose."""

    times: Product
    transposed: Product


class Sketch(NamedTuple):
    """Of a Jacobian about so many ``rows``, drawn anew for every ``step``."""

    rows: int
    step: Array


@runtime_checkable
class System(Protocol):
    """All that an optimiser sees of a loss: the squared norm of a vector of rows, on some points.

    ``theta`` is the vector of all parameters.
    """

    def value(self, theta: Array) -> Array:
        """The loss."""

    def value_and_grad(self, theta: Array) -> tuple[Array, Array]:
        """The loss and its gradient."""

    def rows(self, theta: Array) -> Array:
        """The vector whose squared norm is the loss."""

    def pull(self, theta: Array, vector: Array) -> Array:
        """The transposed Jacobian of the rows times a vector."""

    def linearise(self, theta: Array, sketch: Sketch | None = None) -> Linearised:
        """The rows and their Jacobian, all of them or a sketch."""

    def normal_equations(self, theta: Array, columns: Columns | None = None) -> NormalEquations:
        """``JᵀJ`` and ``Jᵀr`` of all rows, or for combinations of the columns."""

    def triangle(self, theta: Array, columns: Columns | None = None) -> Triangle:
        """The same least-squares problem by orthogonal transformations."""

    def draw_columns(self, count: int, theta: Array, step: Array) -> Columns:
        """Random combinations of all columns, others at every step."""

    def check_preconditioner(self, theta: Array) -> None:
        """Say what is missing where there is none."""

    def precondition(self, theta: Array) -> Preconditioner:
        """What makes the columns of the Jacobian nearly orthonormal, where the model offers it."""

    def linear_parameters(self, theta: Array) -> np.ndarray:  # type: ignore[explicit-any]
        """A mark for each parameter that the rows are nearly linear in; all unless the model says."""

    def shapes(self, theta: Array) -> Sequence[tuple[int, ...]]:
        """The shapes of the arrays that the vector of parameters is made of, in its order."""


@runtime_checkable
class OptimiserState(Protocol):
    """What the training reads of any optimiser's state; a pytree of arrays."""

    @property
    def theta(self) -> Array:
        """The parameters."""

    @property
    def value(self) -> Array:
        """Their loss."""

    @property
    def steps(self) -> Array:
        """Steps taken so far."""

    @property
    def failed(self) -> Array:
        """Whether the last step found nothing better."""


# An optimiser meets no states but those of its own making, so that one of a special state is
# an optimiser of states: covariance is sound here, although states are arguments too.
State = TypeVar("State", bound=OptimiserState, covariant=True)


@dataclass(frozen=True)
class Optimiser(ABC, Generic[State]):
    """A sequence of steps on a :class:`System`; a new one is one class.

    All methods are pure functions that are traced and compiled once. Subclasses are frozen
    dataclasses, whose fields are their settings.

    Args:
        steps: The number of steps at most.
    """

    steps: int = 1000

    fresh_points: ClassVar[bool] = False
    """Whether every step has new points, or the points stay for a round of steps."""

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise UserError(f"{type(self).__name__} needs at least one step, not {self.steps}.")

    @property
    def look_every(self) -> int:
        """After how many steps the training looks at the state, and may stop or report."""
        return 50

    @property
    def cut_every(self) -> int:
        """Between two looks, ``advance`` may be called for a multiple of so many steps at a time: what
        comes of them is the same to the last bit."""
        return 1

    @property
    def batch_size(self) -> int | None:
        """How many points there are inside the domain; ``None``: all that were chosen for the problem."""
        return None

    @property
    def rounds(self) -> int | None:
        """After how many rounds a state that ``failed`` has converged; ``None``: never."""
        return None

    @property
    def when_failed(self) -> str:
        """What is said of a state that ``failed``."""
        return "no step lowers the loss any more"

    def round_length(self, taken: int, steps: int) -> int:
        """The steps of the round of points that begins after ``taken`` of ``steps``."""
        return steps - taken

    def check(self, system: System, theta: Array) -> None:
        """Refuse, before anything is trained, what this optimiser cannot train."""
        return

    @abstractmethod
    def init(self, system: System, theta: Array) -> State:
        """The state at ``theta`` in which nothing has been evaluated yet."""

    @abstractmethod
    def step(self, system: System, state: State) -> State:  # type: ignore[misc]
        """One step."""

    def advance(
        self,
        system: System,
        state: State,  # type: ignore[misc]
        unfinished: Callable[[OptimiserState], Array],
    ) -> State:
        """Steps as long as ``unfinished`` says so."""
        return jax.lax.while_loop(unfinished, lambda s: self.step(system, s), state)

    @abstractmethod
    def renew(self, system: System, state: State) -> State:  # type: ignore[misc]
        """The same parameters and what was learnt, on another system: new points or weights."""

    @abstractmethod
    def forget(self, state: State) -> State:  # type: ignore[misc]
        """The same parameters without what was learnt so far: the next steps are careful."""

    def carry(self, system: System, state: State, before: State) -> State:  # type: ignore[misc]
        """``state``, the beginning on another window of time, with what was learnt ``before``."""
        return eqx.tree_at(lambda s: (s.theta, s.steps), before, (state.theta, state.steps))


@dataclass(frozen=True)
class RoundOptimiser(Optimiser[State]):
    """An optimiser whose points stay for a round.

    Args:
        round_steps: The steps of a round of points.
    """

    round_steps: int = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.round_steps < 1:
            raise UserError(f"A round has at least one step; round_steps is {self.round_steps}.")

    def round_length(self, taken: int, steps: int) -> int:
        """The steps of the round that begins after ``taken`` of ``steps``.

        New points raise the loss for a while, so that none come shortly before the end: the last
        round also has the steps that are too few for one of their own.
        """
        length = self.full_round(taken)
        return length if taken + 2 * length <= steps else steps - taken

    def full_round(self, taken: int) -> int:
        """The steps of a round that ends long before the last step."""
        return self.round_steps


@dataclass(frozen=True)
class GrowingRounds(RoundOptimiser[State]):
    """An optimiser whose points stay for a round, and for a longer one later on.

    Args:
        round_growth: Rounds have this share of all steps before, if that is more.
    """

    round_growth: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.round_growth < 0:
            raise UserError(f"round_growth cannot be negative, and is {self.round_growth}.")

    def full_round(self, taken: int) -> int:
        return max(self.round_steps, round(self.round_growth * taken))
