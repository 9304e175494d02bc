"""The parameters in which a model is linear, within the flat vector of all of them."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from ..errors import UserError
from .collocation import KernelExpansionNetwork
from .model import Model

Assemble = Callable[[Array], Model]
Put = Callable[[Array], Array]


def linear_part(assemble: Assemble, theta: Float[Array, " n"]) -> tuple[Float[Array, " k"], Put]:
    """The values of ``linear_leaves()`` within ``theta``, and ``put``, which gives ``theta`` with others.

    ``assemble`` and ``theta`` are those of :func:`~hyrespinn.models.parameters.flatten`. The model's
    output is affine in these values, so they can be fitted by linear least squares.
    """
    model = _numbered(assemble, theta)
    places = _places(model)
    if not places.size:
        raise UserError(
            f"{type(model).__name__}.linear_leaves() names no arrays in which the output is affine, "
            "such as weight and bias of the last linear layer. Define it, or train without a step "
            "for the last layer."
        )

    def put(values: Array) -> Array:
        return theta.at[places].set(values)

    return theta[places], put


def linear_mask(assemble: Assemble, theta: Float[Array, " n"]) -> Bool[np.ndarray, " n"]:
    """Which parameters ``linear_leaves()`` names; all of them for a model that names none."""
    places = _places(_numbered(assemble, theta))
    mask = np.zeros(theta.size, bool)
    mask[places if places.size else slice(None)] = True
    return mask


def lattice_places(
    assemble: Assemble, theta: Float[Array, " n"]
) -> Int[np.ndarray, "kernels outputs"]:
    """Where the coefficients of kernels on a lattice are."""
    model = _numbered(assemble, theta)
    if not isinstance(model, KernelExpansionNetwork) or model.lattice is None:
        raise UserError(f"{type(model).__name__} has no kernels on a lattice.")
    return np.asarray(model.lattice.coefficients).astype(int)


def _numbered(assemble: Assemble, theta: Array) -> Model:
    """The model made of the places of its parameters."""
    exact = 2 ** (jnp.finfo(theta.dtype).nmant + 1)
    if theta.size > exact:
        raise UserError(
            f"Parameters are found among at most {exact:,} of them in {theta.dtype}, not "
            f"{theta.size:,}. Take double precision."
        )
    with jax.ensure_compile_time_eval():  # places are numbers, inside a compiled function too
        return assemble(jnp.arange(theta.size, dtype=theta.dtype))


def _places(numbered: Model) -> np.ndarray:
    """Each array of a model made of its own places tells where it is."""
    arrays = [np.ravel(array) for array in numbered.linear_leaves()]
    return np.concatenate([np.zeros(0), *arrays]).astype(int)
