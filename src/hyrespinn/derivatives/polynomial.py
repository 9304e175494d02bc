"""Polynomials of arrays."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array


def horner(coefficients: Sequence[float], y: Array) -> Array:
    """The polynomial with these coefficients, lowest first, skipping zeros where it can."""
    nonzero = [i for i, c in enumerate(coefficients) if c]
    if not nonzero:
        return jnp.zeros_like(y)
    # An even or odd polynomial is evaluated in y²: half the multiplications.
    if len({i % 2 for i in nonzero}) == 1 and nonzero[-1] > 1:
        parity = nonzero[0] % 2
        inner = horner(list(coefficients[parity::2]), y * y)
        return inner * y if parity else inner
    result = jnp.full_like(y, coefficients[nonzero[-1]])
    for c in reversed(coefficients[: nonzero[-1]]):
        result = result * y + c if c else result * y
    return result
