"""Multi-indices: which partial derivatives, which lower ones they need, and the combinatorics.

A partial derivative of a function of ``d`` coordinates is a tuple of ``d`` orders:
with coordinates ``("t", "x")`` the name ``"xxt"`` is ``(1, 2)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import product
from math import comb

from ..errors import UserError

MultiIndex = tuple[int, ...]


def parse(name: str, coordinates: Sequence[str]) -> MultiIndex:
    """The multi-index of a derivative's name.

    >>> parse("xxt", ("t", "x"))
    (1, 2)
    """
    unknown = sorted(set(name) - set(coordinates))
    if unknown or not name:
        raise UserError(
            f"There is no derivative {name!r}: a derivative is named by the coordinates it is taken "
            f"along, one letter each time (such as {coordinates[-1] * 2!r}), and the coordinates here "
            f"are {', '.join(coordinates)}."
        )
    return tuple(name.count(c) for c in coordinates)


def name_of(index: MultiIndex, coordinates: Sequence[str]) -> str:
    """The name of a multi-index, coordinates in order; the value itself is the empty name.

    >>> name_of((1, 2), ("t", "x"))
    'txx'
    """
    return "".join(c * n for c, n in zip(coordinates, index, strict=True))


def order(index: MultiIndex) -> int:
    """The total order of a derivative."""
    return sum(index)


def below(index: MultiIndex) -> list[MultiIndex]:
    """Every multi-index that is nowhere larger than ``index`` (itself and zero included)."""
    return list(product(*(range(n + 1) for n in index)))


def minus(a: MultiIndex, b: MultiIndex) -> MultiIndex:
    return tuple(i - j for i, j in zip(a, b, strict=True))


def closure(indices: Iterable[MultiIndex], dimension: int) -> tuple[MultiIndex, ...]:
    """The smallest set with these indices that holds every lower one a chain rule needs, in order.

    >>> closure([(1, 0), (0, 2)], 2)
    ((0, 0), (0, 1), (1, 0), (0, 2))
    """
    needed = {(0,) * dimension}
    for index in indices:
        needed.update(below(index))
    return tuple(sorted(needed, key=lambda i: (sum(i), i)))


def binomial(a: MultiIndex, b: MultiIndex) -> int:
    """The product of binomial coefficients: the weight of ``b`` in Leibniz' rule for ``a``."""
    result = 1
    for i, j in zip(a, b, strict=True):
        result *= comb(i, j)
    return result


@cache
def leibniz(index: MultiIndex) -> tuple[tuple[int, MultiIndex, MultiIndex], ...]:
    """Leibniz' rule: ``(fg)_ν = Σ c · f_μ · g_{ν−μ}`` as a tuple of ``(c, μ, ν−μ)``."""
    return tuple((binomial(index, mu), mu, minus(index, mu)) for mu in below(index))


@cache
def faa_di_bruno(index: MultiIndex) -> tuple[tuple[int, int, tuple[MultiIndex, ...]], ...]:
    """The chain rule ``f(g)_ν = Σ c · f⁽ᵏ⁾(g) · Π g_μ`` as a tuple of ``(c, k, (μ, …))``.

    Found by differentiating one coordinate at a time, so it holds for mixed derivatives too.

    >>> faa_di_bruno((2,))
    ((1, 1, ((2,),)), (1, 2, ((1,), (1,))))
    """
    if not any(index):
        return ((1, 0, ()),)
    axis = next(i for i, n in enumerate(index) if n)
    unit = tuple(int(i == axis) for i in range(len(index)))
    terms: dict[tuple[int, tuple[MultiIndex, ...]], int] = {}

    def add(weight: int, k: int, factors: list[MultiIndex]) -> None:
        key = (k, tuple(sorted(factors, reverse=True)))
        terms[key] = terms.get(key, 0) + weight

    for weight, k, factors in faa_di_bruno(minus(index, unit)):
        add(weight, k + 1, [*factors, unit])
        for i, factor in enumerate(factors):
            raised = tuple(a + b for a, b in zip(factor, unit, strict=True))
            add(weight, k, [*factors[:i], raised, *factors[i + 1 :]])
    return tuple((weight, k, factors) for (k, factors), weight in sorted(terms.items()))
