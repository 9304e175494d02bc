"""A problem and a model together: residual vectors, their mean squares, and fresh points."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from ..geometry.sampling import PoissonDisk
from ..problems.ansatz import build_ansatz
from ..problems.conditions import Initial, Periodic, embedded
from ..problems.problem import Anatomy, Problem, field_of
from .terms import Counts, Samples, Series, Term, TermBuilder, Weights, keys_for

SampleSet = dict[str, Samples]


class Objective:
    """``Σ weight · mean(residual²)`` plus the model's own penalty, as a function of one vector.

    Optimisers that need more than the scalar read ``residuals``, the vectors themselves.
    """

    def __init__(
        self,
        problem: Problem,
        anatomy: Anatomy,
        assemble: Callable[[Array], Any],
        *,
        counts: Counts,
        batch: int | None = None,
        weights: Weights,
        sampler: Any,
        dtype: Any,
        exact: bool = True,
    ):
        self.problem = problem
        self.anatomy = anatomy
        self.assemble = assemble
        self.dtype = dtype
        self.ansatz, left = build_ansatz(problem, exact)
        builder = TermBuilder(problem, anatomy, counts, weights, sampler, dtype)
        self.terms: list[Term] = [builder.interior()]
        for condition in left:
            if isinstance(condition, Periodic) and embedded(condition, exact):
                continue
            self.terms.append(builder.condition(condition, self._name(condition)))
        self.batch = batch or counts.interior
        self.fixed = isinstance(sampler, PoissonDisk)

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

    def solution(self, theta: Array) -> Series:
        """The fields as a function of coordinates, for these parameters."""
        return partial(self.ansatz, self.assemble(theta))

    def draw(self, key: Array) -> SampleSet:
        """Fresh points for every term."""
        keys = keys_for(key, self.terms)
        return {term.name: term.draw(keys[term.name]) for term in self.terms}

    def draw_batch(self, key: Array) -> SampleSet:
        """Fresh points for one step of a stochastic optimiser: ``batch`` of them in the interior."""
        samples = self.draw(key)
        interior = samples["interior"].points
        if self.batch >= interior.shape[0]:
            return samples
        return {**samples, "interior": Samples(interior[: self.batch])}

    def residuals(self, theta: Array, samples: SampleSet) -> dict[str, Array]:
        """Every residual vector by name."""
        solution = self.solution(theta)
        vectors: dict[str, Array] = {}
        for term in self.terms:
            vectors |= term.residuals(solution, samples[term.name])
        return vectors

    def losses(self, theta: Float[Array, " n"], samples: SampleSet) -> dict[str, Float[Array, ""]]:
        """The mean squares by name, without weights, the penalty, and the weighted ``total``."""
        model = self.assemble(theta)
        solution = partial(self.ansatz, model)
        parts: dict[str, Array] = {}
        total = jnp.zeros((), theta.dtype)
        for term in self.terms:
            for name, vector in term.residuals(solution, samples[term.name]).items():
                parts[name] = jnp.mean(vector**2)
                total = total + term.weight * parts[name]
        penalty = getattr(model, "penalty", None)
        if penalty is not None:
            parts["penalty"] = penalty()
            total = total + parts["penalty"]
        return {"total": total, **parts}

    def value(self, theta: Float[Array, " n"], samples: SampleSet) -> Float[Array, ""]:
        return self.losses(theta, samples)["total"]

    def value_and_grad(self, samples: SampleSet) -> Callable[[Array], tuple[Array, Array]]:
        return lambda theta: jax.value_and_grad(self.value)(theta, samples)

    def draw_adaptive(
        self, theta: Array, key: Array, *, pool: int, power: float, floor: float
    ) -> SampleSet:
        """Points drawn where the residual is large (residual-adaptive distribution).

        From a pool ``pool`` times larger, points are chosen without replacement with
        probabilities ``|r|^power / mean + floor``; the other terms get fresh points. A sampler
        with a fixed set of points (Poisson disk) leaves nothing to choose.
        """
        first, second, third = jax.random.split(key, 3)
        samples = self.draw(first)
        if pool <= 1 or self.fixed:
            return samples
        interior = self.terms[0]
        candidates = jnp.concatenate(
            [interior.draw(jax.random.fold_in(second, i)).points for i in range(pool)]
        )
        vectors = interior.residuals(self.solution(theta), Samples(candidates)).values()
        size = jnp.sqrt(sum(v**2 for v in vectors))
        density = size**power
        # Where the residual is not finite, the floor alone decides.
        density = jnp.where(jnp.isfinite(density), density, 0)
        density = density / jnp.maximum(jnp.mean(density), jnp.finfo(density.dtype).tiny) + floor
        # Gumbel noise and the largest k: sampling without replacement.
        score = jnp.log(density) + jax.random.gumbel(third, density.shape, density.dtype)
        chosen = jax.lax.top_k(score, samples[interior.name].points.shape[0])[1]
        return {**samples, interior.name: Samples(candidates[chosen])}
