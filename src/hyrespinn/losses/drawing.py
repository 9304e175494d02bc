"""Fresh points for all terms of a loss, also where residuals are large."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from ..problems.conditions import Samples, Sampling
from .adaptive import Adaptivity
from .context import Context
from .terms import Term, keys_for
from .windows import Fields

SampleSet = dict[str, Samples]


@dataclass(frozen=True)
class Drawing:
    """Draws points and prepares them: moved into the window, and ``in_order`` of time where causal
    weights need that."""

    terms: Sequence[Term]
    sampling: Sampling
    in_order: bool

    def draw(self, fields: Fields, key: Array, context: Context | None) -> SampleSet:
        return self.draw_batch(fields, key, context, None)

    def draw_batch(
        self, fields: Fields, key: Array, context: Context | None, count: int | None
    ) -> SampleSet:
        return self._prepared(fields, self._few(self._fresh(key), count), context)

    def draw_adaptive(
        self,
        fields: Fields,
        theta: Array,
        key: Array,
        context: Context | None,
        by: Adaptivity,
        count: int | None = None,
    ) -> SampleSet:
        first, second, third = jax.random.split(key, 3)
        if not self.follows(by):
            return self.draw_batch(fields, first, context, count)
        samples = self._fresh(first)
        solution = fields.solution(theta, context)
        parameters = context.parameters if context else None
        for place, term in enumerate(self.terms):
            if not self._moves(place):
                continue
            keys = jax.random.split(jax.random.fold_in(second, place), by.pool)
            drawn = Samples(jnp.concatenate([term.draw(k).points for k in keys]))
            candidates = fields.moved(term, drawn, context)
            vectors = term.residuals(solution, candidates, parameters).values()
            size = jnp.sqrt(sum(v**2 for v in vectors))
            wanted = samples[term.name].points.shape[0]
            density = by.density(size)
            chosen = by.choose(jax.random.fold_in(third, place), density, wanted)
            factors = by.factors(density, wanted)[chosen] if by.even_loss else None
            samples[term.name] = Samples(drawn.points[chosen], factors=factors)
        return self._prepared(fields, self._few(samples, count), context)

    def follows(self, by: Adaptivity) -> bool:
        """Whether points are chosen by residuals; a fixed set of them leaves nothing to choose."""
        return by.pool > 1 and not self.sampling.fixed

    def with_factors(self, samples: SampleSet, by: Adaptivity) -> SampleSet:
        """Points that lie evenly in the form of those that do not."""
        if not (by.even_loss and self.follows(by)):
            return samples
        even = dict(samples)
        for place, term in enumerate(self.terms):
            if self._moves(place):
                points = samples[term.name].points
                even[term.name] = samples[term.name]._replace(factors=jnp.ones_like(points[:, 0]))
        return even

    def _moves(self, place: int) -> bool:
        """Points of the equation, and of what holds at the beginning, which may have a kink."""
        return not place or self.terms[place].is_start

    def _few(self, samples: SampleSet, count: int | None) -> SampleSet:
        """The samples with ``count`` points of the equation; the first of them are as good as any."""
        if count is None or self.sampling.lattice is not None:
            return samples
        interior = self.terms[0].name
        return {**samples, interior: jax.tree.map(lambda a: a[:count], samples[interior])}

    def _fresh(self, key: Array) -> SampleSet:
        keys = keys_for(key, self.terms)
        return {term.name: term.draw(keys[term.name]) for term in self.terms}

    def _prepared(self, fields: Fields, samples: SampleSet, context: Context | None) -> SampleSet:
        if context is not None and context.window is not None:
            samples = {
                term.name: fields.moved(term, samples[term.name], context) for term in self.terms
            }
        if self.in_order:
            interior = self.terms[0].name
            order = jnp.argsort(samples[interior].points[:, 0])
            samples = {**samples, interior: jax.tree.map(lambda a: a[order], samples[interior])}
        return samples
