"""Random keys."""

from __future__ import annotations

import jax
import numpy as np
from jax import Array


def apart(key: Array) -> Array:
    """A key that no split of this one gives, so that what is optional changes nothing else."""
    return jax.random.fold_in(key, 2**32 - 1)


def generator(key: Array) -> np.random.Generator:
    """NumPy's random numbers from a key of JAX."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
