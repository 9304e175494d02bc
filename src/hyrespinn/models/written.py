"""Specifications as JSON: every part is an object of its fields and its ``kind``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from ..errors import UserError, unknown
from .dense import Factorisation
from .features import Fourier, Frequencies
from .gates import GATES, Gates
from .kernels import DISTANCES, KERNELS, Lattice, Moving, Scattered
from .mlp import Deep
from .registered import MODELS

PARTS: dict[str, type] = {
    "deep": Deep,
    "factorisation": Factorisation,
    "fourier": Fourier,
    "frequencies": Frequencies,
    "gates": Gates,
    "lattice": Lattice,
    "moving": Moving,
    "scattered": Scattered,
}


def _kinds() -> dict[str, type]:
    """Every part by its name, those that users have registered too."""
    return {**MODELS, **KERNELS, **DISTANCES, **GATES, **PARTS}


def to_json(value: Any) -> Any:
    """A specification, or any part of one, as plain values.

    >>> from hyrespinn.models import PINN
    >>> to_json(PINN(width=8, fourier=Fourier(features=4)))["fourier"]
    {'kind': 'fourier', 'scale': 1.0, 'trained': True, 'features': 4}
    """
    if is_dataclass(value):
        return {
            "kind": _kind(value),
            **{f.name: to_json(vars(value)[f.name]) for f in fields(value)},
        }
    return list(value) if isinstance(value, tuple) else value


def from_json(content: Any) -> Any:
    """What :func:`to_json` was given.

    >>> from_json({"kind": "lattice", "counts": [8, 256]}).counts
    (8, 256)
    """
    if isinstance(content, Mapping):
        kind, known = content["kind"], _kinds()
        if kind not in known:
            raise unknown("kind", kind, known)
        return known[kind](**{k: from_json(v) for k, v in content.items() if k != "kind"})
    return tuple(content) if isinstance(content, list) else content


def _kind(value: object) -> str:
    for name, kind in _kinds().items():
        if kind is type(value):
            return name
    raise UserError(
        f"{type(value).__name__} has no name, so it cannot be written to a file: enter it in MODELS, "
        "KERNELS, DISTANCES or GATES."
    )
