"""The last linear layer within the flat vector of parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from ..errors import UserError

Put = Callable[[Array], Array]


def linear_part(
    assemble: Callable[[Array], Any], theta: Float[Array, " n"]
) -> tuple[Float[Array, " k"], Put]:
    """The values of the last layer within ``theta``, and ``put``, which gives ``theta`` with others.

    ``assemble`` and ``theta`` are those of :func:`~hyrespinn.nn.parameters.flatten`. The model's
    output is affine in these values, so they can be fitted by linear least squares.
    """
    places = _places(assemble, theta)

    def put(values: Array) -> Array:
        return theta.at[places].set(values)

    return theta[places], put


def nearly_linear(
    assemble: Callable[[Array], Any], theta: Float[Array, " n"]
) -> Bool[np.ndarray, " n"]:
    """Which parameters the output is nearly linear in, as the model's ``nearly_linear()`` says.

    All of them for a model that does not say.
    """
    numbered = _numbered(assemble, theta)
    arrays = getattr(numbered, "nearly_linear", None)
    if arrays is None:
        return np.ones(theta.size, bool)
    found = np.zeros(theta.size, bool)
    for array in arrays():
        found[np.ravel(array).astype(int)] = True
    return found


def lattice_places(
    assemble: Callable[[Array], Any], theta: Float[Array, " n"]
) -> Int[np.ndarray, "kernels outputs"]:
    """Where the coefficients of kernels on a lattice are, as the model's ``lattice()`` says."""
    return np.asarray(_numbered(assemble, theta).lattice().coefficients).astype(int)


def _numbered(assemble: Callable[[Array], Any], theta: Array) -> Any:
    """The model made of the places of its parameters."""
    exact = 2 ** (jnp.finfo(theta.dtype).nmant + 1)
    if theta.size > exact:
        raise UserError(
            f"The last layer is found among at most {exact:,} parameters in {theta.dtype}, not "
            f"{theta.size:,}. Take double precision."
        )
    with jax.ensure_compile_time_eval():  # places are numbers, inside a compiled function too
        return assemble(jnp.arange(theta.size, dtype=theta.dtype))


def _places(assemble: Callable[[Array], Any], theta: Array) -> np.ndarray:
    """Where the last layer is: each array of a model made of its own places tells."""
    numbered = _numbered(assemble, theta)
    if not hasattr(numbered, "last_layer"):
        raise UserError(
            f"{type(numbered).__name__} has no last_layer(), which names the arrays in which its "
            "output is affine: weight and bias of its last linear layer. Add it to the model, or "
            "train without a step for the last layer."
        )
    arrays = numbered.last_layer()
    return np.concatenate([np.ravel(array) for array in arrays]).astype(int)
