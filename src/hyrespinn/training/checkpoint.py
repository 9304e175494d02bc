"""Checkpoints: a state of training in one file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import UserError
from ..files import load_arrays, save_arrays, write_atomically


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def save_state(path: Path, state: Any, meta: Mapping[str, Any]) -> None:
    leaves = jax.tree.leaves(state)
    arrays = {
        f"{i:03d}": np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)
        for i, leaf in enumerate(leaves)
    }
    texts = {"meta.json": json.dumps(meta).encode()}
    write_atomically(path, lambda file: save_arrays(file, arrays, texts))


def load_meta(path: Path) -> dict[str, Any]:
    """The part of a checkpoint that says where the run was."""
    _, texts = load_arrays(path, "checkpoint")
    return json.loads(texts["meta.json"])


def load_state(path: Path, template: Any) -> Any:
    """The state, in the shape of ``template`` (from :func:`jax.eval_shape`)."""
    arrays, _ = load_arrays(path, "checkpoint")
    leaves, structure = jax.tree.flatten(template)
    stored = [arrays[name] for name in sorted(arrays)]
    if len(stored) != len(leaves):
        raise UserError(f"The checkpoint {path} belongs to another run: its content differs.")
    restored = []
    for leaf, array in zip(leaves, stored, strict=True):
        value = (
            jax.random.wrap_key_data(jnp.asarray(array)) if _is_key(leaf) else jnp.asarray(array)
        )
        if value.shape != leaf.shape or value.dtype != leaf.dtype:
            raise UserError(
                f"The checkpoint {path} belongs to another run: it has an array {value.shape} "
                f"of {value.dtype} where this run has {leaf.shape} of {leaf.dtype}."
            )
        restored.append(value)
    return jax.tree.unflatten(structure, restored)
