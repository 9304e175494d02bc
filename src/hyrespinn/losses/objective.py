"""A problem and a model together: residual vectors, their mean squares, and fresh points."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from ..derivatives import MultiIndex
from ..geometry.lattice import Lattice
from ..geometry.sampling import PoissonDisk
from ..models.model import Chain, Model
from ..models.window import InWindow
from ..problems.ansatz import build_ansatz
from ..problems.conditions import Initial, Periodic, embedded
from ..problems.problem import Anatomy, Problem, field_of
from .adaptive import Adaptivity
from .balance import Balance
from .blocks import blockwise_value_and_grad
from .causal import Causality
from .context import Context, Window
from .terms import Counts, Samples, Series, Term, TermBuilder, Weights, keys_for, values_at

SampleSet = dict[str, Samples]
FIXED, ACAUSAL = Balance(), Causality()


class Objective:
    """``Σ weight · mean(residual²)`` plus the model's own penalty, as a function of one vector.

    Optimisers that need more than the scalar read ``residuals``, the vectors themselves. A
    context carries what changes from time to time: weights, causality, a window of time; without
    one, the weights are those of the conditions and time is the whole of the domain's.
    """

    def __init__(
        self,
        problem: Problem,
        anatomy: Anatomy,
        assemble: Callable[[Array], Model],
        *,
        counts: Counts,
        weights: Weights,
        sampler: Any,
        dtype: Any,
        exact: bool = True,
        balance: Balance = FIXED,
        causality: Causality = ACAUSAL,
        lattice: Lattice | None = None,
        mirror: bool = False,
    ):
        self.problem = problem
        self.anatomy = anatomy
        self.assemble = assemble
        self.dtype = dtype
        self.ansatz, left = build_ansatz(problem, exact, mirror)
        builder = TermBuilder(problem, anatomy, counts, weights, sampler, dtype, lattice)
        self.terms: list[Term] = [builder.interior()]
        for condition in left:
            if isinstance(condition, Periodic) and embedded(condition, exact):
                continue
            self.terms.append(builder.condition(condition, self._name(condition)))
        self.lattice = lattice
        self.fixed = isinstance(sampler, PoissonDisk) or lattice is not None
        self.balancing = balance
        self.causality = causality if problem.domain.has_time else ACAUSAL

    def _name(self, condition: Any) -> str:
        """A column name that says what the term is: ``initial``, ``dirichlet_v``, ``neumann#2``."""
        base = type(condition).__name__.lower()
        if getattr(condition, "name", None):
            base = condition.name
        elif len(self.problem.fields) > 1 and hasattr(condition, "field"):
            base += f"_{field_of(self.problem, condition)}"
        elif isinstance(condition, Periodic):
            base += f"_{condition.axis}"
        if isinstance(condition, Initial) and condition.derivative:
            base += f"_{condition.derivative}"
        taken = {term.name for term in self.terms} | {*self.anatomy.residual_names}
        taken |= {"residual", "penalty", "total"}
        candidates = [base, *(f"{base}#{i}" for i in range(2, len(taken) + 3))]
        return next(name for name in candidates if name not in taken)

    def upto(self, part: int) -> Objective:
        """The objective of the first ``part`` networks of a model that is trained in turn."""
        other = copy(self)
        other.assemble = lambda theta: _chain(self.assemble(theta)).upto(part)
        return other

    def context(self, window: Window | None = None) -> Context:
        """The context at the beginning of a training.

        A window takes its own length as the unit of time, as its network does: in a shorter one the
        same residual, or the same speed at its beginning, does less to the solution until it ends.
        Weights that are balanced find their own proportions.
        """
        unit: Any = 1.0
        if window is not None and not self.balancing:
            begin, end = self.problem.domain.bounds[0]
            unit = window.length / (end - begin)
        weights = {
            name: jnp.asarray(unit ** (2 * term.time_order) * term.weight, self.dtype)
            for term in self.terms
            for name in term.names
        }
        return Context(weights, jnp.asarray(0), window=window)

    def solution(self, theta: Array, context: Context | None = None) -> Series:
        """The fields as a function of coordinates, for these parameters."""
        window = context.window if context else None
        if window is None:
            return partial(self.ansatz, self.assemble(theta))
        return self._inside(theta, window.start, window.length)

    def _inside(self, theta: Array, start: Array, length: Array) -> Series:
        time = self.problem.domain.bounds[0]
        return partial(self.ansatz, InWindow(self.assemble(theta), start, length, time))

    def draw(self, key: Array, context: Context | None = None) -> SampleSet:
        """Fresh points for every term."""
        return self._prepared(self._draw(key), context)

    def _draw(self, key: Array) -> SampleSet:
        keys = keys_for(key, self.terms)
        return {term.name: term.draw(keys[term.name]) for term in self.terms}

    def draw_batch(
        self, key: Array, context: Context | None = None, count: int | None = None
    ) -> SampleSet:
        """Fresh points for one step of a stochastic optimiser: ``count`` of them in the interior."""
        samples = self._draw(key)
        interior = samples["interior"].points
        if count is not None and count < interior.shape[0] and self.lattice is None:
            samples["interior"] = Samples(interior[:count])
        return self._prepared(samples, context)

    def _prepared(self, samples: SampleSet, context: Context | None) -> SampleSet:
        """The points moved into the window, and in the order of time where causality needs it."""
        window = context.window if context else None
        if window is not None:
            samples = {
                term.name: self._moved(term, samples[term.name], window) for term in self.terms
            }
        if self.causality:
            points = samples["interior"].points
            samples = {**samples, "interior": Samples(points[jnp.argsort(points[:, 0])])}
        return samples

    def into_window(self, points: Array, window: Window | None) -> Array:
        """Points of the domain with their time moved into the window."""
        if window is None:
            return points
        begin, end = self.problem.domain.bounds[0]
        share = (points[:, 0] - begin) / (end - begin)
        return points.at[:, 0].set(window.start + share * window.length)

    def _moved(self, term: Term, samples: Samples, window: Window | None) -> Samples:
        moved = samples._replace(points=self.into_window(samples.points, window))
        return (
            moved if term.observe is None else moved._replace(data=self._begin(term, moved, window))
        )

    def _begin(self, term: Term, samples: Samples, window: Window | None) -> Array:
        """What a condition at the beginning of the window asks for."""
        assert term.observe is not None
        assert term.given is not None
        given = term.given(samples)
        if window is None:
            return given
        last = self._inside(window.before, window.before_start, window.before_length)
        return jnp.where(window.is_first, given, term.observe(last, samples))

    def start_value(self, field: str, samples: Samples, context: Context) -> Array:
        """A field at points of the beginning; zero where no condition says what it is."""
        for term in self.terms:
            if term.start_of == field:
                return self._begin(term, samples, context.window)
        return jnp.zeros_like(samples.points[:, 0])

    def lattice_values(self, solution: Series, samples: SampleSet) -> dict[MultiIndex, Array]:
        """The derivatives that the equation reads, ``(points, fields)``, on the points' lattice."""
        assert self.lattice is not None
        points = samples[self.terms[0].name].points
        return values_at(solution, points, self.anatomy.requested, self.lattice.shape)

    def residuals(
        self, theta: Array, samples: SampleSet, context: Context | None = None
    ) -> dict[str, Array]:
        """Every residual vector by name."""
        return self._vectors(theta, samples, context, self.terms)

    def _vectors(
        self, theta: Array, samples: SampleSet, context: Context | None, terms: list[Term]
    ) -> dict[str, Array]:
        solution = self.solution(theta, context)
        vectors: dict[str, Array] = {}
        for term in terms:
            vectors |= term.residuals(solution, samples[term.name])
        return vectors

    def chunk_weights(self, vectors: dict[str, Array], context: Context) -> Array:
        """The causal weights of the chunks of time."""
        if context.causal is not None:
            return context.causal
        means = {name: self.causality.means(vectors[name]) for name in self.terms[0].names}
        return self.causality.weights(means, context.level)

    def counted(self, vectors: dict[str, Array], context: Context) -> dict[str, Array]:
        """The vectors as the loss counts them: with their causal weights."""
        if not self.causality:
            return vectors
        chunks = self.chunk_weights(vectors, context)
        early = {n: self.causality.scaled(vectors[n], chunks) for n in self.terms[0].names}
        return {**vectors, **early}

    def losses(
        self,
        theta: Float[Array, " n"],
        samples: SampleSet,
        context: Context | None = None,
    ) -> dict[str, Float[Array, ""]]:
        """The mean squares by name, without weights, the penalty, and the weighted ``total``."""
        return self._losses(theta, samples, context or self.context(), self.terms)

    def _losses(
        self, theta: Array, samples: SampleSet, context: Context, terms: list[Term]
    ) -> dict[str, Array]:
        """The losses of some of the terms, and the penalty."""
        return self._summed(theta, self._vectors(theta, samples, context, terms), context)

    def _summed(
        self, theta: Array, vectors: dict[str, Array], context: Context
    ) -> dict[str, Array]:
        parts = {name: jnp.mean(vector**2) for name, vector in vectors.items()}
        total = self._weighted(self.counted(vectors, context), context)
        penalty = self.assemble(theta).penalty()
        if penalty is not None:
            parts["penalty"] = penalty
            total = total + penalty
        return {"total": total, **parts}

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

        def inside(theta: Array, block: Array) -> Array:
            vectors = self._vectors(theta, {interior.name: Samples(block)}, chosen, [interior])
            return self._weighted(vectors, chosen)

        def around(theta: Array) -> Array:
            return self._losses(theta, samples, chosen, others)["total"]

        within = blockwise_value_and_grad(inside, samples[interior.name].points)

        def both(theta: Array) -> tuple[Array, Array]:
            value, gradient = within(theta)
            more, slope = jax.value_and_grad(around)(theta)
            return value + more, gradient + slope

        return both

    def _weighted(self, vectors: dict[str, Array], context: Context) -> Array:
        total = jnp.zeros((), self.dtype)
        for name, vector in vectors.items():
            total = total + context.weights[name] * jnp.mean(vector**2)
        return total

    def rebalanced(self, theta: Array, samples: SampleSet, context: Context, key: Array) -> Context:
        """The context with weights and causal tolerance brought up to date."""
        level = context.level
        if self.causality:
            chunks = self.chunk_weights(self.residuals(theta, samples, context), context)
            level = self.causality.next_level(chunks, level)
        if not self.balancing:
            return context._replace(level=level)

        def vectors(theta: Array) -> dict[str, Array]:
            return self.counted(self.residuals(theta, samples, context), context)

        weights = self.balancing.update(context.weights, vectors, theta, key)
        return context._replace(weights=weights, level=level)

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
        """The losses, and what else is worth a column of the history.

        That is: the weights that change, and the smallest causal one.
        """
        vectors = self.residuals(theta, samples, context)
        columns: dict[str, Array] = {}
        if self.balancing:
            columns |= {f"weight_{name}": weight for name, weight in context.weights.items()}
        if self.causality:
            columns["causal"] = jnp.min(self.chunk_weights(vectors, context))
        return self._summed(theta, vectors, context), columns

    def draw_adaptive(
        self, theta: Array, key: Array, context: Context | None = None, *, by: Adaptivity
    ) -> SampleSet:
        """Points drawn where the residual is large, for the equation and the initial conditions.

        The latter may have a kink that evenly spread points hardly see. The other terms get fresh
        points; a sampler with a fixed set of points (Poisson disk) leaves nothing to choose.
        """
        first, second, third = jax.random.split(key, 3)
        if by.pool <= 1 or self.fixed:
            return self.draw(first, context)
        samples = self._draw(first)
        solution = self.solution(theta, context)
        window = context.window if context else None
        for place, term in enumerate(self.terms):
            if place and term.observe is None:
                continue
            keys = jax.random.split(jax.random.fold_in(second, place), by.pool)
            drawn = Samples(jnp.concatenate([term.draw(k).points for k in keys]))
            candidates = self._moved(term, drawn, window)
            vectors = term.residuals(solution, candidates).values()
            size = jnp.sqrt(sum(v**2 for v in vectors))
            count = samples[term.name].points.shape[0]
            chosen = by.choose(jax.random.fold_in(third, place), size, count)
            samples[term.name] = Samples(drawn.points[chosen])
        return self._prepared(samples, context)


def _chain(model: Model) -> Chain:
    if not isinstance(model, Chain):
        raise TypeError(f"{type(model).__name__} is no chain of networks that is trained in turn")
    return model
