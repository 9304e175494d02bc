"""The part of a residual that is linear in its highest derivatives.

``u_t − ν u_xx + f(u)`` asks for ``u_t`` and ``u_xx`` in one combination alone, with coefficients
that depend on the point and on nothing else. A network then carries that combination through its
layers in place of its terms (:mod:`hyrespinn.derivatives.taylor`): three arrays for the equation
above instead of four, five for Laplace's in three dimensions instead of seven.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from ..derivatives import MultiIndex, Operator, Taylor, closure
from .dependence import Origin, algebraic_inputs, origins
from .fields import Columns

T = TypeVar("T")
LONG = 200
"""The most operations of a program that is not compiled as a whole."""

Parameters = Mapping[str, Any]
Residuals = Callable[[Taylor | Mapping[MultiIndex, Any], Array], dict[str, Array]]
"""Derivatives of the fields, the fields on a last axis, and the points, to residuals by name."""
Family = Callable[[Parameters], Residuals]
"""The same for any values of the parameters."""


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
    """``indices`` are needed in operators alone, the derivatives of ``closure`` one by one.

    ``uniform`` are the slopes that are the same everywhere, and change with parameters alone.
    """

    indices: tuple[MultiIndex, ...]
    closure: tuple[MultiIndex, ...]
    places: tuple[Place, ...]
    terms: tuple[Terms, ...]
    uniform: frozenset[Slope]
    requested: tuple[MultiIndex, ...]
    fields: int

    def at(
        self, function: Residuals, points: Float[Array, "n d"]
    ) -> tuple[list[Operator], list[Array | float]]:
        """The operators at points, and by what that of each place is multiplied."""
        varying = {c for terms in self.terms for c in terms.values() if isinstance(c, Slope)}
        wanted = varying | {place.factor for place in self.places if place.factor is not None}
        values = self._values(function, points, wanted - self.uniform)
        anywhere = self._values(function, points[:1], wanted & self.uniform)
        values |= {slope: value[0] for slope, value in anywhere.items()}
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

    def _values(
        self, function: Residuals, points: Array, wanted: Collection[Slope]
    ) -> dict[Slope, Array]:
        if not wanted:
            return {}
        found = _slopes_anywhere(function, self.requested, self.fields, points, wanted)
        return {slope: found[slope] for slope in wanted}

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
    family: Family,
    requested: Collection[MultiIndex],
    fields: int,
    points: Float[Array, "n d"],
    parameters: Mapping[str, float],
) -> PrincipalPart | None:
    """The principal part, or ``None`` where carrying it would save nothing.

    It is read off the traced residual, and tested on ``points`` of the domain. A residual that
    this is too much for (one that has no forward derivative, say) is simply not taken apart.
    ``parameters`` are those whose values may become others.
    """
    known = {name: jnp.asarray(value, points.dtype) for name, value in parameters.items()}
    try:
        with jax.debug_nans(False):
            part = _find(family, tuple(sorted(requested)), fields, points, known)
            return part if part and _holds(part, family(known), points) else None
    except Exception:  # whatever is wrong with the residual itself shows again in training
        return None


def slopes_of(
    function: Residuals,
    points: Array,
    values: Mapping[MultiIndex, Columns],
    chosen: Sequence[tuple[int, MultiIndex]],
) -> dict[Slope, Array]:
    """The slopes of all residuals by some derivatives, each of one field."""
    found: dict[Slope, Array] = {}
    for column, index in chosen:
        own = values[index].fields

        def along(
            field: Array,
            index: MultiIndex = index,
            column: int = column,
            own: tuple[Array, ...] = own,
        ) -> dict[str, Array]:
            changed = tuple(field if i == column else f for i, f in enumerate(own))
            return function({**values, index: Columns(changed)}, points)

        tangents = jax.jvp(along, (own[column],), (jnp.ones_like(own[column]),))[1]
        found |= {Slope(name, column, index): t for name, t in tangents.items()}
    return found


def _slopes_anywhere(
    function: Residuals,
    requested: Sequence[MultiIndex],
    fields: int,
    points: Array,
    wanted: Collection[Slope],
) -> dict[Slope, Array]:
    """Slopes that do not depend on the fields, and so may be taken at any values of them."""
    anything = jnp.ones(points.shape[0], points.dtype)
    values = dict.fromkeys(requested, Columns((anything,) * fields))
    chosen = list(dict.fromkeys((s.column, s.derivative) for s in sorted(wanted)))
    return slopes_of(function, points, values, chosen)


def _find(
    family: Family,
    requested: tuple[MultiIndex, ...],
    fields: int,
    points: Array,
    parameters: Mapping[str, Array],
) -> PrincipalPart | None:
    highest = _highest(requested)
    function = family(parameters)
    ones = jnp.ones(points.shape[0], points.dtype)
    example = {index: Columns((ones,) * fields) for index in requested}
    every = [(column, index) for index in highest for column in range(fields)]

    def slopes(
        points: Array, parameters: Parameters, values: Mapping[MultiIndex, Columns]
    ) -> dict[Slope, Array]:
        return slopes_of(family(parameters), points, values, every)

    # Inputs are counted flat: the points, then the parameters, then the fields.
    found = origins(slopes, points, parameters, example)
    given = frozenset(range(1, 1 + len(parameters)))
    linear = _linear_indices(function, highest, requested, fields, points, found, given | {0})
    uniform = {slope for slope, o in found.items() if o.inputs and o.inputs <= given}
    settled = {slope for slope, origin in found.items() if not origin.inputs}
    constants = _constants(function, requested, fields, points, settled)
    places, operators = _operators(found, linear, constants)
    used = tuple(index for index in linear if any(index in terms for terms in operators))
    if len(operators) >= len(used):
        return None
    dimension = points.shape[1]
    carried = closure([i for i in closure(requested, dimension) if i not in used], dimension)
    return PrincipalPart(
        used, carried, tuple(places), tuple(operators), frozenset(uniform), requested, fields
    )


def _highest(requested: Sequence[MultiIndex]) -> list[MultiIndex]:
    """The derivatives that no other one is a derivative of."""
    return [i for i in requested if not any(_below(i, j) for j in requested)]


def _constants(
    function: Residuals,
    requested: Sequence[MultiIndex],
    fields: int,
    points: Array,
    settled: Collection[Slope],
) -> dict[Slope, float]:
    """The values of slopes that depend on nothing."""
    if not settled:
        return {}
    values = _run(lambda p: _slopes_anywhere(function, requested, fields, p, settled), points)
    return {slope: float(values[slope][0]) for slope in settled}


def _operators(
    found: Mapping[Slope, Origin], linear: Sequence[MultiIndex], constants: Mapping[Slope, float]
) -> tuple[list[Place], list[Terms]]:
    """The linear operators of the residuals, and where each of them stands, with which factor."""
    places: list[Place] = []
    operators: list[Terms] = []
    first: dict[Origin, Slope] = {}  # equal coefficients are known by the first of them
    for residual, column in dict.fromkeys((s.residual, s.column) for s in found):
        own = {index: Slope(residual, column, index) for index in linear}
        coefficients: Terms = {
            i: constants[s] if s in constants else first.setdefault(found[s], s)
            for i, s in own.items()
            if constants.get(s, 1.0)
        }
        if coefficients:
            terms, factor = _normalised(coefficients)
            # Fields with the same operator share it.
            if terms not in operators:
                operators.append(terms)
            places.append(Place(residual, column, operators.index(terms), factor))
    return places, operators


def _linear_indices(
    function: Residuals,
    highest: Sequence[MultiIndex],
    requested: Sequence[MultiIndex],
    fields: int,
    points: Array,
    found: Mapping[Slope, Origin],
    known: frozenset[int],
) -> list[MultiIndex]:
    """Those of the highest derivatives whose slopes depend on what is known alone."""
    ones = jnp.ones(points.shape[0], points.dtype)
    example = {index: Columns((ones,) * fields) for index in requested}
    leaves = [index for index in requested for _ in range(fields)]
    algebraic = algebraic_inputs(function, example, points)
    others = {index for leaf, index in enumerate(leaves) if leaf not in algebraic}
    return [
        index
        for index in highest
        if index not in others
        and all(o.inputs <= known for slope, o in found.items() if slope.derivative == index)
    ]


def is_linear_with_constant_coefficients(
    function: Residuals, requested: Sequence[MultiIndex], fields: int, points: Float[Array, "n d"]
) -> bool:
    """Whether a residual is a sum of the derivatives it reads, each times a number.

    Read off its program: it does not look at the points, nor do its slopes at anything, and it
    vanishes with the fields.
    """
    ones = jnp.ones(points.shape[0], points.dtype)
    example = {index: Columns((ones,) * fields) for index in sorted(requested)}
    every = [(column, index) for index in sorted(requested) for column in range(fields)]
    if any(
        0 in origin.inputs
        for origin in origins(lambda p, v: function(v, p), points, example).values()
    ):
        return False
    if len(algebraic_inputs(function, example, points)) <= len(every):  # the points count as one
        return False
    slopes = origins(lambda p, v: slopes_of(function, p, v, every), points, example)
    if any(origin.inputs for origin in slopes.values()):
        return False
    nothing = dict.fromkeys(requested, Columns((jnp.zeros_like(ones),) * fields))
    return not any(np.asarray(vector).any() for vector in function(nothing, points).values())


def _normalised(coefficients: Terms) -> tuple[Terms, Slope | None]:
    """An operator without the factor that all of its coefficients share, and that factor.

    So ``κ(x)(u_xx + u_yy)`` is carried as ``u_xx + u_yy``, without a product at every layer.
    """
    first, *others = coefficients.values()
    if isinstance(first, Slope) and all(c == first for c in others):
        return dict.fromkeys(coefficients, 1.0), first
    return coefficients, None


def _holds(part: PrincipalPart, function: Residuals, points: Array) -> bool:
    """Whether it gives the residual itself at random values, on another number of points."""
    points = points[1:]
    shape = (points.shape[0], part.fields)
    scale = np.logspace(-3, 3, points.shape[0])[:, None]
    random = np.random.default_rng(0)
    values = {
        index: jnp.asarray(scale * random.normal(size=shape), points.dtype)
        for index in part.requested
    }

    def both(values: Mapping[MultiIndex, Array], points: Array) -> list[dict[str, Array]]:
        operators, factors = part.at(function, points)
        applied = [
            sum(
                (c.reshape(-1, 1) * values[index] for index, c in operator.items()),
                start=jnp.zeros(shape, points.dtype),
            )
            for operator in operators
        ]
        found = part.residuals(function, values, applied, factors, points)
        return [function(values, points), found]

    direct, others = _run(both, values, points)
    rounding = float(jnp.finfo(points.dtype).eps) ** 0.5
    return all(_agree(np.asarray(direct[n]), np.asarray(others[n]), rounding) for n in direct)


def _run(function: Callable[..., T], *arguments: Any) -> T:
    """Short programs run operation by operation, each of which is compiled once for all problems;
    long ones are compiled as a whole."""
    traced = jax.jit(function).trace(*arguments)
    if len(traced.jaxpr.eqns) > LONG:
        return traced.lower().compile()(*arguments)
    return function(*arguments)


def _agree(expected: np.ndarray, found: np.ndarray, rounding: float) -> bool:
    finite = np.isfinite(expected)
    return bool(finite.sum() >= finite.size / 4) and np.allclose(
        found[finite],
        expected[finite],
        rtol=rounding,
        atol=rounding * float(np.median(np.abs(expected[finite]))),
    )


def _below(a: MultiIndex, b: MultiIndex) -> bool:
    return a != b and all(i <= j for i, j in zip(a, b, strict=True))
