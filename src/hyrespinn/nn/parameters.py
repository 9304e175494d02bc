"""Which arrays of a model are trained, and the model as a function of one flat vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree
from jaxtyping import Float


class Fixed(eqx.Module):
    """An array, or a module, that belongs to a model but is not trained, such as RBF centres."""

    array: Any

    def __jax_array__(self) -> Array:
        return self.array


def value(leaf: Any) -> Any:
    """The array or module itself, whether trained or fixed."""
    return freeze(leaf.array) if isinstance(leaf, Fixed) else leaf


def _is_fixed(node: Any) -> bool:
    return isinstance(node, Fixed)


def flatten(model: Any) -> tuple[Float[Array, " n"], Callable[[Array], Any]]:
    """The trained parameters as one vector, and the model as a function of such a vector.

    >>> theta, assemble = flatten({"w": jnp.ones((2, 2)), "c": Fixed(jnp.zeros(3))})
    >>> theta.shape, assemble(2 * theta)["w"][0, 0].item()
    ((4,), 2.0)
    """
    trained = jax.tree.map(
        lambda node: not _is_fixed(node) and eqx.is_inexact_array(node), model, is_leaf=_is_fixed
    )
    parameters, rest = eqx.partition(model, trained)
    theta, unravel = ravel_pytree(parameters)

    def assemble(vector: Array) -> Any:
        return eqx.combine(unravel(vector), rest)

    return theta, assemble


def freeze(model: Any) -> Any:
    """The same values, through which no gradient passes."""
    return jax.tree.map(lambda a: jax.lax.stop_gradient(a) if eqx.is_inexact_array(a) else a, model)


def cast(model: Any, dtype: Any) -> Any:
    """The model with every real array in one precision."""
    return jax.tree.map(lambda a: jnp.asarray(a, dtype) if eqx.is_inexact_array(a) else a, model)


def trained_shapes(model: Any) -> list[tuple[int, ...]]:
    """The shapes of the trained arrays, in the order in which :func:`flatten` joins them."""
    leaves = jax.tree.leaves(model, is_leaf=_is_fixed)
    return [
        leaf.shape
        for leaf in leaves
        if not _is_fixed(leaf)
        and hasattr(leaf, "shape")
        and jnp.issubdtype(leaf.dtype, jnp.inexact)
    ]


def scaled(part: Any, factor: Any) -> Any:
    """A part of a network with outputs so many times as large.

    The factor goes into the few arrays in which the output is linear, where ``part.last_layer()``
    names them, and not over the outputs, which there are for every point and derivative.
    """
    if not hasattr(part, "last_layer"):
        return lambda h: factor * part(h)
    arrays = part.last_layer()
    if not arrays:
        return part
    return eqx.tree_at(lambda p: p.last_layer(), part, tuple(factor * a for a in arrays))
