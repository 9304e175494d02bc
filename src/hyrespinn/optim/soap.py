"""SOAP: Adam in the eigenbasis of Shampoo's preconditioner (Vyas et al. 2024, arXiv 2409.11321).

For a matrix with gradient ``G`` the averages ``L`` of ``GGᵀ`` and ``R`` of ``GᵀG`` say in which
directions the gradients vary together. Adam runs along their eigenvectors in place of the single
entries, so that it no longer matters in which basis the weights are written. What is not a
matrix, or too large on both sides, gets plain Adam.

A refresh of the bases costs a QR factorisation, so it comes only every few steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from ..errors import UserError
from .adam import Adam
from .optimiser import System

if TYPE_CHECKING:
    import optax


class Side(NamedTuple):
    """The average of ``GGᵀ`` (of ``GᵀG`` on the right) for a stack of matrices, and its basis."""

    covariance: Array
    basis: Array


class Group(NamedTuple):
    """A stack of matrices of one shape; a side that is ``None`` is not rotated."""

    momentum: Array  # in the basis of the weights, so that a refresh leaves it valid
    second: Array  # in the rotated basis
    left: Side | None
    right: Side | None


class SoapState(NamedTuple):
    updates: Array
    plain: optax.OptState
    groups: tuple[Group, ...]


def soap(
    shapes: Sequence[tuple[int, ...]],
    *,
    b1: float = 0.95,
    b2: float = 0.95,
    eps: float = 1e-8,
    every: int = 10,
    largest: int = 1024,
) -> optax.GradientTransformation:
    """SOAP's direction for a vector that holds arrays of these ``shapes`` one after the other.

    The bases are refreshed ``every`` so many updates; a side longer than ``largest`` is left as
    it is. The first update of a matrix gives the bases and no direction: in the basis of its own
    singular vectors a gradient is diagonal, and Adam would blow up the rounding errors in all
    other entries to full steps.

    >>> transform = soap([(3, 2), (3,)])
    >>> state = transform.init(jnp.zeros(9))
    >>> _, state = transform.update(jnp.arange(9.0), state)
    >>> direction, state = transform.update(jnp.arange(9.0), state)
    >>> direction.shape
    (9,)
    """
    if every < 1 or largest < 1:
        raise UserError(f"SOAP needs every ≥ 1 and largest ≥ 1, got {every} and {largest}.")
    import optax

    layout = _layout(shapes, largest)
    adam = optax.scale_by_adam(b1=b1, b2=b2, eps=eps)

    def init(theta: Float[Array, " n"]) -> SoapState:
        if theta.size != layout.size:
            raise UserError(
                f"SOAP was given shapes of {layout.size} numbers in all for a vector of "
                f"{theta.size}; give the shape of every array in the vector, in its order."
            )
        plain, stacks = layout.split(theta)
        groups = tuple(_blank(stack, largest) for stack in stacks)
        return SoapState(jnp.zeros((), jnp.int32), adam.init(plain), groups)

    def begin(group: Group, G: Array, count: Array) -> tuple[Array, Group]:
        group = _averaged(group, G, b2)
        return jnp.zeros_like(G), group._replace(
            left=_solved(group.left), right=_solved(group.right)
        )

    def go_on(group: Group, G: Array, count: Array) -> tuple[Array, Group]:
        momentum = b1 * group.momentum + (1 - b1) * G
        second = b2 * group.second + (1 - b2) * _rotated(group, G) ** 2
        m = _rotated(group, momentum) / (1 - b1**count).astype(G.dtype)
        v = second / (1 - b2**count).astype(G.dtype)
        direction = _rotated_back(group, m / (jnp.sqrt(v) + eps))
        group = _averaged(group._replace(momentum=momentum, second=second), G, b2)
        return direction, jax.lax.cond(count % every == 0, _refreshed, lambda same: same, group)

    def update(
        gradient: Float[Array, " n"], state: SoapState, params: object = None
    ) -> tuple[Float[Array, " n"], SoapState]:
        plain, stacks = layout.split(gradient)
        plain, adam_state = adam.update(plain, state.plain)
        results = [
            jax.lax.cond(state.updates == 0, begin, go_on, group, stack, state.updates)
            for group, stack in zip(state.groups, stacks, strict=True)
        ]
        direction = layout.join(plain, [stack for stack, _ in results])
        groups = tuple(group for _, group in results)
        return direction, SoapState(state.updates + 1, adam_state, groups)

    return optax.GradientTransformation(init, update)


@dataclass(frozen=True)
class _Layout:
    """Where in the vector each array lies: matrices by shape, all others as they come."""

    size: int
    matrices: dict[tuple[int, int], list[int]]  # the offsets of all matrices of one shape
    others: list[slice]

    def split(self, vector: Float[Array, " n"]) -> tuple[Array, list[Array]]:
        """The numbers that get plain Adam, and one stack for each shape of matrix."""
        plain = jnp.concatenate([vector[:0], *(vector[part] for part in self.others)])
        stacks = [
            jnp.stack([vector[at : at + m * n].reshape(m, n) for at in offsets])
            for (m, n), offsets in self.matrices.items()
        ]
        return plain, stacks

    def join(self, plain: Array, stacks: list[Array]) -> Float[Array, " n"]:
        ends = accumulate(part.stop - part.start for part in self.others)
        pieces = {
            part.start: plain[end - (part.stop - part.start) : end]
            for part, end in zip(self.others, ends, strict=True)
        }
        for offsets, stack in zip(self.matrices.values(), stacks, strict=True):
            pieces |= {at: matrix.ravel() for at, matrix in zip(offsets, stack, strict=True)}
        return jnp.concatenate([plain[:0], *(pieces[at] for at in sorted(pieces))])


def _layout(shapes: Sequence[tuple[int, ...]], largest: int) -> _Layout:
    matrices: dict[tuple[int, int], list[int]] = {}
    others = []
    at = 0
    for shape in shapes:
        size = math.prod(shape)
        if len(shape) == 2 and size and min(shape) <= largest:
            matrices.setdefault((shape[0], shape[1]), []).append(at)
        elif size:
            others.append(slice(at, at + size))
        at += size
    return _Layout(at, matrices, others)


def _blank(stack: Float[Array, "k m n"], largest: int) -> Group:
    k, *sides = stack.shape

    def side(n: int) -> Side | None:
        if n > largest:
            return None
        eye = jnp.broadcast_to(jnp.eye(n, dtype=stack.dtype), (k, n, n))
        return Side(jnp.zeros((k, n, n), stack.dtype), eye)

    left, right = map(side, sides)
    return Group(jnp.zeros_like(stack), jnp.zeros_like(stack), left, right)


def _rotated(group: Group, G: Float[Array, "k m n"]) -> Float[Array, "k m n"]:
    """``Q_Lᵀ G Q_R``."""
    if group.left is not None:
        G = group.left.basis.mT @ G
    return G if group.right is None else G @ group.right.basis


def _rotated_back(group: Group, G: Float[Array, "k m n"]) -> Float[Array, "k m n"]:
    """``Q_L G Q_Rᵀ``."""
    if group.left is not None:
        G = group.left.basis @ G
    return G if group.right is None else G @ group.right.basis.mT


def _averaged(group: Group, G: Float[Array, "k m n"], b2: float) -> Group:
    """``L ← b₂L + (1−b₂)GGᵀ`` and ``R ← b₂R + (1−b₂)GᵀG``."""

    def averaged(side: Side | None, G: Array) -> Side | None:
        if side is None:
            return None
        return side._replace(covariance=b2 * side.covariance + (1 - b2) * (G @ G.mT))

    return group._replace(left=averaged(group.left, G), right=averaged(group.right, G.mT))


def _solved(side: Side | None) -> Side | None:
    """The eigenvectors themselves, the largest first."""
    if side is None:
        return None
    return side._replace(basis=_one_by_one(jnp.linalg.eigh, side.covariance, 1)[:, :, ::-1])


def _refreshed(group: Group) -> Group:
    """Both bases brought up to date, the second moments in the new order of the columns."""
    left, second = _iterated(group.left, group.second)
    right, transposed = _iterated(group.right, second.mT)
    return group._replace(second=transposed.mT, left=left, right=right)


def _iterated(
    side: Side | None, second: Float[Array, "k m n"]
) -> tuple[Side | None, Float[Array, "k m n"]]:
    """One power iteration and a QR factorisation (the paper's Algorithm 4).

    The columns are sorted first, since QR keeps the leading ones best; the second moments, which
    belong to the columns, move with them. A multiple of the identity of the size of rounding
    errors keeps the columns in whose directions no gradient has come yet.
    """
    if side is None:
        return None, second
    Q, PQ = side.basis, side.covariance @ side.basis
    order = jnp.argsort(jnp.sum(Q * PQ, axis=1), axis=1, descending=True)
    Q, PQ = (jnp.take_along_axis(A, order[:, None, :], axis=2) for A in (Q, PQ))
    second = jnp.take_along_axis(second, order[:, :, None], axis=1)
    total = jnp.trace(side.covariance, axis1=1, axis2=2)[:, None, None]
    rounding = Q.shape[1] * jnp.finfo(Q.dtype).eps
    S = PQ / jnp.where(total > 0, total, 1) + rounding * Q
    return side._replace(basis=_one_by_one(jnp.linalg.qr, S, 0)), second


def _one_by_one(
    factorise: Callable[[Array], Sequence[Array]], stack: Float[Array, "k m m"], part: int
) -> Float[Array, "k m m"]:
    """One factor of each matrix in a stack.

    On a CPU, JAX shares a stack out over the threads that run the program and waits for them
    inside one of them: as many such calls at a time as there are threads wait for ever.
    """
    return jax.lax.map(lambda matrix: factorise(matrix)[part], stack)


@dataclass(frozen=True)
class Soap(Adam):
    """SOAP on new points at every step, with Adam's schedule of the rate.

    Args:
        every: After how many steps the bases are refreshed.
        largest: A side of a matrix longer than this is left as it is.
    """

    every: int = 10
    largest: int = 1024

    def transform(self, system: System, theta: Array) -> optax.GradientTransformation:
        return soap(system.shapes(theta), every=self.every, largest=self.largest)
