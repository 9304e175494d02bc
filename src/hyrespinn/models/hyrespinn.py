"""The HyResPINN: hybrid residual blocks of moving kernels and a deep network."""

from __future__ import annotations

from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .blocks import HybridBlock
from .changes import median_change
from .checks import at_least, refused
from .dense import Dense, composed, dense_count
from .embeddings import Embedding
from .gates import Gates
from .inputs import Inputs
from .kernels.initialise import Layers, k_means, wall_layers
from .kernels.moving import Moving
from .keys import generator
from .layers import Function, Series, scaled
from .located import Located
from .mlp import MLP, Deep, mlp_count
from .model import Model
from .spec import Knob, ModelSpec, check_width


class HyResPINNNetwork(Model):
    """Lift, hybrid blocks and head; block 1 acts on the embedded point itself."""

    embedding: Embedding
    lift: Dense
    blocks: list[HybridBlock]
    head: MLP
    penalty_weight: float = eqx.field(static=True)

    def __call__(self, x: Series) -> Series:
        entering = self.embedding(x)
        *inner, last = self.blocks
        skip: Function = self.lift  # from what enters a block to what goes past it
        for block in inner:
            entering = block(entering, skip(entering))
            skip = _same
        head = self.head.layers[-1]
        if len(self.head.layers) > 1 or not isinstance(head, Dense):
            return self.head(last(entering, skip(entering)))
        # An affine head takes both parts of the last block one by one: the block's gate is then a
        # factor of the head, and the lift past the only block joins the head in one small matrix.
        strength = last.strength
        beside = head if inner else composed(self.lift, head)
        through = scaled(head, strength)(last.activated(entering))
        return through + scaled(beside, 1 - strength)(entering)

    def penalty(self) -> Array:
        """``λ_g Σ (α² + β²)``."""
        return self.penalty_weight * sum(
            (block.penalty() for block in self.blocks), start=jnp.zeros(())
        )

    def diagnostics(self) -> dict[str, Array]:
        """The gate values: ``phi_alpha_1`` is the RBF share of block 1, ``phi_beta_1`` its strength."""
        values = {}
        for i, block in enumerate(self.blocks, start=1):
            values[f"phi_alpha_{i}"] = block.share
            values[f"phi_beta_{i}"] = block.strength
        return values

    def located(self) -> Located | None:
        """The kernels of the first block; those of later ones lie among features."""
        rbf = self.blocks[0].rbf
        return None if rbf is None else Located.of(rbf, self.embedding)

    def changes(self, start: Model) -> dict[str, Array]:
        """Those of the blocks, and the linear ones of lift and head."""
        assert isinstance(start, HyResPINNNetwork)
        pairs = zip(self.blocks, start.blocks, strict=True)
        blocks = [block.changes(before) for block, before in pairs]
        found = {name: jnp.median(jnp.stack([b[name] for b in blocks])) for name in blocks[0]}
        linear = median_change((self.lift, self.head), (start.lift, start.head))
        return {**found, "linear": linear}

    def linear_leaves(self) -> tuple[Array, ...]:
        return self.head.linear_leaves()


def _same(h: Series) -> Series:
    return h


@dataclass(frozen=True)
class HyResPINN(ModelSpec):
    """The paper's network: a lift, hybrid residual blocks and a head.

    Args:
        width: The number of features between the blocks.
        blocks: The number of blocks.
        kernels: The local branch of every block; ``None`` for blocks that are deep alone.
        deep: The deep branch of every block; ``None`` for blocks of kernels alone.
        gates: How the branches, and a block and what goes past it, are mixed.
        head_depth: The number of hidden layers of the head.
        harmonics: The number of waves that stand for a periodic coordinate.

    A variant is ``dataclasses.replace`` of another one.

    >>> import dataclasses
    >>> spec = HyResPINN(blocks=3, kernels=Moving(count=64))
    >>> rbf_only = dataclasses.replace(spec, deep=None)
    """

    width: int = 24
    blocks: int = 1
    kernels: Moving | None = Moving()
    deep: Deep | None = Deep()
    gates: Gates = Gates()
    head_depth: int = 0
    harmonics: int = 1

    def check(self) -> None:
        at_least(self, 1, width=self.width, blocks=self.blocks, harmonics=self.harmonics)
        at_least(self, 0, head_depth=self.head_depth)
        if self.kernels is None and self.deep is None:
            raise refused(
                self,
                "kernels and deep are both None, and a block needs a branch: give kernels=Moving(), "
                "deep=Deep(), or both.",
            )
        check_width(self, self.width, self.deep.fourier if self.deep else None)

    @property
    def width_step(self) -> int:
        fourier = self.deep.fourier if self.deep else None
        return fourier.width_step if fourier else 1

    def embedding(self, inputs: Inputs) -> Embedding:
        """What stands for the coordinates of a point."""
        return Embedding(inputs.bounds, inputs.periodic, self.harmonics)

    def build(self, inputs: Inputs, key: Array) -> HyResPINNNetwork:
        self.check()
        if self.kernels:
            self.kernels.kernel.check(inputs.order)
        embedding = self.embedding(inputs)
        lift_key, head_key, *block_keys = jax.random.split(key, 2 + self.blocks)
        lift = Dense(embedding.size, self.width, lift_key)
        head = MLP(self.width, inputs.outputs, self.width, self.head_depth, head_key)
        blocks = self._blocks(inputs, embedding, lift, block_keys, generator(key))
        return HyResPINNNetwork(embedding, lift, blocks, head, self.gates.penalty)

    def _blocks(
        self,
        inputs: Inputs,
        embedding: Embedding,
        lift: Dense,
        keys: list[Array],
        rng: np.random.Generator,
    ) -> list[HybridBlock]:
        """The first centres are points of the domain; those of a later block are the clusters of the
        features that enter it (D12 in docs/differences.md)."""
        first, *later = keys
        if self.kernels is None:
            return [
                self._block(None, embedding.size, first, True),
                *(self._block(None, self.width, key, False) for key in later),
            ]
        count = self.kernels.count
        layers = wall_layers(embedding, inputs.has_time, self.kernels.walls)
        inside = count - (0 if layers is None else len(layers.centers))
        centers = np.asarray(embedding.places(inputs.spread(inside, rng)))
        blocks = [self._block(centers, embedding.size, first, True, layers)]
        if later:
            entering: Series = embedding.places(inputs.cover(32 * count, rng))
            hidden = lift(entering)
        for key in later:
            entering = hidden = blocks[-1](entering, hidden)
            centers = k_means(np.asarray(hidden), count, rng)
            blocks.append(self._block(centers, self.width, key, False))
        return blocks

    def _block(
        self,
        centers: np.ndarray | None,
        size: int,
        key: Array,
        first: bool,
        layers: Layers | None = None,
    ) -> HybridBlock:
        """A block that ``size`` features enter."""
        rbf_key, deep_key = jax.random.split(key)
        rbf = deep = None
        if self.kernels is not None and centers is not None:
            rbf = self.kernels.layer(centers, self.width, rbf_key, layers)
        if self.deep is not None:
            deep = self.deep.branch(size, self.width, deep_key, first)
        gates = self.gates
        alpha, beta = gates.gate.start(gates.alpha), gates.gate.start(gates.beta)
        return HybridBlock(rbf, deep, alpha, beta, gates.gate)

    def count(self, inputs: Inputs) -> int:
        self.check()
        size = self.embedding(inputs).size
        lift = dense_count(size, self.width)
        head = mlp_count(self.width, inputs.outputs, self.width, self.head_depth)
        first, later = self._block_count(size, True), self._block_count(self.width, False)
        return lift + first + (self.blocks - 1) * later + head

    def _block_count(self, size: int, first: bool) -> int:
        kernels = self.kernels.parameters(size, self.width) if self.kernels else 0
        deep = self.deep.parameters(size, self.width, first) if self.deep else 0
        return kernels + deep + 2  # the two gates

    def knob(self, inputs: Inputs) -> Knob | None:
        """The number of kernels in a block, where there are any."""
        kernels = self.kernels
        if kernels is None:
            return None
        return Knob(kernels.count, lambda n: replace(self, kernels=replace(kernels, count=n)))
