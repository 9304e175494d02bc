"""Errors and efficiencies: pure functions of numbers and arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from jaxtyping import Float


def relative_l2(
    prediction: Float[np.ndarray, "*shape"], reference: Float[np.ndarray, "*shape"]
) -> float:
    """``‖u − u*‖₂ / ‖u*‖₂`` over all points and times.

    >>> relative_l2(np.array([1.0, 1.0]), np.array([1.0, 0.0]))
    1.0
    """
    difference = float(np.linalg.norm(np.ravel(prediction - reference)))
    size = float(np.linalg.norm(np.ravel(reference)))
    if size == 0:  # nothing to be relative to
        return 0.0 if difference == 0 else float("inf")
    return difference / size


def split_components(
    axes: Mapping[str, Any], derived: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Vectors on a grid as one array a component, named after the coordinates in space.

    >>> list(split_components({"x": None, "y": None}, {"flux": np.zeros((3, 4, 2))}))
    ['flux_x', 'flux_y']
    """
    space = [name for name in axes if name != "t"]
    parts: dict[str, np.ndarray] = {}
    for name, value in derived.items():
        count = value.shape[-1]
        suffixes = [f"_{i}" for i in range(1, count + 1)]
        if count == 1:
            suffixes = [""]
        elif count == len(space):
            suffixes = [f"_{c}" for c in space]
        parts |= {f"{name}{suffix}": value[..., i] for i, suffix in enumerate(suffixes)}
    return parts


def vector_errors(
    axes: Mapping[str, Any],
    prediction: Mapping[str, np.ndarray],
    reference: Mapping[str, np.ndarray],
) -> dict[str, float]:
    """``‖q − q*‖/‖q*‖`` of each vector, and each component's error divided by the same ``‖q*‖``."""
    errors = {}
    for name, known in reference.items():
        errors[name] = relative_l2(prediction[name], known)
        size = float(np.linalg.norm(known))
        parts = split_components(axes, {name: prediction[name] - known})
        if len(parts) > 1:
            errors |= {
                part: relative_l2(difference, np.zeros_like(difference))
                if not size
                else float(np.linalg.norm(difference)) / size
                for part, difference in parts.items()
            }
    return errors


def efficiencies(error: float, parameters: int, rate: float, seconds: float) -> dict[str, float]:
    """The paper's three η, and the same with the real cost.

    The paper's ``T`` is iterations per second, so its η falls as training gets faster (decision
    D5): its figures keep its names, and those with seconds stand beside them.
    """
    return {
        "eta_params": 1 / (error * parameters),
        "eta_comp": 1 / (error * rate),
        "eta_dof": 1 / (error * parameters * rate),
        "eta_seconds": 1 / (error * seconds),
        "eta_dof_seconds": 1 / (error * parameters * seconds),
    }


def additive_terms(function: Callable[..., Any], *arguments: Any) -> list[np.ndarray]:
    """The summands of ``function(*arguments)``: the leaves of its outermost sums and differences.

    >>> [float(t) for t in additive_terms(lambda a, b: a * b - 2 * a, 3.0, 5.0)]
    [15.0, -6.0]
    """
    closed = jax.make_jaxpr(function)(*arguments)
    jaxpr = closed.jaxpr
    producer = {id(v): eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    leaves: list[tuple[Any, int]] = []

    def descend(variable: Any, sign: int) -> None:
        eqn = producer.get(id(variable))
        name = eqn.primitive.name if eqn is not None else ""
        if eqn is not None and name in ("add", "sub", "add_any"):
            descend(eqn.invars[0], sign)
            descend(eqn.invars[1], -sign if name == "sub" else sign)
        elif eqn is not None and name == "neg":
            descend(eqn.invars[0], -sign)
        else:
            leaves.append((variable, sign))

    for out in jaxpr.outvars:
        descend(out, 1)
    variables = [v for v, _ in leaves]
    literal = [hasattr(v, "val") for v in variables]
    traced = [v for v, is_literal in zip(variables, literal, strict=True) if not is_literal]
    narrowed = jaxpr.replace(outvars=traced, debug_info=jaxpr.debug_info.with_unknown_names())
    # Constants are arguments too, or other ones would be another program.
    evaluate = jax.jit(lambda consts, given: jax.core.eval_jaxpr(narrowed, consts, *given))
    values = iter(evaluate(closed.consts, jax.tree.leaves(arguments)))
    return [
        np.asarray(sign * np.asarray(v.val if is_literal else next(values)))
        for (v, sign), is_literal in zip(leaves, literal, strict=True)
    ]
