"""The part of a residual that is linear in its highest derivatives.

``u_t − ν u_xx + f(u)`` asks for ``u_t`` and ``u_xx`` in one combination alone, with coefficients
that depend on the point and on nothing else. A network then carries that combination through its
layers in place of its terms (:mod:`hyrespinn.derivatives.taylor`): three arrays for the equation
above instead of four, five for Laplace's in three dimensions instead of seven.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from ..derivatives import MultiIndex, Operator, closure
from .dependence import Origin, origins

Residuals = Callable[[Mapping[MultiIndex, Array], Array], dict[str, Array]]
"""Derivatives ``(points, fields)`` of the fields, and the points, to residuals by name."""

Slope = tuple[str, int, MultiIndex]
"""The derivative of a residual by a derivative of a field: their name, column and multi-index."""


class Place(NamedTuple):
    """``factor · operator(field)`` is the linear part of a residual in one field."""

    residual: str
    column: int
    operator: int
    factor: Slope | None


@dataclass(frozen=True)
class LinearPart:
    """``indices`` are needed in ``operators`` alone, the derivatives of ``closure`` one by one."""

    indices: tuple[MultiIndex, ...]
    closure: tuple[MultiIndex, ...]
    places: tuple[Place, ...]
    _terms: tuple[dict[MultiIndex, float | Slope], ...]
    _slopes: Callable[[Array], dict[Slope, Array]]

    def operators(self, points: Array) -> list[Operator]:
        """The operators with their coefficients at points."""
        wanted = {c for terms in self._terms for c in terms.values() if isinstance(c, tuple)}
        values = {s: v for s, v in self._slopes(points).items() if s in wanted} if wanted else {}
        # Or the compiler works a coefficient out anew for every feature of a point.
        values = jax.lax.optimization_barrier(values)
        return [
            {
                index: values[c] if isinstance(c, tuple) else jnp.asarray(c, points.dtype)
                for index, c in terms.items()
            }
            for terms in self._terms
        ]

    def factors(self, points: Array) -> list[Array | float]:
        """What the operator of each place is multiplied by."""
        values = self._slopes(points) if any(place.factor for place in self.places) else {}
        return [values[place.factor] if place.factor else 1.0 for place in self.places]


def find_linear_part(
    residuals: Residuals, requested: set[MultiIndex], fields: int, points: Float[Array, "n d"]
) -> LinearPart | None:
    """The linear part, or ``None`` where carrying it would save nothing.

    It is read off the traced residual; ``points`` are some of the domain, to test it on.
    """
    dimension = points.shape[1]
    highest = [i for i in sorted(requested) if not any(_below(i, j) for j in requested)]

    def slopes(points: Array, values: Mapping[MultiIndex, Array]) -> dict[Slope, Array]:
        found: dict[Slope, Array] = {}
        for index in highest:
            for column in range(fields):

                def along(part: Array, index: MultiIndex = index) -> dict[str, Array]:
                    return residuals({**values, index: part}, points)

                direction = jnp.zeros_like(values[index]).at[:, column].set(1)
                tangents = jax.jvp(along, (values[index],), (direction,))[1]
                found |= {(name, column, index): t for name, t in tangents.items()}
        return found

    def arbitrary(count: int, dtype: Any) -> dict[MultiIndex, Array]:
        return dict.fromkeys(requested, jnp.ones((count, fields), dtype))

    def slopes_at(points: Array) -> dict[Slope, Array]:
        return slopes(points, arbitrary(points.shape[0], points.dtype))

    found = origins(slopes, points, arbitrary(points.shape[0], points.dtype))
    linear = [
        index
        for index in highest
        if all(origin.inputs <= {0} for slope, origin in found.items() if slope[2] == index)
    ]
    example = jax.jit(slopes_at)(points)
    constants = {s: float(example[s][0]) for s, origin in found.items() if not origin.inputs}
    places: list[Place] = []
    operators: list[dict[MultiIndex, float | Slope]] = []
    for residual, column in dict.fromkeys(slope[:2] for slope in found):
        own = {index: (residual, column, index) for index in linear}
        present = {i: s for i, s in own.items() if constants.get(s, 1.0)}
        if present:
            terms, factor = _normalised(present, constants, found)
            # Fields with the same operator share it.
            if terms not in operators:
                operators.append(terms)
            places.append(Place(residual, column, operators.index(terms), factor))
    used = tuple(index for index in linear if any(index in terms for terms in operators))
    if len(operators) >= len(used):
        return None
    carried = [i for i in closure(requested, dimension) if i not in used]
    part = LinearPart(used, closure(carried, dimension), tuple(places), tuple(operators), slopes_at)
    return part if _holds(part, residuals, requested, fields, points) else None


def recombined(
    part: LinearPart,
    residuals: Residuals,
    values: Mapping[MultiIndex, Array],
    applied: Sequence[Array],
    points: Array,
) -> dict[str, Array]:
    """The residuals from the derivatives carried one by one and the operators ``applied``."""
    # What is linear is left out, and added as a whole.
    absent = dict.fromkeys(part.indices, jnp.zeros_like(next(iter(values.values()))))
    found = residuals({**values, **absent}, points)
    for place, factor in zip(part.places, part.factors(points), strict=True):
        term = factor * applied[place.operator][:, place.column]
        found[place.residual] = found[place.residual] + term
    return found


def _holds(
    part: LinearPart, residuals: Residuals, requested: set[MultiIndex], fields: int, points: Array
) -> bool:
    """Whether it gives the residual itself at random values.

    It does not where slopes do not tell all, as with ``stop_gradient`` or a sign.
    """
    shape = (points.shape[0], fields)
    scale = np.logspace(-2, 2, points.shape[0])[:, None]
    random = np.random.default_rng(0)
    values = {
        index: jnp.asarray(scale * random.normal(size=shape), points.dtype)
        for index in sorted(requested)
    }

    def both(values: Mapping[MultiIndex, Array], points: Array) -> list[dict[str, Array]]:
        applied = [
            sum(
                (c.reshape(-1, 1) * values[index] for index, c in operator.items()),
                start=jnp.zeros(shape, points.dtype),
            )
            for operator in part.operators(points)
        ]
        return [residuals(values, points), recombined(part, residuals, values, applied, points)]

    direct, others = jax.jit(both)(values, points)
    rounding = float(jnp.finfo(points.dtype).eps) ** 0.5
    return all(
        np.allclose(others[name], direct[name], rtol=rounding, atol=1e-6, equal_nan=True)
        for name in direct
    )


def _normalised(
    terms: dict[MultiIndex, Slope], constants: dict[Slope, float], found: dict[Slope, Origin]
) -> tuple[dict[MultiIndex, float | Slope], Slope | None]:
    """The coefficients of an operator; a factor that all of them share is taken out.

    So ``κ(x)(u_xx + u_yy)`` is carried as ``u_xx + u_yy``, without a product at every layer.
    """
    first, *others = terms.values()
    if first not in constants and all(found[s] == found[first] for s in others):
        return dict.fromkeys(terms, 1.0), first
    return {index: constants.get(slope, slope) for index, slope in terms.items()}, None


def _below(a: MultiIndex, b: MultiIndex) -> bool:
    return a != b and all(i <= j for i, j in zip(a, b, strict=True))
