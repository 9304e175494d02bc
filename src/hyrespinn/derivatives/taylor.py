"""A value together with its partial derivatives, propagated exactly through a network.

A :class:`Taylor` holds one array for each multi-index of a closed set. Layers are written once,
with ordinary operators: given arrays they give values, given a ``Taylor`` they give values and
derivatives. The derivatives lie side by side, one array each, and not in one stacked array: on a
CPU the compiler copies a stack at every layer, which made a step three to six times slower
(``benchmarks/engine.py --layouts``). A derivative that is zero by structure (the second
derivative of a coordinate) is absent and costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from . import multiindex as mi
from .multiindex import MultiIndex

Parts = dict[MultiIndex, Array]


@jax.tree_util.register_pytree_node_class
class Taylor:
    """A batch of values ``(..., features)`` and the derivatives of ``indices``.

    >>> x = coordinates(jnp.array([[0.5]]), closure=((0,), (1,), (2,)))
    >>> float((x * x * x)[(2,)][0, 0])
    3.0
    """

    __slots__ = ("indices", "parts")
    __array_priority__ = 1000  # so that ``array * taylor`` comes here
    __array_ufunc__ = None

    def __init__(self, parts: Mapping[MultiIndex, Array], indices: tuple[MultiIndex, ...]):
        self.parts: Parts = dict(parts)
        self.indices = indices

    def tree_flatten(self) -> tuple[list[Any], tuple[Any, ...]]:
        keys = tuple(self.parts)
        return [self.parts[k] for k in keys], (keys, self.indices)

    @classmethod
    def tree_unflatten(cls, aux: tuple[Any, ...], children: Sequence[Any]) -> Taylor:
        # Not through __init__: JAX also rebuilds trees around leaves that are not arrays.
        self = object.__new__(cls)
        keys, self.indices = aux
        self.parts = dict(zip(keys, children, strict=True))
        return self

    @property
    def zero(self) -> MultiIndex:
        return self.indices[0]

    @property
    def value(self) -> Array:
        return self.parts[self.zero]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def dtype(self) -> Any:
        return self.value.dtype

    @property
    def order(self) -> int:
        """The highest total order carried."""
        return mi.order(self.indices[-1])

    def __getitem__(self, index: MultiIndex) -> Array:
        """One derivative, broadcast to the value's shape; zero where it vanishes by structure."""
        part = self.parts.get(index)
        if part is None:
            if index not in self.indices:
                raise KeyError(f"the derivative {index} is not among {self.indices}")
            return jnp.zeros_like(self.value)
        return jnp.broadcast_to(part, self.value.shape)

    def map(self, linear: Callable[[Array], Array]) -> Taylor:
        """Apply a linear map to the value and to every derivative."""
        return Taylor({k: linear(v) for k, v in self.parts.items()}, self.indices)

    def feature(self, selection: Any) -> Taylor:
        """Select along the last axis."""
        return self.map(lambda part: part[..., selection])

    def __matmul__(self, matrix: Array) -> Taylor:
        return self.map(lambda part: part @ matrix)

    def __neg__(self) -> Taylor:
        return self.map(jnp.negative)

    def _check(self, other: Taylor) -> None:
        if self.indices != other.indices:
            raise ValueError(f"series of {self.indices} and of {other.indices} do not mix")

    def __add__(self, other: Any) -> Taylor:
        if not isinstance(other, Taylor):
            return Taylor({**self.parts, self.zero: self.value + other}, self.indices)
        self._check(other)
        parts = dict(self.parts)
        for index, part in other.parts.items():
            parts[index] = parts[index] + part if index in parts else part
        return Taylor(parts, self.indices)

    def __mul__(self, other: Any) -> Taylor:
        if not isinstance(other, Taylor):
            return self.map(lambda part: part * other)
        self._check(other)
        parts: Parts = {}
        for index in self.indices:
            terms = [
                _weighted(c, self.parts[a] * other.parts[b])
                for c, a, b in mi.leibniz(index)
                if a in self.parts and b in other.parts
            ]
            if terms:
                parts[index] = _sum(terms)
        return Taylor(parts, self.indices)

    def __sub__(self, other: Any) -> Taylor:
        return self + (-other)

    def __rsub__(self, other: Any) -> Taylor:
        return (-self) + other

    def __truediv__(self, other: Any) -> Taylor:
        return self * (1 / other)

    __radd__ = __add__
    __rmul__ = __mul__


def _weighted(weight: int, term: Array) -> Array:
    return term if weight == 1 else weight * term


def _sum(terms: Sequence[Array]) -> Array:
    return sum(terms[1:], start=terms[0])


def coordinates(points: Array, closure: tuple[MultiIndex, ...]) -> Taylor:
    """The points ``(..., d)`` as the identity map: first derivatives are unit vectors."""
    parts: Parts = {closure[0]: points}
    dimension = points.shape[-1]
    for axis in range(dimension):
        unit = tuple(int(i == axis) for i in range(dimension))
        if unit in closure:
            lead = (1,) * (points.ndim - 1)
            parts[unit] = jnp.zeros((*lead, dimension), points.dtype).at[..., axis].set(1)
    return Taylor(parts, closure)


def square(x: Taylor | Array) -> Taylor | Array:
    """``x·x``, each symmetric pair of Leibniz' rule computed once."""
    if not isinstance(x, Taylor):
        return x * x
    parts: Parts = {}
    for index in x.indices:
        terms = [
            _weighted(c if a == b else 2 * c, x.parts[a] * x.parts[b])
            for c, a, b in mi.leibniz(index)
            if a <= b and a in x.parts and b in x.parts
        ]
        if terms:
            parts[index] = _sum(terms)
    return Taylor(parts, x.indices)


def column(x: Any, i: int) -> Any:
    """The ``i``-th feature of an array or a series, with its axis kept."""
    chosen = slice(i, i + 1)
    return x.feature(chosen) if isinstance(x, Taylor) else x[..., chosen]


def concatenate(items: Sequence[Any]) -> Any:
    """Join along the feature axis."""
    if not isinstance(items[0], Taylor):
        return jnp.concatenate(items, axis=-1)
    indices = items[0].indices
    present = [i for i in indices if any(i in item.parts for item in items)]
    return Taylor(
        {i: jnp.concatenate([item[i] for item in items], axis=-1) for i in present}, indices
    )


Derivatives = Callable[[Array, int], Sequence[Array]]
"""``(s, n) -> (f(s), f'(s), …, f⁽ⁿ⁾(s))``, elementwise."""


def compose(derivatives: Derivatives, x: Any) -> Any:
    """``f(x)`` for an elementwise ``f`` whose derivatives are given in closed form.

    A series is differentiable in reverse mode (with respect to parameters), not in forward mode;
    an array in both, to any order, always through the closed forms.

    The backward pass of a series is written by hand: perturbing ``x`` by ``δ`` changes ``f(x)``
    by the product of series ``f'(x)·δ``, so its transpose needs nothing but the series of
    ``f'(x)``, and nothing is stored but the input.
    """
    if not isinstance(x, Taylor):
        return _elementwise(derivatives, 0, x)
    return _compose(derivatives, x)


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _elementwise(derivatives: Derivatives, k: int, x: Array) -> Array:
    """``f⁽ᵏ⁾(x)`` of an array, whose own derivative is ``f⁽ᵏ⁺¹⁾(x)``."""
    return derivatives(x, k)[k]


@_elementwise.defjvp
def _elementwise_jvp(
    derivatives: Derivatives, k: int, primals: tuple[Array], tangents: tuple[Any]
) -> tuple[Array, Array]:
    (x,), (tangent,) = primals, tangents
    return _elementwise(derivatives, k, x), _elementwise(derivatives, k + 1, x) * tangent


def _chain(values: Sequence[Array], x: Taylor) -> Parts:
    """Faà di Bruno's formula, with ``values[k] = f⁽ᵏ⁾(x)``."""
    parts: Parts = {}
    for index in x.indices:
        by_order: dict[int, list[Array]] = {}
        for weight, k, factors in mi.faa_di_bruno(index):
            if all(f in x.parts for f in factors):
                term = _product([x.parts[f] for f in factors])
                by_order.setdefault(k, []).append(
                    values[k] if term is None else _weighted(weight, term)
                )
        if by_order:
            parts[index] = _sum(
                [terms[0] if k == 0 else values[k] * _sum(terms) for k, terms in by_order.items()]
            )
    return parts


def _product(factors: Sequence[Array]) -> Array | None:
    if not factors:
        return None
    result = factors[0]
    for factor in factors[1:]:
        result = result * factor
    return result


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _compose(derivatives: Derivatives, x: Taylor) -> Taylor:
    return Taylor(_chain(derivatives(x.value, x.order), x), x.indices)


def _compose_forward(derivatives: Derivatives, x: Taylor) -> tuple[Taylor, Taylor]:
    return _compose(derivatives, x), x


def _compose_backward(derivatives: Derivatives, x: Taylor, cotangent: Taylor) -> tuple[Taylor]:
    slope = _chain(derivatives(x.value, x.order + 1)[1:], x)
    parts: Parts = {}
    for index, part in x.parts.items():
        terms = [
            _weighted(mi.binomial(upper, index), slope[mi.minus(upper, index)] * bar)
            for upper, bar in cotangent.parts.items()
            if all(i <= j for i, j in zip(index, upper, strict=True))
            and mi.minus(upper, index) in slope
        ]
        parts[index] = _unbroadcast(_sum(terms), part.shape) if terms else jnp.zeros_like(part)
    return (Taylor(parts, x.indices),)


def _unbroadcast(array: Array, shape: tuple[int, ...]) -> Array:
    """Sum over the axes along which ``shape`` was broadcast."""
    axes = tuple(i for i, (a, b) in enumerate(zip(array.shape, shape, strict=True)) if a != b)
    return jnp.sum(array, axis=axes, keepdims=True) if axes else array


_compose.defvjp(_compose_forward, _compose_backward)
