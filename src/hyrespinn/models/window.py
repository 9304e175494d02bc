"""A network on a window of time."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from .layers import Function, Series


class InWindow(eqx.Module):
    """A network that takes a window of time for all of the time it was made for.

    ``time`` is that whole; the window begins at ``start`` and lasts ``length``. Both are arrays,
    so that code compiled for one window serves all of them.
    """

    network: Function
    start: Array
    length: Array
    time: tuple[float, float] = eqx.field(static=True)

    def __call__(self, x: Series) -> Series:
        begin, end = self.time
        size = x.shape[-1]
        ratio = ((end - begin) / self.length).astype(x.dtype)
        scale = jnp.ones(size, x.dtype).at[0].set(ratio)
        shift = jnp.zeros(size, x.dtype).at[0].set(begin - self.start.astype(x.dtype) * ratio)
        return self.network(x * scale + shift)
