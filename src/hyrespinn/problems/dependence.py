"""What the results of a function depend on, and how, read from its traced program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class Origin(NamedTuple):
    """Where a number comes from: the inputs it may depend on, and the expression itself.

    Two origins are equal only if they are the same expression of the same inputs; the converse
    does not hold.
    """

    inputs: frozenset[int]
    expression: Any


Visit = Callable[[Any, Sequence[Origin]], None]


def origins(function: Callable[..., Any], *arguments: Any) -> dict[Any, Origin]:
    """The origin of every entry of the dict that ``function`` returns; inputs are counted flat.

    >>> found = origins(lambda x, y: {"a": 2 * x, "b": 2 * x, "c": x * y}, 1.0, 1.0)
    >>> sorted(found["c"].inputs), found["a"] == found["b"]
    ([0, 1], True)
    """
    outputs, structure = _traced(function, arguments, lambda equation, given: None)
    return jax.tree.unflatten(structure, outputs)


def algebraic_inputs(function: Callable[..., Any], *arguments: Any) -> set[int]:
    """The inputs, counted flat, that sums, products and rearrangements alone are made of.

    For these, derivatives tell everything. They do not for what goes into a comparison or a sign,
    whose derivative is zero although it changes, or into a function with a derivative of its own
    (``custom_jvp``, ``stop_gradient``).

    >>> algebraic_inputs(lambda x, y: 2 * x + jnp.sign(y), 1.0, 1.0)
    {0}
    """
    other: set[int] = set()

    def visit(equation: Any, given: Sequence[Origin]) -> None:
        name = equation.primitive.name
        if name == "select_n":
            given = given[:1]  # what chooses; the cases stay as good as they were
        elif name == "convert_element_type":
            given = [] if jnp.issubdtype(equation.params["new_dtype"], jnp.floating) else given
        elif name in ALGEBRAIC:
            given = []
        other.update(*(origin.inputs for origin in given))

    _traced(function, arguments, visit)
    return set(range(len(jax.tree.leaves(arguments)))) - other


ALGEBRAIC = frozenset(
    {"add", "add_any", "sub", "neg", "mul", "div", "dot_general", "reduce_sum", "copy", "reshape"}
    | {"broadcast_in_dim", "squeeze", "expand_dims", "slice", "concatenate", "transpose", "split"}
)
"""Sums, products and rearrangements."""


def _traced(
    function: Callable[..., Any], arguments: Sequence[Any], visit: Visit
) -> tuple[list[Origin], Any]:
    closed, shape = jax.make_jaxpr(function, return_shape=True)(*arguments)
    inputs = [Origin(frozenset({i}), ("input", i)) for i in range(len(closed.jaxpr.invars))]
    return _thother(closed, inputs, visit), jax.tree.structure(shape)


def _thother(closed: Any, inputs: Sequence[Origin], visit: Visit) -> list[Origin]:
    """The origins of a program's outputs, given those of its inputs; calls are followed."""
    jaxpr = closed.jaxpr
    nothing: frozenset[int] = frozenset()
    known = {
        variable: Origin(nothing, _constant(value))
        for variable, value in zip(jaxpr.constvars, closed.consts, strict=True)
    }
    known |= dict(zip(jaxpr.invars, inputs, strict=True))

    def of(atom: Any) -> Origin:
        if hasattr(atom, "val"):
            return Origin(nothing, ("literal", str(atom.aval), repr(atom.val)))
        return known[atom]

    for equation in jaxpr.eqns:
        given = [of(atom) for atom in equation.invars]
        if equation.primitive.name in ("jit", "pjit"):
            results = _thother(equation.params["jaxpr"], given, visit)
        else:
            visit(equation, given)
            together = nothing.union(*(origin.inputs for origin in given))
            key = _expression(equation, given)
            results = [Origin(together, (key, i)) for i in range(len(equation.outvars))]
        known.update(zip(equation.outvars, results, strict=True))
    return [of(atom) for atom in jaxpr.outvars]


def _constant(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic) or (
        isinstance(value, jax.Array)
        and not isinstance(value, jax.core.Tracer)
        and not jnp.issubdtype(value.dtype, jax.dtypes.extended)
    ):
        array = np.asarray(value)
        return hash((array.shape, str(array.dtype), array.tobytes()))
    return ("unique", id(value))


def _expression(equation: Any, given: Sequence[Origin]) -> Any:
    """Equal for equal operations on equal arguments; one with functions inside equals itself."""
    arguments = tuple(origin.expression for origin in given)
    settings = jax.tree.leaves(list(equation.params.values()))
    if any(callable(s) or hasattr(s, "eqns") for s in settings):
        return hash(("unique", id(equation), arguments))
    return hash((equation.primitive.name, str(equation.params), arguments))
