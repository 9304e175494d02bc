"""Points and solutions in a window of time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import cast

import jax.numpy as jnp
from jax import Array

from ..models.model import Model
from ..models.window import InWindow
from ..problems.boundary import Ansatz
from ..problems.conditions import Samples, SolutionMap
from ..problems.statement import Statement
from .context import Context, Window
from .terms import Term

Assemble = Callable[[Array], Model]
"""A vector of parameters to the network that has them."""


@dataclass(frozen=True)
class Fields:
    """The fields of a solution, in all of time or in a window of it."""

    statement: Statement
    ansatz: Ansatz
    assemble: Assemble

    def solution(self, theta: Array, context: Context | None) -> SolutionMap:
        """The fields as a function of coordinates, for these parameters."""
        window = context.window if context else None
        if window is None:
            return cast(SolutionMap, partial(self._ansatz(context), self.assemble(theta)))
        return self._inside(theta, window.start, window.length, context)

    def _ansatz(self, context: Context | None) -> Ansatz:
        if context is None or not context.parameters:
            return self.ansatz
        return self.ansatz.given(self.statement.posed(context.parameters).conditions)

    def _inside(
        self, theta: Array, start: Array, length: Array, context: Context | None
    ) -> SolutionMap:
        time = self.statement.domain.bounds[0]
        network = InWindow(self.assemble(theta), start, length, time)
        return cast(SolutionMap, partial(self._ansatz(context), network))

    def into_window(self, points: Array, window: Window | None) -> Array:
        """Points of the domain with their time moved into the window."""
        if window is None:
            return points
        begin, end = self.statement.domain.bounds[0]
        share = (points[:, 0] - begin) / (end - begin)
        return points.at[:, 0].set(window.start + share * window.length)

    def moved(self, term: Term, samples: Samples, context: Context | None) -> Samples:
        """The points of a term moved into the window, with what its beginning asks for."""
        window = context.window if context else None
        moved = samples._replace(points=self.into_window(samples.points, window))
        return moved._replace(data=self.begin(term, moved, context)) if term.is_start else moved

    def begin(self, term: Term, samples: Samples, context: Context | None) -> Array:
        """What a condition at the beginning of the window asks for."""
        window = context.window if context else None
        start = term.start(context.parameters if context else None)
        given = start.given(samples)
        if window is None:
            return given
        last = self._inside(window.before, window.before_start, window.before_length, context)
        return jnp.where(window.is_first, given, start.observe(last, samples, term.grid))
