"""Collocation with kernels that stay where they are: the linear limit of one hybrid block."""

from __future__ import annotations

from dataclasses import dataclass, replace

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from .dense import Dense, dense_count
from .embeddings import Embedding
from .inputs import Inputs
from .kernels.lattice import Lattice, LatticeKernels
from .kernels.rbf import RBF
from .kernels.scattered import Scattered
from .keys import generator
from .layers import Series
from .model import Model
from .spec import Knob, ModelSpec


class KernelExpansionNetwork(Model):
    """``u(x) = Σ_j c_j ψ_j(e(x)) + A e(x) + b``, linear in all that is trained: ``c``, ``A``, ``b``.

    With kernels on a lattice, points ``(n_1, …, n_d, d)`` are those of a grid (see
    :class:`~hyrespinn.models.kernels.lattice.LatticeKernels`).
    """

    embedding: Embedding
    kernels: RBF | LatticeKernels
    affine: Dense

    def __call__(self, x: Series) -> Series:
        h = self.embedding(x)
        return self.kernels(h) + self.affine(h)

    def linear_leaves(self) -> tuple[Array, ...]:
        """All parameters."""
        return *self.kernels.linear_leaves(), *self.affine.linear_leaves()

    @property
    def lattice(self) -> LatticeKernels | None:
        """The kernels, where they stand on a lattice."""
        return self.kernels if isinstance(self.kernels, LatticeKernels) else None


@dataclass(frozen=True)
class KernelExpansion(ModelSpec):
    """Fixed kernels and an affine function of the embedded point; all of it begins with zero.

    It is what one hybrid block of a HyResPINN without a deep branch becomes while what enters its
    tanh is small and its kernels do not move. A linear equation is solved by one linear
    least-squares problem.

    Args:
        kernels: Where the kernels stand and how wide they are: ``Scattered`` for any domain,
            ``Lattice`` for a box.

    >>> import numpy as np
    >>> points = lambda n, rng: rng.random((n, 1))
    >>> inputs = Inputs(((0.0, 1.0),), (False,), 1, 2, points, points)
    >>> KernelExpansion(Scattered(count=50)).count(inputs)
    52
    """

    kernels: Scattered | Lattice = Scattered()

    def build(self, inputs: Inputs, key: Array) -> KernelExpansionNetwork:
        embedding = _embedding(inputs)
        kernels = self.kernels.layer(embedding, inputs, generator(key))
        affine = Dense(embedding.size, inputs.outputs, key)
        zeros = tuple(jnp.zeros_like(a) for a in affine.linear_leaves())
        affine = eqx.tree_at(lambda d: d.linear_leaves(), affine, zeros)
        return KernelExpansionNetwork(embedding, kernels, affine)

    def count(self, inputs: Inputs) -> int:
        affine = dense_count(_embedding(inputs).size, inputs.outputs)
        return self.kernels.number * inputs.outputs + affine

    def knob(self, inputs: Inputs) -> Knob | None:
        """The number of kernels, where they are scattered."""
        kernels = self.kernels
        if isinstance(kernels, Lattice):
            return None
        return Knob(kernels.count, lambda n: replace(self, kernels=replace(kernels, count=n)))


def _embedding(inputs: Inputs) -> Embedding:
    return Embedding(inputs.bounds, inputs.periodic)
