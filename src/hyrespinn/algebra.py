"""Normal equations, and sketches of their columns: what losses make and optimisers use."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

STRIP = 800
"""Rows of a product that are made at once."""


class NormalEquations(NamedTuple):
    """``‖r‖²``, ``Jᵀr`` and the lower half of ``JᵀJ``."""

    value: Float[Array, ""]
    gradient: Float[Array, " n"]
    matrix: Float[Array, "n n"]

    def times(self, vectors: Float[Array, "n k"]) -> Float[Array, "n k"]:
        """``JᵀJ`` times the columns of a matrix."""
        lower = self.matrix
        return lower @ vectors + (jnp.tril(lower, -1).T @ vectors)


class Triangle(NamedTuple):
    """``R`` and ``c`` with ``‖Jδ + r‖² = ‖Rδ + c‖² + rest²``, in one upper triangle with ``c`` and ``rest``
    in its last column: what ``JᵀJ`` and ``Jᵀr`` say, to twice as many digits.
    """

    both: Float[Array, "k k"]

    @classmethod
    def empty(cls, size: int, dtype: jnp.dtype) -> Triangle:
        """That of no rows and so many columns."""
        return cls(jnp.zeros((size + 1, size + 1), dtype))

    def with_rows(self, rows: Float[Array, " m"], jacobian: Float[Array, "m n"]) -> Triangle:
        """The same with more rows below."""
        more = jnp.concatenate([jacobian, rows[:, None]], axis=1)
        return Triangle(jnp.linalg.qr(jnp.concatenate([self.both, more]), mode="r"))

    @property
    def matrix(self) -> Float[Array, "n n"]:
        return self.both[:-1, :-1]

    @property
    def rows(self) -> Float[Array, " n"]:
        return self.both[:-1, -1]


def gram(transposed: Float[Array, "n m"]) -> Float[Array, "n n"]:
    """The lower half of ``BBᵀ``, strip by strip; zero above."""
    n = transposed.shape[0]
    strips = []
    for begin in range(0, n, STRIP):
        end = min(begin + STRIP, n)
        strip = transposed[begin:end] @ transposed[:end].T
        strips.append(jnp.pad(strip, ((0, 0), (0, n - end))))
    return jnp.tril(jnp.concatenate(strips))


class Columns(NamedTuple):
    """``Ω``, a few random combinations of all columns: signs, an order, a cosine transform, a choice.

    Its columns are orthonormal (a subsampled randomised cosine transform), so that a vector ``y`` of
    combinations stands for the step ``Ωy`` of the same length.
    """

    signs: Float[Array, " n"]
    order: Int[Array, " n"]
    chosen: Int[Array, " c"]

    @classmethod
    def draw(cls, key: Array, size: int, count: int, dtype: jnp.dtype) -> Columns:
        """``count`` random combinations of ``size`` columns."""
        first, second, third = jax.random.split(key, 3)
        return cls(
            jax.random.rademacher(first, (size,), dtype),
            jax.random.permutation(second, size),
            jax.random.choice(third, size, (count,), replace=False),
        )

    @property
    def size(self) -> int:
        return self.chosen.shape[0]

    def of(self, transposed: Float[Array, "n m"]) -> Float[Array, "c m"]:
        """``ΩᵀJᵀ`` from ``Jᵀ``."""
        mixed = (self.signs[:, None] * transposed)[self.order]
        return jax.scipy.fft.dct(mixed, axis=0, norm="ortho")[self.chosen]

    def projected(self, vector: Float[Array, " n"]) -> Float[Array, " c"]:
        """``Ωᵀv``."""
        return self.of(vector[:, None])[:, 0]

    def lifted(self, vectors: Float[Array, "c k"]) -> Float[Array, "n k"]:
        """``ΩV`` for the columns of ``V``."""
        spread = jnp.zeros((self.signs.size, vectors.shape[1]), vectors.dtype)
        waves = spread.at[self.chosen].set(vectors)
        mixed = jax.scipy.fft.idct(waves, axis=0, norm="ortho")
        return self.signs[:, None] * spread.at[self.order].set(mixed)
