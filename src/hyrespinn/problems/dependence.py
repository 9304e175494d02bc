"""What the results of a function depend on, read from its traced program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np


class Origin(NamedTuple):
    """Where a number comes from: the inputs it may depend on, and the expression itself.

    Two origins are equal only if they are the same expression of the same inputs; the converse
    does not hold.
    """

    inputs: frozenset[int]
    expression: Any


def origins(function: Callable[..., Any], *arguments: Any) -> dict[Any, Origin]:
    """The origin of every entry of the dict that ``function`` returns; inputs are counted flat.

    >>> found = origins(lambda x, y: {"a": 2 * x, "b": 2 * x, "c": x * y}, 1.0, 1.0)
    >>> sorted(found["c"].inputs), found["a"] == found["b"]
    ([0, 1], True)
    """
    closed, shape = jax.make_jaxpr(function, return_shape=True)(*arguments)
    jaxpr = closed.jaxpr
    inputs = [Origin(frozenset({i}), ("input", i)) for i in range(len(jaxpr.invars))]
    outputs = _through(jaxpr, closed.consts, inputs)
    return jax.tree.unflatten(jax.tree.structure(shape), outputs)


def _through(jaxpr: Any, constants: Sequence[Any], inputs: Sequence[Origin]) -> list[Origin]:
    """The origins of a program's outputs, given those of its inputs."""
    nothing: frozenset[int] = frozenset()
    known = {
        variable: Origin(nothing, _constant(value))
        for variable, value in zip(jaxpr.constvars, constants, strict=True)
    }
    known |= dict(zip(jaxpr.invars, inputs, strict=True))

    def of(atom: Any) -> Origin:
        if hasattr(atom, "val"):
            return Origin(nothing, ("literal", str(atom.aval), repr(atom.val)))
        return known[atom]

    for equation in jaxpr.eqns:
        arguments = [of(atom) for atom in equation.invars]
        name, inner = equation.primitive.name, equation.params.get("jaxpr")
        if name in ("jit", "pjit") and inner is not None:
            results = _through(inner.jaxpr, inner.consts, arguments)
        else:
            together = frozenset().union(*(a.inputs for a in arguments))
            key = _expression(equation, arguments)
            results = [Origin(together, (key, i)) for i in range(len(equation.outvars))]
        known.update(zip(equation.outvars, results, strict=True))
    return [of(atom) for atom in jaxpr.outvars]


def _constant(value: Any) -> Any:
    if isinstance(value, jax.core.Tracer):
        return ("unique", id(value))
    array = np.asarray(value)
    return hash((array.shape, str(array.dtype), array.tobytes()))


def _expression(equation: Any, arguments: Sequence[Origin]) -> Any:
    """Equal for equal operations on equal arguments; its own for one with functions inside."""
    settings = jax.tree.leaves(list(equation.params.values()))
    if any(callable(s) or hasattr(s, "eqns") for s in settings):
        return ("unique", id(equation))
    return hash((equation.primitive.name, str(equation.params), *(a.expression for a in arguments)))
