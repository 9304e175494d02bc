"""The part of a residual that is linear in its highest derivatives.

``u_t − ν u_xx + f(u)`` asks for ``u_t`` and ``u_xx`` in one combination alone, with coefficients
that depend on the point and on nothing else. A network then carries that combination through its
layers in place of its terms (:mod:`hyrespinn.derivatives.taylor`): three arrays for the equation
above instead of four, five for Laplace's in three dimensions instead of seven.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from ..derivatives import MultiIndex, Operator, closure
from .dependence import Origin, algebraic_inputs, origins

Residuals = Callable[[Mapping[MultiIndex, Any], Array], dict[str, Array]]
"""Derivatives of the fields, the fields on a last axis, and the points, to residuals by name."""


class Slope(NamedTuple):
    """The derivative of a residual by a derivative of a field."""

    residual: str
    column: int  # of the field
    derivative: MultiIndex


class Place(NamedTuple):
    """``factor · operator(field)`` is the principal part of a residual in one field."""

    residual: str
    column: int
    operator: int
    factor: Slope | None


Terms = dict[MultiIndex, float | Slope]
"""The coefficients of an operator: constant, or the slope that they are."""


@dataclass(frozen=True)
class PrincipalPart:
    """``indices`` are needed in operators alone, the derivatives of ``closure`` one by one."""

    indices: tuple[MultiIndex, ...]
    closure: tuple[MultiIndex, ...]
    places: tuple[Place, ...]
    terms: tuple[Terms, ...]
    slopes: Callable[[Array, Collection[Slope]], dict[Slope, Array]]

    def at(self, points: Float[Array, "n d"]) -> tuple[list[Operator], list[Array | float]]:
        """The operators at points, and by what that of each place is multiplied."""
        varying = {c for terms in self.terms for c in terms.values() if isinstance(c, Slope)}
        wanted = varying | {place.factor for place in self.places if place.factor is not None}
        values = self.slopes(points, wanted) if wanted else {}
        # Or the compiler works a coefficient out anew for every feature of a point.
        values = jax.lax.optimization_barrier(values)
        operators = [
            {
                index: values[c] if isinstance(c, Slope) else jnp.asarray(c, points.dtype)
                for index, c in terms.items()
            }
            for terms in self.terms
        ]
        factors = [values[p.factor] if p.factor is not None else 1.0 for p in self.places]
        return operators, factors

    def residuals(
        self,
        function: Residuals,
        carried: Mapping[MultiIndex, Array],
        applied: Sequence[Array],
        factors: Sequence[Array | float],
        points: Array,
    ) -> dict[str, Array]:
        """The residuals from derivatives carried one by one and the operators ``applied``."""
        # What is linear is left out, and added as a whole.
        absent = dict.fromkeys(self.indices, jnp.zeros_like(applied[0]))
        found = function({**carried, **absent}, points)
        for place, factor in zip(self.places, factors, strict=True):
            term = factor * applied[place.operator][:, place.column]
            found[place.residual] = found[place.residual] + term
        return found


def find_principal_part(
    function: Residuals, requested: set[MultiIndex], fields: int, points: Float[Array, "n d"]
) -> PrincipalPart | None:
    """The principal part, or ``None`` where carrying it would save nothing.

    It is read off the traced residual, and tested on ``points`` of the domain. A residual that
    this is too much for (one that has no forward derivative, say) is simply not taken apart.
    """
    try:
        with jax.debug_nans(False):
            part = _find(function, requested, fields, points)
            return part if part and _holds(part, function, requested, fields, points) else None
    except Exception:  # whatever is wrong with the residual itself shows again in training
        return None


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Columns:
    """Fields apart from each other, read as the columns of an array are."""

    fields: tuple[Any, ...]  # JAX also builds it around what are not arrays

    def __getitem__(self, place: Any) -> Array:
        return self.fields[place[-1]]


def _find(
    function: Residuals, requested: set[MultiIndex], fields: int, points: Array
) -> PrincipalPart | None:
    highest = [i for i in sorted(requested) if not any(_below(i, j) for j in requested)]
    every = [(column, index) for index in highest for column in range(fields)]
    ones = jnp.ones(points.shape[0], points.dtype)
    example = {index: Columns((ones,) * fields) for index in sorted(requested)}

    def slopes(
        points: Array,
        values: Mapping[MultiIndex, Columns],
        chosen: Sequence[tuple[int, MultiIndex]],
    ) -> dict[Slope, Array]:
        found: dict[Slope, Array] = {}
        for column, index in chosen:
            own = values[index].fields

            def along(field: Array, index: MultiIndex = index, column: int = column) -> Any:
                changed = tuple(field if i == column else f for i, f in enumerate(own))
                return function({**values, index: Columns(changed)}, points)

            tangents = jax.jvp(along, (own[column],), (jnp.ones_like(own[column]),))[1]
            found |= {Slope(name, column, index): t for name, t in tangents.items()}
        return found

    def slopes_at(points: Array, wanted: Collection[Slope]) -> dict[Slope, Array]:
        anything = jnp.ones(points.shape[0], points.dtype)  # no slope depends on it
        values = dict.fromkeys(requested, Columns((anything,) * fields))
        chosen = list(dict.fromkeys((s.column, s.derivative) for s in sorted(wanted)))
        found = slopes(points, values, chosen)
        return {slope: found[slope] for slope in wanted}

    leaves = [index for index in sorted(requested) for _ in range(fields)]
    algebraic = algebraic_inputs(function, example, points)
    others = {index for leaf, index in enumerate(leaves) if leaf not in algebraic}
    found = origins(lambda points, values: slopes(points, values, every), points, example)
    linear = [
        index
        for index in highest
        if index not in others
        and all(
            origin.inputs <= {0} for slope, origin in found.items() if slope.derivative == index
        )
    ]
    settled = {slope for slope, origin in found.items() if not origin.inputs}
    known = jax.jit(slopes_at, static_argnums=1)(points, tuple(settled))
    constants = {slope: float(value[0]) for slope, value in known.items()}
    places: list[Place] = []
    operators: list[Terms] = []
    first: dict[Origin, Slope] = {}  # equal coefficients are known by the first of them
    for residual, column in dict.fromkeys((s.residual, s.column) for s in found):
        own = {index: Slope(residual, column, index) for index in linear}
        present = {i: s for i, s in own.items() if constants.get(s, 1.0)}
        coefficients: Terms = {
            i: constants[s] if s in constants else first.setdefault(found[s], s)
            for i, s in present.items()
        }
        if coefficients:
            terms, factor = _normalised(coefficients)
            # Fields with the same operator share it.
            if terms not in operators:
                operators.append(terms)
            places.append(Place(residual, column, operators.index(terms), factor))
    used = tuple(index for index in linear if any(index in terms for terms in operators))
    if len(operators) >= len(used):
        return None
    dimension = points.shape[1]
    carried = [i for i in closure(requested, dimension) if i not in used]
    return PrincipalPart(
        used, closure(carried, dimension), tuple(places), tuple(operators), slopes_at
    )


def _normalised(coefficients: Terms) -> tuple[Terms, Slope | None]:
    """An operator without the factor that all of its coefficients share, and that factor.

    So ``κ(x)(u_xx + u_yy)`` is carried as ``u_xx + u_yy``, without a product at every layer.
    """
    first, *others = coefficients.values()
    if isinstance(first, Slope) and all(c == first for c in others):
        return dict.fromkeys(coefficients, 1.0), first
    return coefficients, None


def _holds(
    part: PrincipalPart,
    function: Residuals,
    requested: set[MultiIndex],
    fields: int,
    points: Array,
) -> bool:
    """Whether it gives the residual itself at random values, on another number of points."""
    points = points[1:]
    shape = (points.shape[0], fields)
    scale = np.logspace(-3, 3, points.shape[0])[:, None]
    random = np.random.default_rng(0)
    values = {
        index: jnp.asarray(scale * random.normal(size=shape), points.dtype)
        for index in sorted(requested)
    }

    def both(values: Mapping[MultiIndex, Array], points: Array) -> list[dict[str, Array]]:
        operators, factors = part.at(points)
        applied = [
            sum(
                (c.reshape(-1, 1) * values[index] for index, c in operator.items()),
                start=jnp.zeros(shape, points.dtype),
            )
            for operator in operators
        ]
        return [
            function(values, points),
            part.residuals(function, values, applied, factors, points),
        ]

    direct, others = jax.jit(both)(values, points)
    rounding = float(jnp.finfo(points.dtype).eps) ** 0.5
    for name in direct:
        expected, found = np.asarray(direct[name]), np.asarray(others[name])
        finite = np.isfinite(expected)
        if finite.sum() < finite.size / 4 or not np.allclose(
            found[finite],
            expected[finite],
            rtol=rounding,
            atol=rounding * float(np.median(np.abs(expected[finite]))),
        ):
            return False
    return True


def _below(a: MultiIndex, b: MultiIndex) -> bool:
    return a != b and all(i <= j for i, j in zip(a, b, strict=True))
