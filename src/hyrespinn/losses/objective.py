"""A problem and a model together: residual vectors, their mean squares, and fresh points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from ..derivatives import MultiIndex
from ..geometry.lattice import Lattice
from ..models.model import Chain, Model
from ..problems.boundary import BoundaryTreatment, Lifted
from ..problems.conditions import Samples, Sampling, SolutionMap
from ..problems.conditions.condition import values_at
from ..problems.problem import Problem
from ..problems.statement import Statement
from .adaptive import Adaptivity
from .balance import Balance
from .blocks import blockwise_value_and_grad
from .causal import Causality
from .context import Context, Window
from .drawing import Drawing, SampleSet
from .terms import Term, Weights, terms_of
from .weighting import Vectors, Weighting
from .windows import Assemble, Fields

__all__ = ["Objective", "SampleSet"]

FIXED, ACAUSAL, LIFTED = Balance(), Causality(), Lifted()


class Objective:
    """``Σ weight · mean(residual²)`` plus the model's own penalty, as a function of one vector.

    Optimisers that need more than the scalar read ``residuals``, the vectors themselves. A
    context carries what changes from time to time: weights, causality, a window of time, parameters
    of the problem; without one, the weights are those of the conditions and time is the whole of the
    domain's.
    """

    def __init__(
        self,
        statement: Statement,
        assemble: Assemble,
        boundary: BoundaryTreatment = LIFTED,
        *,
        sampling: Sampling,
        weights: Weights,
        balance: Balance = FIXED,
        causality: Causality = ACAUSAL,
    ):
        self.statement, self.sampling = statement, sampling
        imposed = boundary.impose(statement)
        self.fields = Fields(statement, imposed.ansatz, assemble)
        self.terms: list[Term] = terms_of(statement, imposed, sampling, weights)
        self.causality = causality if statement.has_time else ACAUSAL
        self.weighting = Weighting(self.terms, balance, self.causality, sampling.dtype)
        self.drawing = Drawing(self.terms, sampling, in_order=bool(self.causality))

    @property
    def problem(self) -> Problem:
        return self.statement.problem

    @property
    def assemble(self) -> Assemble:
        return self.fields.assemble

    @property
    def dtype(self) -> jnp.dtype:
        return self.sampling.dtype

    @property
    def lattice(self) -> Lattice | None:
        return self.sampling.lattice

    # Other networks of the same parameters.

    def upto(self, part: int) -> Objective:
        """The objective of the first ``part`` networks of a model that is trained in turn."""
        return self._of(lambda theta: _chain(self.assemble(theta)).upto(part))

    def _of(self, assemble: Assemble) -> Objective:
        other = copy(self)
        other.fields = replace(self.fields, assemble=assemble)
        return other

    # Contexts and solutions.

    def context(self, window: Window | None = None) -> Context:
        """The context at the beginning of a training."""
        weights = self.weighting.first(window, self.statement.domain.bounds[0])
        numbers = self.problem.numbers()
        parameters = {
            name: jnp.asarray(numbers[name], self.dtype)
            for name in self.statement.traced_parameters
        }
        return Context(weights, jnp.asarray(0), window=window, parameters=parameters)

    def solution(self, theta: Array, context: Context | None = None) -> SolutionMap:
        """The fields as a function of coordinates, for these parameters."""
        return self.fields.solution(theta, context)

    def start_value(self, field: str, samples: Samples, context: Context) -> Array:
        """A field at points of the beginning; zero where no condition says what it is."""
        for term in self.terms:
            if term.is_start and term.start().field == field and not term.start().derivative:
                return self.fields.begin(term, samples, context)
        return jnp.zeros_like(samples.points[:, 0])

    def lattice_values(self, solution: SolutionMap, samples: SampleSet) -> dict[MultiIndex, Array]:
        """The derivatives that the equation reads, ``(points, fields)``, on the points' lattice."""
        assert self.lattice is not None
        points = samples[self.terms[0].name].points
        return values_at(solution, points, self.statement.requested, self.lattice.shape)

    # Points.

    def draw(self, key: Array, context: Context | None = None) -> SampleSet:
        """Fresh points for every term."""
        return self.drawing.draw(self.fields, key, context)

    def draw_batch(
        self, key: Array, context: Context | None = None, count: int | None = None
    ) -> SampleSet:
        """Fresh points, ``count`` of them in the interior."""
        return self.drawing.draw_batch(self.fields, key, context, count)

    def with_factors(self, samples: SampleSet, by: Adaptivity) -> SampleSet:
        """Points of ``draw_batch`` in the form of those of ``draw_adaptive``."""
        return self.drawing.with_factors(samples, by)

    def draw_adaptive(
        self,
        theta: Array,
        key: Array,
        context: Context | None = None,
        *,
        by: Adaptivity,
        count: int | None = None,
    ) -> SampleSet:
        """Points drawn where the residual is large, for the equation and the initial conditions.

        The latter may have a kink that evenly spread points hardly see. The other terms get fresh
        points; a sampler with a fixed set of points (Poisson disk) leaves nothing to choose. ``count``
        is the number of points of the equation, if not all.
        """
        return self.drawing.draw_adaptive(self.fields, theta, key, context, by, count)

    def into_window(self, points: Array, window: Window | None) -> Array:
        """Points of the domain with their time moved into the window."""
        return self.fields.into_window(points, window)

    # Residuals.

    def residuals(
        self, theta: Array, samples: SampleSet, context: Context | None = None
    ) -> Vectors:
        """Every residual vector by name."""
        return self._vectors(theta, samples, context, self.terms)

    def _vectors(
        self, theta: Array, samples: SampleSet, context: Context | None, terms: Sequence[Term]
    ) -> Vectors:
        solution = self.solution(theta, context)
        parameters = context.parameters if context else None
        vectors: Vectors = {}
        for term in terms:
            vectors |= term.residuals(solution, samples[term.name], parameters)
        return vectors

    def chunk_weights(self, vectors: Vectors, context: Context) -> Array:
        """The causal weights of the chunks of time."""
        return self.weighting.chunk_weights(vectors, context)

    def counted(self, vectors: Vectors, context: Context) -> Vectors:
        """The vectors as the loss counts them: with their causal weights."""
        return self.weighting.counted(vectors, context)

    # The loss.

    def losses(
        self,
        theta: Float[Array, " n"],
        samples: SampleSet,
        context: Context | None = None,
    ) -> dict[str, Float[Array, ""]]:
        """The mean squares by name, without weights, the penalty, and the weighted ``total``."""
        return self._losses(theta, samples, context or self.context(), self.terms)

    def _losses(
        self, theta: Array, samples: SampleSet, context: Context, terms: Sequence[Term]
    ) -> dict[str, Array]:
        """The losses of some of the terms, and the penalty."""
        return self._summed(theta, self._vectors(theta, samples, context, terms), context)

    def _summed(self, theta: Array, vectors: Vectors, context: Context) -> dict[str, Array]:
        parts = {name: jnp.mean(vector**2) for name, vector in vectors.items()}
        total = self.weighting.total(self.counted(vectors, context), context)
        penalty = self.penalty(theta)
        if penalty is not None:
            parts["penalty"] = penalty
            total = total + penalty
        return {"total": total, **parts}

    def penalty(self, theta: Array) -> Array | None:
        """The model's own penalty, where it has one."""
        return self.assemble(theta).penalty()

    def value(
        self, theta: Float[Array, " n"], samples: SampleSet, context: Context | None = None
    ) -> Float[Array, ""]:
        return self.losses(theta, samples, context)["total"]

    def value_and_grad(
        self, samples: SampleSet, context: Context | None = None
    ) -> Callable[[Array], tuple[Array, Array]]:
        """The loss and its gradient, the interior block by block where blocks are independent."""
        chosen = context or self.context()
        # A point's causal weight depends on all points before it; a lattice is dealt with as a whole.
        if self.causality or self.lattice is not None:
            return lambda theta: jax.value_and_grad(self.value)(theta, samples, chosen)
        interior, *others = self.terms

        def inside(theta: Array, block: Samples) -> Array:
            vectors = self._vectors(theta, {interior.name: block}, chosen, [interior])
            return self.weighting.total(vectors, chosen)

        def around(theta: Array) -> Array:
            return self._losses(theta, samples, chosen, others)["total"]

        within = blockwise_value_and_grad(inside, samples[interior.name])

        def both(theta: Array) -> tuple[Array, Array]:
            value, gradient = within(theta)
            more, slope = jax.value_and_grad(around)(theta)
            return value + more, gradient + slope

        return both

    # What follows the training.

    def rebalanced(self, theta: Array, samples: SampleSet, context: Context, key: Array) -> Context:
        """The context with weights and causal tolerance brought up to date."""

        def vectors(theta: Array) -> Vectors:
            return self.residuals(theta, samples, context)

        return self.weighting.rebalanced(vectors, theta, context, key)

    def frozen(self, theta: Array, samples: SampleSet, context: Context) -> Context:
        """The context with the causal weights of this moment, to stay for a round."""
        if not self.causality:
            return context
        following = context._replace(causal=None)
        vectors = self.residuals(theta, samples, following)
        return context._replace(causal=self.chunk_weights(vectors, following))

    def report(
        self, theta: Array, samples: SampleSet, context: Context
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """The losses, and what else is worth a column of the history."""
        vectors = self.residuals(theta, samples, context)
        return self._summed(theta, vectors, context), self.weighting.columns(vectors, context)


def _chain(model: Model) -> Chain:
    if not isinstance(model, Chain):
        raise TypeError(f"{type(model).__name__} is no chain of networks that is trained in turn")
    return model
