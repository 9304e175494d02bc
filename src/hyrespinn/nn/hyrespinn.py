"""The HyResPINN network and its settings."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..errors import UserError, unknown
from ..geometry.rim import with_rim
from . import initialise
from .blocks import HybridBlock
from .dense import Dense, composed, dense_count
from .distances import DISTANCES
from .embeddings import Embedding
from .features import FourierBranch
from .gates import GATES
from .inputs import Inputs
from .kernels import KERNELS, kernel_named
from .lattice import LatticeRBF, lattice_axes
from .mlp import DNN_COUNTS, DNNS, MLP, Zero, mlp_count
from .parameters import scaled
from .rbf import RBF, rbf_count
from .settings import Knob, Settings, apart, at_least, check_shared, later


class LocalPart(eqx.Module):
    """Kernels by themselves, and a matrix that makes fields of their features."""

    embedding: Embedding
    rbf: Any
    matrix: Array

    def __call__(self, x: Any) -> Any:
        return self.rbf(self.embedding(x)) @ self.matrix


class HyResPINN(eqx.Module):
    """Lift, hybrid blocks and head; block 1 acts on the embedded point itself."""

    embedding: Embedding
    lift: Dense
    blocks: list[HybridBlock]
    head: MLP
    penalty_weight: float = eqx.field(static=True)

    def __call__(self, x: Any) -> Any:
        """The fields ``(..., outputs)`` at points ``(..., d)``, an array or a Taylor series.

        With kernels on a lattice, points ``(n_1, …, n_d, d)`` are those of a grid (see
        :class:`~hyrespinn.nn.lattice.LatticeRBF`).
        """
        entering = self.embedding(x)
        *inner, last = self.blocks
        skip: Callable[[Any], Any] = self.lift  # from what enters a block to what goes past it
        for block in inner:
            entering = block(entering, skip(entering))
            skip = _same
        if len(self.head.layers) > 1:
            return self.head(last(entering, skip(entering)))
        # An affine head takes both parts of the last block one by one: the block's gate is then a
        # factor of the head, and the lift past the only block joins the head in one small matrix.
        strength, (head,) = last.beta(), self.head.layers
        beside = head if inner else composed(self.lift, head)
        through = scaled(head, strength)(last.activated(entering))
        return through + scaled(beside, 1 - strength)(entering)

    def penalty(self) -> Array:
        """``λ_g Σ (α² + β²)``."""
        return self.penalty_weight * sum(
            (block.penalty() for block in self.blocks), start=jnp.zeros(())
        )

    def gates(self) -> dict[str, Array]:
        """The gate values: ``phi_alpha_1`` is the RBF share of block 1, ``phi_beta_1`` its strength."""
        values = {}
        for i, block in enumerate(self.blocks, start=1):
            values[f"phi_alpha_{i}"] = block.alpha()
            values[f"phi_beta_{i}"] = block.beta()
        return values

    def last_layer(self) -> tuple[Any, ...]:
        """The arrays in which the output is affine."""
        return self.head.last_layer()

    def nearly_linear(self) -> tuple[Any, ...]:
        """The arrays in which the output is nearly linear while what enters a tanh is small.

        That is: the kernels' coefficients and the last layer of the deep branch in the last block.
        What goes past the tanh is not among them: it can imitate what goes through it, and free
        steps would let large parts of both cancel, up to where the tanh is flat.
        """
        last = self.blocks[-1]
        return (*last.rbf.last_layer(), *last.dnn.last_layer())

    def lattice(self) -> LatticeRBF | None:
        """The kernels on a lattice in whose coefficients the output is nearly linear, if any."""
        block, *inner = self.blocks
        linear = not inner and len(self.head.layers) == 1
        return block.rbf if isinstance(block.rbf, LatticeRBF) and linear else None

    def local_part(self) -> LocalPart:
        """What the kernels of block 1 add to the output while what enters the tanh is small."""
        block = self.blocks[0]
        matrix = block.alpha() * block.beta() * self.head.layers[-1].weight
        return LocalPart(self.embedding, block.rbf, matrix)


def _same(h: Any) -> Any:
    return h


@dataclass(frozen=True)
class HyResPINNConfig(Settings):
    """The settings of a HyResPINN; a variant is ``dataclasses.replace`` of one of them.

    The names of ``dnn`` that end in ``-rwf`` are its random weight factorisation. Fourier features
    are seen by the deep branch of block 1 alone, whose hidden layers have ``deep`` neurons (0: as
    many as the width).

    With an ``overlap`` the kernels of block 1 are so many times wider than the spacing of their
    centres (0: a quantile of the distances between centres), and along time ``time_width`` half
    durations wide (0: as along the other coordinates), with ``time_levels`` centres behind one
    another. They also stand up to ``rim`` spacings around the domain: near its boundary, kernels
    inside it alone need large coefficients that cancel.

    With a ``gain`` the head starts with orthogonal weights of that size, and what enters a block's
    tanh starts so many times smaller: the network is then nearly linear in the coefficients of its
    kernels.

    ``lattice`` is the number of kernels of block 1 along each coordinate, in place of ``centers``
    scattered ones: Gaussians that stay as they are, with the widths of ``overlap`` and
    ``time_width``. Where it ``adds_up``, their factors along time are divided by their sum, and what goes
    past the block starts at zero: a few kernels along time make a constant exactly then, and need
    not undo what a random lift does along it.
    """

    blocks: int = 1
    depth: int = 2
    deep: int = later(0)
    centers: int = 32
    head_depth: int = 0
    branches: Literal["hybrid", "rbf", "dnn"] = "hybrid"
    dnn: str = "mlp"
    fourier: int | None = 0
    kernel: str = "wendland-c4"
    distance: str = "diagonal"
    width_quantile: float = 0.1
    width_factor: float = 1.0
    overlap: float = later(0.0)
    time_width: float = later(0.0)
    time_levels: float = later(6.0)
    rim: float = later(0.0)
    lattice: tuple[int, ...] = later(())
    adds_up: bool = later(False)
    train_centers: bool = True
    train_shapes: bool = later(True)
    gain: float = later(0.0)
    gate: str = "sigmoid"
    tau: float = 1.0
    phi_alpha: float = 0.5
    phi_beta: float = 0.01
    lambda_g: float = 0.0

    @property
    def factorised(self) -> bool:
        return self.dnn.endswith("-rwf")

    def check(self) -> None:
        for what, name, known in (
            ("kernel", self.kernel, KERNELS),
            ("distance", self.distance, DISTANCES),
            ("gate", self.gate, GATES),
            ("dnn", self.dnn, DNNS),
            ("branches", self.branches, ("hybrid", "rbf", "dnn")),
        ):
            if name not in known:
                raise unknown(f"model.{what}", name, known)
        check_shared(self, "blocks", "centers")
        at_least(
            self, 0,
            "depth", "deep", "head_depth", "lambda_g", "overlap", "time_width", "rim", "gain",
        )  # fmt: skip
        at_least(self, 1, "time_levels")
        if self.lattice:
            self._check_lattice()
        if self.rim and (self.lattice or not self.overlap):
            raise UserError(
                f"model.rim is {self.rim:g}: only scattered kernels whose widths go by their spacing "
                "stand around the domain. Set model.overlap, such as 2.6, and no model.lattice."
            )
        if not 0 <= self.width_quantile <= 1:
            raise UserError(f"model.width_quantile is between 0 and 1, not {self.width_quantile}.")
        if not self.width_factor > 0:
            raise UserError(f"model.width_factor must be positive, not {self.width_factor}.")

    def _check_lattice(self) -> None:
        if not all(isinstance(n, int) and n > 0 for n in self.lattice):
            raise UserError(
                "model.lattice is a whole number of kernels for each coordinate, such as [6, 256], "
                f"not {list(self.lattice)}."
            )
        wanted: dict[str, tuple[Any, ...]] = {
            "kernel": ("gaussian",),
            "distance": ("diagonal",),
            "branches": ("hybrid", "rbf"),
            "train_centers": (False,),
            "train_shapes": (False,),
        }
        for name, values in wanted.items():
            if getattr(self, name) not in values:
                raise UserError(
                    f"model.{name} is {getattr(self, name)!r}; kernels on a lattice are products of "
                    "Gaussians along the coordinates that stay as they are. Set model.kernel="
                    "gaussian, model.distance=diagonal, model.train_centers=false and "
                    "model.train_shapes=false, or leave model.lattice, or take the preset general."
                )
        if not self.overlap:
            raise UserError("Kernels on a lattice need a width: set model.overlap, such as 1.3.")

    @property
    def kernels(self) -> int:
        """The number of kernels in block 1."""
        return math.prod(self.lattice) if self.lattice else self.centers

    def build(self, inputs: Inputs, key: Array) -> HyResPINN:
        """A freshly initialised network for a problem with these inputs."""
        self.check()
        kernel_named(self.kernel, inputs.order)
        embedding = self.embedding(inputs)
        lift_key, head_key, *block_keys = jax.random.split(key, 2 + self.blocks)
        lift = Dense(embedding.size, self.width, lift_key)
        head = MLP(self.width, inputs.outputs, self.width, self.head_depth, head_key)
        if self.gain:
            lift = scaled(lift, 0.0 if self.lattice and self.adds_up else 1 / self.gain)
            head = _orthogonal_last(head, self.gain)
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
        # Along each coordinate alone, too, the points of a Sobol sequence are evenly spaced, which
        # matters where kernels are much longer along one than along another.
        blocks = [self._first_block(embedding, inputs, block_keys[0], rng)]
        # The clusters of the features that enter a block are its centres (decision D12).
        entering = hidden = None
        for block_key in block_keys[1:]:
            if entering is None:
                entering = embedding(jnp.asarray(inputs.cover(32 * self.centers, rng)))
                hidden = lift(entering)
            entering = hidden = blocks[-1](entering, hidden)
            centers = initialise.k_means(np.asarray(hidden), self.centers, rng)
            blocks.append(self._block(centers, block_key))
        return HyResPINN(embedding, lift, blocks, head, self.lambda_g)

    def _first_block(
        self, embedding: Embedding, inputs: Inputs, key: Array, rng: np.random.Generator
    ) -> HybridBlock:
        if self.lattice:
            rbf = self._lattice_rbf(embedding, inputs)
            return self._joined(rbf, self._branch(embedding.size, key, self.features))
        if not self.overlap:
            first = embedding(jnp.asarray(inputs.spread(self.centers, rng)))
            return self._block(np.asarray(first), key, self.features)
        outward = [not p for p in inputs.periodic]
        outward[0] &= not inputs.has_time
        points, in_box = with_rim(inputs.cover, inputs.bounds, outward, self.centers, self.rim, rng)
        along = initialise.spaced_widths(
            embedding.extents(),
            in_box,
            self.overlap,
            self.time_width if inputs.has_time else 0.0,
            self.time_levels,
        )
        widths = np.tile(embedding.widths(along.tolist()), (self.centers, 1))
        return self._block(np.asarray(embedding(jnp.asarray(points))), key, self.features, widths)

    def _lattice_rbf(self, embedding: Embedding, inputs: Inputs) -> LatticeRBF:
        if len(self.lattice) != len(inputs.bounds):
            raise UserError(
                f"model.lattice has {len(self.lattice)} numbers, and the problem "
                f"{len(inputs.bounds)} coordinates, time among them; give one for each."
            )
        axes = lattice_axes(inputs.bounds, inputs.periodic, self.lattice, inputs.has_time)
        spacings = embedding.extents() / np.asarray(self.lattice)
        along = (self.overlap * spacings).tolist()
        if inputs.has_time and self.time_width:
            along[0] = self.time_width
        return LatticeRBF(axes, embedding, along, self.width, self.adds_up)

    def _block(
        self, centers: np.ndarray, key: Array, fourier: int = 0, widths: np.ndarray | None = None
    ) -> HybridBlock:
        rbf_key, dnn_key = jax.random.split(key)
        size = centers.shape[1]
        rbf: Any = Zero()
        if self.branches != "dnn":
            if widths is None:
                widths = initialise.quantile_widths(centers, self.width_quantile, self.width_factor)
            distance = DISTANCES[self.distance](jnp.asarray(widths), size)
            rbf = RBF(
                jnp.asarray(centers), distance, self.width, self.kernel, rbf_key,
                self.train_centers, self.train_shapes,
            )  # fmt: skip
        return self._joined(rbf, self._branch(size, dnn_key, fourier))

    def _joined(self, rbf: Any, dnn: Any) -> HybridBlock:
        """Both branches, the kernels' coefficients as small as the gain asks for."""
        if self.gain and not isinstance(rbf, Zero):
            rbf = eqx.tree_at(lambda r: r.coefficients, rbf, rbf.coefficients / self.gain)
        gate = GATES[self.gate]
        return HybridBlock(rbf, dnn, gate(self.phi_alpha, self.tau), gate(self.phi_beta, self.tau))

    def _branch(self, size: int, key: Array, fourier: int) -> Any:
        return Zero() if self.branches == "rbf" else self._deep(size, key, fourier)

    def _deep(self, size: int, key: Array, fourier: int) -> Any:
        sizes = fourier or size, self.width, self.deep or self.width, self.depth
        dnn = DNNS[self.dnn](*sizes, key, self.activation, layer=self.layer)
        if self.gain:
            # Next to a lattice the deep branch begins with nothing, as the kernels do: a few levels
            # of time could not undo what it does along time at random.
            dnn = scaled(dnn, 0.0 if self.lattice else 1 / self.gain)
        return FourierBranch(self.fourier_layer(size, apart(key)), dnn) if fourier else dnn

    def count(self, inputs: Inputs) -> int:
        self.check()
        size = self.embedding(inputs).size
        lift = dense_count(size, self.width)
        head = mlp_count(self.width, inputs.outputs, self.width, self.head_depth)
        frequencies = self.fourier_count(inputs) if self.branches != "rbf" else 0
        first = self._block_count(size, self.kernels, self.features)
        later = self._block_count(self.width, self.centers)
        return lift + frequencies + first + (self.blocks - 1) * later + head

    def _block_count(self, size: int, centers: int, fourier: int = 0) -> int:
        total, width = 2, self.width  # the two gates
        if self.branches != "dnn":
            distance = DISTANCES[self.distance]
            total += rbf_count(
                size, width, centers, distance, self.train_centers, self.train_shapes
            )
        if self.branches != "rbf":
            total += DNN_COUNTS[self.dnn](fourier or size, width, self.deep or width, self.depth)
        return total

    def knob(self, inputs: Inputs) -> Knob | None:
        """The number of centres, where there are any that are scattered."""
        scattered = self.branches != "dnn" and not self.lattice
        return Knob("centers", self.centers) if scattered else None


def _orthogonal_last(head: MLP, size: float) -> MLP:
    """The head with columns of this length in its last layer, orthogonal where that is possible."""
    last = head.layers[-1]
    weight = (
        jnp.linalg.qr(last.weight)[0]
        if last.weight.shape[0] >= last.weight.shape[1]
        else (last.weight / jnp.linalg.norm(last.weight, axis=0))
    )
    return eqx.tree_at(lambda h: h.layers[-1].weight, head, size * weight)
