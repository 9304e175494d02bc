"""The shapes that the preset `general` gives the models.

Every model had four trials of the same length on one problem with time and on one without
(``benchmarks/model_tuning.py``, ``results/model_tuning.json``); these are the best of them.
``docs/benchmarks.md`` has all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..models import Deep, Fourier, Frequencies, Moving
from ..models.kernels import Gaussian


@dataclass(frozen=True)
class Shape:
    """What differs from a model's defaults: where there is time, and where there is none."""

    time: dict[str, Any] = field(default_factory=dict)
    steady: dict[str, Any] = field(default_factory=dict)


SHAPES = {
    # With time one more layer in place of the Fourier features was as good within a tenth; but
    # Fourier features were better on Allen–Cahn (periodic), with both seeds (docs/training.md).
    "hyrespinn": Shape(
        steady={
            "kernels": Moving(count=16, kernel=Gaussian(), quantile=0.3),
            "deep": Deep(depth=1, fourier=Fourier(features=24, scale=2.0)),
        },
    ),
    "pinn": Shape(time={"depth": 4}, steady={"depth": 4}),
    "respinn": Shape(time={"depth": 5}, steady={"depth": 3}),
    "expertpinn": Shape(
        time={"depth": 2, "fourier": Fourier(scale=2.0)},
        steady={"depth": 1, "fourier": Fourier(scale=2.0)},
    ),
    "stackedpinn": Shape(time={"levels": 1, "depth": 4}, steady={"levels": 1, "depth": 3}),
    "piratenet": Shape(steady={"fourier": Frequencies(scale=3.0)}),
}


def shape_of(model: str, time: bool) -> dict[str, Any]:
    """The settings of a model for a problem with time or without; none for one that is not listed.

    >>> shape_of("pinn", time=True)
    {'depth': 4}
    """
    shape = SHAPES.get(model, Shape())
    return shape.time if time else shape.steady
