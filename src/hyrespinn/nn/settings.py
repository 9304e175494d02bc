"""Checks that the settings of all models share."""

from __future__ import annotations

from typing import Any

from ..derivatives import ACTIVATIONS
from ..errors import UserError, unknown


def check_settings(config: Any, *positive: str) -> None:
    """The activation must be known, and these settings at least one."""
    if config.activation not in ACTIVATIONS:
        raise unknown("model.activation", config.activation, ACTIVATIONS)
    for name in positive:
        if getattr(config, name) < 1:
            raise UserError(f"model.{name} must be at least 1, not {getattr(config, name)}.")


def check_fourier(config: Any) -> None:
    """Fourier features come in pairs, with a positive scale."""
    if config.fourier % 2 or config.fourier < 2:
        raise UserError(f"model.fourier must be even and at least 2, not {config.fourier}.")
    if not config.fourier_scale > 0:
        raise UserError(f"model.fourier_scale must be positive, not {config.fourier_scale}.")
