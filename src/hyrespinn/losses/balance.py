"""Weights of the terms of a loss that follow the training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from ..errors import UserError

Vectors = Callable[[Array], dict[str, Array]]
"""The residual vectors as a function of the parameters."""

LARGEST = 1e5  # a weight relative to the mean: a term that is solved must not drown the others
PROBES = 16


@dataclass(frozen=True)
class Balance:
    """How weights follow the training: ``λ ← m λ + (1 − m) λ̂`` with momentum ``m``.

    ``gradient-norm``: ``λ̂_i = mean_j ‖∇L_j‖ / ‖∇L_i‖``, so that all terms pull equally hard.
    ``ntk``: ``λ̂_i = mean_j κ_j / κ_i`` with ``κ_i`` the mean diagonal of the term's neural
    tangent kernel, so that all terms converge at one rate (both as in Wang et al.'s expert's
    guide, up to a factor that all weights share).
    """

    scheme: Literal["fixed", "gradient-norm", "ntk"] = "fixed"
    momentum: float = 0.9

    def __post_init__(self) -> None:
        if not 0 <= self.momentum < 1:
            raise UserError(
                f"The momentum of balanced weights is at least 0 and below 1, not {self.momentum}."
            )

    def __bool__(self) -> bool:
        return self.scheme != "fixed"

    def update(
        self, weights: dict[str, Array], vectors: Vectors, theta: Array, key: Array
    ) -> dict[str, Array]:
        """The weights after one update at ``theta``."""
        if not self:
            return weights
        sizes = (
            gradient_norms(vectors, theta)
            if self.scheme == "gradient-norm"
            else kernel_diagonals(vectors, theta, key)
        )
        mean = sum(sizes.values()) / len(sizes)
        aims = {k: mean / jnp.maximum(s, mean / LARGEST) for k, s in sizes.items()}
        usable = jnp.isfinite(mean) & (mean > 0)
        m = self.momentum
        return {
            k: jnp.where(usable, m * w + (1 - m) * aims[k], w).astype(w.dtype)
            for k, w in weights.items()
        }


def gradient_norms(vectors: Vectors, theta: Float[Array, " n"]) -> dict[str, Array]:
    """``‖∇ mean(r²)‖`` of every residual vector."""

    def losses(theta: Array) -> dict[str, Array]:
        return {name: jnp.mean(v**2) for name, v in vectors(theta).items()}

    return {name: jnp.linalg.norm(g) for name, g in jax.jacrev(losses)(theta).items()}


def kernel_diagonals(
    vectors: Vectors, theta: Float[Array, " n"], key: Array, probes: int = PROBES
) -> dict[str, Array]:
    """The mean of ``‖∂r_i/∂θ‖²`` over the entries of every residual vector.

    An estimate without bias (Hutchinson): ``E‖Jᵀs‖² = tr(JJᵀ)`` for random signs ``s``. It needs
    ``probes`` backward passes and no Jacobian, so that it serves large networks too.
    """
    values, pull = jax.vjp(vectors, theta)
    sizes = {}
    for i, (name, vector) in enumerate(values.items()):
        zeros = {k: jnp.zeros_like(v) for k, v in values.items()}
        signs = jax.random.rademacher(
            jax.random.fold_in(key, i), (probes, *vector.shape), vector.dtype
        )
        rows = jax.vmap(lambda s, name=name, zeros=zeros: pull({**zeros, name: s})[0])(signs)
        sizes[name] = jnp.mean(jnp.sum(rows**2, axis=1)) / vector.size
    return sizes
