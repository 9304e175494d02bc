"""A value together with its partial derivatives, propagated exactly through a network.

A :class:`Taylor` holds one array for each multi-index of a closed set. Layers are written once,
with ordinary operators: given arrays they give values, given a ``Taylor`` they give values and
derivatives. The derivatives lie side by side, one array each, and not in one stacked array: on a
CPU the compiler copies a stack at every layer, which made a step three to six times slower
(``benchmarks/engine.py --layouts``). A derivative that is zero by structure (the second
derivative of a coordinate) is absent and costs nothing.

A series may also carry linear operators ``L = Σ c_α ∂^α`` in place of their highest derivatives:
``u_t − ν u_xx`` travels as one array where ``u_t`` and ``u_xx`` would be two. All that a product
or a chain rule asks of ``L`` beyond itself are derivatives below those ``α``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from operator import mul
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax import Array

from . import multiindex as mi
from .multiindex import MultiIndex

Key: TypeAlias = MultiIndex | int
"""Of a part: the multi-index of a derivative, or the place of an operator among the operators."""

Parts = dict[Key, Array]

Operator = dict[MultiIndex, Array]
"""``Σ c_α ∂^α`` as ``α → c_α``: a number, or one for each point. No ``α`` is below another one."""


@jax.tree_util.register_pytree_node_class
class Taylor:
    """A batch of values ``(..., features)``, the derivatives of ``indices``, and ``operators`` of it.

    >>> x = coordinates(jnp.array([[0.5]]), closure=((0,), (1,), (2,)))
    >>> float((x * x * x)[(2,)][0, 0])
    3.0
    """

    __slots__ = ("indices", "operators", "parts")
    __array_priority__ = 1000  # so that ``array * taylor`` comes here
    __array_ufunc__ = None

    def __init__(
        self,
        parts: Mapping[Key, Array],
        indices: tuple[MultiIndex, ...],
        operators: Sequence[Operator] = (),
    ):
        self.parts: Parts = dict(parts)
        self.indices = indices
        self.operators = tuple(dict(sorted(operator.items())) for operator in operators)

    def tree_flatten(self) -> tuple[list[Any], tuple[Any, ...]]:
        coefficients = [c for operator in self.operators for c in operator.values()]
        return [*self.parts.values(), *coefficients], (tuple(self.parts), *self.kind)

    @classmethod
    def tree_unflatten(cls, aux: tuple[Any, ...], children: Sequence[Any]) -> Taylor:
        # Not through __init__: JAX also rebuilds trees around leaves that are not arrays.
        self = object.__new__(cls)
        keys, self.indices, kinds = aux
        leaves = iter(children)
        self.parts = {key: next(leaves) for key in keys}
        self.operators = tuple({alpha: next(leaves) for alpha in kind} for kind in kinds)
        return self

    def like(self, parts: Mapping[Key, Array]) -> Taylor:
        """Other parts of the same kind."""
        return Taylor(parts, self.indices, self.operators)

    @property
    def keys(self) -> tuple[Key, ...]:
        """All parts there can be."""
        return (*self.indices, *range(len(self.operators)))

    @property
    def kind(self) -> tuple[Any, ...]:
        """The derivatives carried one by one, and those of each operator."""
        return self.indices, tuple(tuple(operator) for operator in self.operators)

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
        highest = (alpha for operator in self.operators for alpha in operator)
        return max(map(mi.order, (self.indices[-1], *highest)))

    def __getitem__(self, key: Key) -> Array:
        """One derivative, broadcast to the value's shape; zero where it vanishes by structure."""
        part = self.parts.get(key)
        if part is None:
            if key not in self.keys:
                raise KeyError(f"the derivative {key} is not among {self.keys}")
            return jnp.zeros_like(self.value)
        return jnp.broadcast_to(part, self.value.shape)

    def map(self, linear: Callable[[Array], Array]) -> Taylor:
        """Apply a linear map to the value and to every derivative."""
        return self.like({k: linear(v) for k, v in self.parts.items()})

    def feature(self, selection: Any) -> Taylor:
        """Select along the last axis."""
        return self.map(lambda part: part[..., selection])

    def __matmul__(self, matrix: Array) -> Taylor:
        return self.map(lambda part: part @ matrix)

    def __neg__(self) -> Taylor:
        return self.map(jnp.negative)

    def _check(self, other: Taylor) -> None:
        if self.kind != other.kind:
            raise ValueError(f"series of {self.kind} and of {other.kind} do not mix")

    def product_rule(self, key: Key) -> list[tuple[Weight, Key, Key]]:
        """Leibniz' rule ``(fg)_key = Σ c · f_a · g_b`` as a list of ``(c, a, b)``."""
        if not isinstance(key, int):
            return list(mi.leibniz(key))
        mixed = [
            (c * weight, a, b)
            for alpha, weight in self.operators[key].items()
            for c, a, b in mi.leibniz(alpha)
            if any(a) and any(b)
        ]
        return [(1, key, self.zero), (1, self.zero, key), *mixed]

    def chain_rule(self, key: Key) -> list[tuple[Weight, int, tuple[Key, ...]]]:
        """Faà di Bruno's formula ``f(g)_key = Σ c · f⁽ᵏ⁾(g) · Π g_μ`` as a list of ``(c, k, μ…)``."""
        if not isinstance(key, int):
            return list(mi.faa_di_bruno(key))
        mixed = [
            (c * weight, k, factors)
            for alpha, weight in self.operators[key].items()
            for c, k, factors in mi.faa_di_bruno(alpha)
            if k > 1
        ]
        return [(1, 1, (key,)), *mixed]

    def __add__(self, other: Any) -> Taylor:
        if not isinstance(other, Taylor):
            return self.like({**self.parts, self.zero: self.value + other})
        self._check(other)
        parts = dict(self.parts)
        for index, part in other.parts.items():
            parts[index] = parts[index] + part if index in parts else part
        return self.like(parts)

    def __mul__(self, other: Any) -> Taylor:
        if not isinstance(other, Taylor):
            return self.map(lambda part: part * other)
        self._check(other)
        parts: Parts = {}
        for key in self.keys:
            terms = [
                weighted(c, self.parts[a] * other.parts[b])
                for c, a, b in self.product_rule(key)
                if a in self.parts and b in other.parts
            ]
            if terms:
                parts[key] = _sum(terms)
        return self.like(parts)

    def __sub__(self, other: Any) -> Taylor:
        return self + (-other)

    def __rsub__(self, other: Any) -> Taylor:
        return (-self) + other

    def __truediv__(self, other: Any) -> Taylor:
        return self * (1 / other)

    __radd__ = __add__
    __rmul__ = __mul__


Weight: TypeAlias = int | Array


def weighted(weight: Weight, term: Array) -> Array:
    """The weight, one number or one for each point, times a term."""
    if isinstance(weight, int):
        return term if weight == 1 else weight * term
    return weight.reshape(weight.shape + (1,) * (term.ndim - weight.ndim)) * term


def _sum(terms: Sequence[Array]) -> Array:
    return sum(terms[1:], start=terms[0])


def coordinates(
    points: Array, closure: tuple[MultiIndex, ...], operators: Sequence[Operator] = ()
) -> Taylor:
    """The points ``(..., d)`` as the identity map: first derivatives are unit vectors."""
    parts: Parts = {closure[0]: points}
    dimension = points.shape[-1]
    for axis in range(dimension):
        unit = tuple(int(i == axis) for i in range(dimension))
        lead = (1,) * (points.ndim - 1)
        vector = jnp.zeros((*lead, dimension), points.dtype).at[..., axis].set(1)
        if unit in closure:
            parts[unit] = vector
        for key, operator in enumerate(operators):
            if unit in operator:
                term = weighted(operator[unit], vector)
                parts[key] = parts[key] + term if key in parts else term
    return Taylor(parts, closure, operators)


def square(x: Taylor | Array) -> Taylor | Array:
    """``x·x``, each symmetric pair of Leibniz' rule computed once."""
    if not isinstance(x, Taylor):
        return x * x
    parts: Parts = {}
    for key in x.keys:
        terms = [
            weighted(c if a == b else 2 * c, x.parts[a] * x.parts[b])
            for c, a, b in x.product_rule(key)
            if x.keys.index(a) <= x.keys.index(b) and a in x.parts and b in x.parts
        ]
        if terms:
            parts[key] = _sum(terms)
    return x.like(parts)


def column(x: Any, i: int) -> Any:
    """The ``i``-th feature of an array or a series, with its axis kept."""
    chosen = slice(i, i + 1)
    return x.feature(chosen) if isinstance(x, Taylor) else x[..., chosen]


def concatenate(items: Sequence[Any]) -> Any:
    """Join along the feature axis."""
    if not isinstance(items[0], Taylor):
        return jnp.concatenate(items, axis=-1)
    for item in items[1:]:
        items[0]._check(item)
    present = [k for k in items[0].keys if any(k in item.parts for item in items)]
    return items[0].like(
        {k: jnp.concatenate([item[k] for item in items], axis=-1) for k in present}
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
    for key in x.keys:
        by_order: dict[int, list[Array]] = {}
        for weight, k, factors in x.chain_rule(key):
            if all(f in x.parts for f in factors):
                term = _product([x.parts[f] for f in factors])
                by_order.setdefault(k, []).append(
                    values[k] if term is None else weighted(weight, term)
                )
        if by_order:
            parts[key] = _sum(
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
    return x.like(_chain(derivatives(x.value, x.order), x))


def _compose_forward(derivatives: Derivatives, x: Taylor) -> tuple[Taylor, Taylor]:
    return _compose(derivatives, x), x


def _compose_backward(derivatives: Derivatives, x: Taylor, cotangent: Taylor) -> tuple[Taylor]:
    slope = _chain(derivatives(x.value, x.order + 1)[1:], x)
    terms: dict[Key, list[Array]] = {key: [] for key in x.parts}
    for upper, bar in cotangent.parts.items():
        for weight, a, b in x.product_rule(upper):
            if a in slope and b in terms:
                terms[b].append(weighted(weight, slope[a] * bar))
    parts = {
        key: _unbroadcast(_sum(terms[key]), part.shape) if terms[key] else jnp.zeros_like(part)
        for key, part in x.parts.items()
    }
    coefficients = [
        {alpha: _by_coefficient(derivatives, x, key, alpha, cotangent) for alpha in operator}
        for key, operator in enumerate(x.operators)
    ]
    return (Taylor(parts, x.indices, coefficients),)


def _by_coefficient(
    derivatives: Derivatives, x: Taylor, key: int, alpha: MultiIndex, cotangent: Taylor
) -> Array:
    """The cotangent of one coefficient of an operator, which later layers use too: dead code unless
    parameters of the equation are differentiated."""
    coefficient, later = x.operators[key][alpha], cotangent.operators[key][alpha]
    values = derivatives(x.value, x.order)
    terms = [
        reduce(mul, (x.parts[f] for f in factors), c * values[k])
        for c, k, factors in mi.faa_di_bruno(alpha)
        if k > 1 and all(f in x.parts for f in factors)
    ]
    if not terms or key not in cotangent.parts:
        return later
    each = _sum(terms) * cotangent.parts[key]
    if coefficient.size == 1:
        return later + jnp.sum(each).reshape(coefficient.shape)
    return later + jnp.sum(each, axis=tuple(range(coefficient.ndim, each.ndim)))


def _unbroadcast(array: Array, shape: tuple[int, ...]) -> Array:
    """Sum over the axes along which ``shape`` was broadcast."""
    axes = tuple(i for i, (a, b) in enumerate(zip(array.shape, shape, strict=True)) if a != b)
    return jnp.sum(array, axis=axes, keepdims=True) if axes else array


_compose.defvjp(_compose_forward, _compose_backward)
