"""Which arrays of a model are trained, and the model as a function of one flat vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree
from jax.typing import DTypeLike
from jaxtyping import Float

T = TypeVar("T")


class Fixed(eqx.Module, Generic[T]):
    """An array, or several, that belong to a model but are not trained, such as fixed centres."""

    array: T

    def __jax_array__(self) -> T:
        return self.array

    @property
    def value(self) -> T:
        """What is fixed; no gradient passes through it."""
        return freeze(self.array)


def value(leaf: T | Fixed[T]) -> T:
    """The array itself, whether trained or fixed."""
    return leaf.value if isinstance(leaf, Fixed) else leaf


def _is_fixed(node: object) -> bool:
    return isinstance(node, Fixed)


def flatten(model: T) -> tuple[Float[Array, " n"], Callable[[Array], T]]:
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
    unravel = jax.jit(unravel, inline=True)  # one program in place of one for every array

    def assemble(vector: Array) -> T:
        return eqx.combine(unravel(vector), rest)

    return theta, assemble


def freeze(model: T) -> T:
    """The same values, through which no gradient passes."""
    return jax.tree.map(lambda a: jax.lax.stop_gradient(a) if eqx.is_inexact_array(a) else a, model)


def cast(model: T, dtype: DTypeLike) -> T:
    """The model with every real array in one precision."""
    return jax.tree.map(lambda a: jnp.asarray(a, dtype) if eqx.is_inexact_array(a) else a, model)


def trained_shapes(model: Any) -> list[tuple[int, ...]]:
    """The shapes of the trained arrays, in the order in which :func:`flatten` joins them.

    The leaves may be arrays or what ``jax.eval_shape`` gives for them.
    """
    leaves = jax.tree.leaves(model, is_leaf=_is_fixed)
    arrays = [a for a in leaves if isinstance(a, Array | jax.ShapeDtypeStruct)]
    return [a.shape for a in arrays if jnp.issubdtype(a.dtype, jnp.inexact)]
