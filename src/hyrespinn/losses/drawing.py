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
        if by.pool <= 1 or self.sampling.fixed:
            return self.draw_batch(fields, first, context, count)
        samples = self._fresh(first)
        solution = fields.solution(theta, context)
        parameters = context.parameters if context else None
        for place, term in enumerate(self.terms):
            if place and not term.is_start:
                continue
            keys = jax.random.split(jax.random.fold_in(second, place), by.pool)
            drawn = Samples(jnp.concatenate([term.draw(k).points for k in keys]))
            candidates = fields.moved(term, drawn, context)
            vectors = term.residuals(solution, candidates, parameters).values()
            size = jnp.sqrt(sum(v**2 for v in vectors))
            wanted = samples[term.name].points.shape[0]
            chosen = by.choose(jax.random.fold_in(third, place), size, wanted)
            samples[term.name] = Samples(drawn.points[chosen])
        return self._prepared(fields, self._few(samples, count), context)

    def _few(self, samples: SampleSet, count: int | None) -> SampleSet:
        """The samples with ``count`` points of the equation; the first of them are as good as any."""
        if count is None or self.sampling.lattice is not None:
            return samples
        interior = self.terms[0].name
        return {**samples, interior: Samples(samples[interior].points[:count])}

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
            points = samples[interior].points
            samples = {**samples, interior: Samples(points[jnp.argsort(points[:, 0])])}
        return samples
