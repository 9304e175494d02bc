"""Small problems and quick settings that many tests share."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import hyrespinn as hp
import jax.numpy as jnp
import pytest

TINY: dict[str, Any] = {
    "marching": "whole",
    "model.width": 6,
    "model.kernels.count": 5,
    "stages": "adam, ssbroyden",
    "stages.adam.steps": 40,
    "stages.adam.batch": 32,
    "stages.ssbroyden.steps": 40,
    "stages.ssbroyden.round_steps": 20,
    "points.interior": 64,
    "points.initial": 16,
    "points.adaptive.pool": 2,
}
"""Settings of ``method="network"`` with which a solve takes a second or two, besides compilation."""


def in_window_two(row):
    """A callback that stops a march after the first chunk of its second window."""
    return row["window"] == 2


def some_slow(names: Iterable[Any], slow: Container[Any]) -> list[Any]:
    """The parameters of a test; only ``make test-all`` runs those that are slow."""
    return [pytest.param(n, marks=[pytest.mark.slow] if n in slow else []) for n in names]


class Heat(hp.Problem):
    """The heat equation with its exact solution."""

    nu: float = 0.05
    domain = hp.TimeBox(t=(0, 1), x=(0, 1))
    fields = ("u",)
    test_grid = (21, 31)

    def residual(self, u, p):
        return u.t - self.nu * u.xx

    def conditions(self):
        return [hp.Initial(lambda p: jnp.sin(jnp.pi * p.x)), hp.Dirichlet(0.0)]

    def exact(self, p):
        return jnp.exp(-(jnp.pi**2) * self.nu * p.t) * jnp.sin(jnp.pi * p.x)
