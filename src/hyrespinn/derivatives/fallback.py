"""Derivatives through any JAX function: the way for everything that is not a built-in layer."""

from __future__ import annotations

from collections.abc import Callable
from math import factorial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from . import multiindex as mi
from .taylor import Taylor, weighted


def lift(function: Callable[[Array], Array], x: Any) -> Any:
    """Apply any JAX function that acts on each point of a batch by itself.

    The series ``x`` is turned into the polynomial ``Σ x_μ εᵘ/μ!`` in small offsets ``ε``, which
    all points share; nested forward mode of ``function`` along ``ε`` then gives every derivative,
    mixed ones included, at the cost of one pass of nested ``jvp`` each.

    >>> from .taylor import coordinates
    >>> x = coordinates(jnp.array([[2.0]]), ((0,), (1,), (2,)))
    >>> float(lift(lambda a: a**3, x)[(2,)][0, 0])
    12.0
    """
    if not isinstance(x, Taylor):
        return function(x)
    dimension = len(x.zero)

    def along(*offsets: Array) -> Array:
        total = x.value
        for index in x.indices[1:]:
            if (part := x.parts.get(index)) is not None:
                weight: Any = 1 / _factorial(index)
                for offset, n in zip(offsets, index, strict=True):
                    weight = weight * offset**n
                total = total + weight * part
        return function(total)

    origin = (jnp.zeros((), x.dtype),) * dimension
    parts: dict[Any, Array] = {index: _partial(along, index)(*origin) for index in x.indices}
    highest = {alpha for operator in x.operators for alpha in operator}
    mixed = {alpha: _partial(along, alpha)(*origin) for alpha in sorted(highest)}
    for key, operator in enumerate(x.operators):
        # The polynomial has none of the operator's own derivatives: theirs is the linear term.
        parts[key] = jax.jvp(function, (x.value,), (x[key],))[1]
        for alpha, weight in operator.items():
            parts[key] = parts[key] + weighted(weight, mixed[alpha])
    return x.like(parts)


def propagate(function: Callable[[Any], Any], x: Any) -> Any:
    """A whole network at a series: layer by layer where its layers take one, else by :func:`lift`.

    A network of plain JAX functions fails at once on a series, while it is traced, and costs
    nothing but that try; a mistake inside it shows again, on arrays, in the second one.
    """
    if not isinstance(x, Taylor):
        return function(x)
    try:
        result = function(x)
    except (TypeError, ValueError, KeyError, AttributeError, NotImplementedError):
        return lift(function, x)
    return result if isinstance(result, Taylor) else lift(function, x)


def _factorial(index: mi.MultiIndex) -> float:
    result = 1.0
    for n in index:
        result *= factorial(n)
    return result


def _partial(function: Callable[..., Array], index: mi.MultiIndex) -> Callable[..., Array]:
    """The partial derivative of ``function(*scalars)`` by nested forward mode."""
    for axis, n in enumerate(index):
        for _ in range(n):
            function = _along_axis(function, axis)
    return function


def _along_axis(function: Callable[..., Array], axis: int) -> Callable[..., Array]:
    def derivative(*scalars: Array) -> Array:
        def single(s: Array) -> Array:
            return function(*scalars[:axis], s, *scalars[axis + 1 :])

        return jax.jvp(single, (scalars[axis],), (jnp.ones_like(scalars[axis]),))[1]

    return derivative
