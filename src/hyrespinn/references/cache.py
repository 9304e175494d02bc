"""References on disk: made once, found again by a hash, checked when read."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UserError
from ..files import load_arrays, save_arrays, write_atomically

Values = dict[str, np.ndarray]


def folder() -> Path:
    """``HYRESPINN_CACHE``, else a folder of the user's cache."""
    own = os.environ.get("HYRESPINN_CACHE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "hyrespinn"


def digest(description: Mapping[str, Any], modules: Iterable[str]) -> str:
    """A hash of a description and of the source of the solvers and these modules.

    Whoever changes an equation or a scheme gets a new reference, never an old one.
    """
    text = json.dumps(description, sort_keys=True).encode()
    hashed = hashlib.sha256(text)
    files = set(Path(__file__).parent.glob("*.py"))
    for name in modules:
        file = getattr(importlib.import_module(name), "__file__", None)
        files |= {Path(file)} if file else set()
    for path in sorted(files):
        hashed.update(path.read_bytes())
    return hashed.hexdigest()[:16]


def recall(key: str, compute: Callable[[], Values]) -> Values:
    """The values stored under a key; computed and stored where there are none or they are damaged.

    A folder that cannot be written is no reason to fail: the values are then made each time.
    """
    path = folder() / f"{key}.npz"
    if path.exists():
        try:
            return _read(path)
        except UserError:
            pass  # damaged: made anew, and replaced
    values = compute()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Two processes may make the same reference; each writes a file of its own first.
        own = path.with_name(f"{path.stem}.{os.getpid()}.npz")
        write_atomically(own, lambda file: save_arrays(file, values, _checksums(values)))
        os.replace(own, path)
    except (OSError, UserError):
        pass
    return values


def _checksums(values: Values) -> dict[str, bytes]:
    sums = {name: hashlib.sha256(array.tobytes()).hexdigest() for name, array in values.items()}
    return {"sha256.json": json.dumps(sums).encode()}


def _read(path: Path) -> Values:
    values, members = load_arrays(path, "reference")
    if members != _checksums({name: values[name] for name in values}):
        raise UserError(f"The reference {path} is damaged.")
    return values
