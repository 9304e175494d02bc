"""How a run ended, in a few lines for people."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..training.windows import RESUMABLE

Result = Mapping[str, Any]
"""What ``result.json`` holds."""


def in_full(result: Result, directory: Path) -> list[str]:
    """Everything worth knowing."""
    seconds, picture = result["seconds"], directory / "figures" / "solution.png"
    return [
        _ending(result),
        *_reached(result, directory),
        f"  {result['steps']} steps, {seconds['training']:.1f} s of training "
        f"({seconds['compilation']:.1f} s of compilation), {_parameters(result)}",
        *(f"  {figure}" for figure in _figures(result)),
        *(f"  {warning['text']} {warning['remedy']}" for warning in result.get("warnings", ())),
        f"  solution: {directory / 'solution.hyres'}",
        *([f"  picture:  {picture}"] if picture.exists() else []),
    ]


def in_brief(result: Result, directory: Path) -> list[str]:
    """Three lines: how it ended, how good it is, and where it is."""
    limits = (warning["text"].rstrip(".") for warning in result.get("warnings", ()))
    said = [_ending(result), *limits, *(line.strip() for line in _reached(result, directory))]
    return [
        "; ".join(said),
        "; ".join(_figures(result)) or "nothing was measured",
        f"files: {directory}",
    ]


def _ending(result: Result) -> str:
    """The verdict, where there is one, before how the optimiser ended."""
    verdict, status = result.get("verdict"), result["status"]
    note = result["message"]
    if verdict and verdict != status:
        note = f"{status}: {note}" if note else status
    return f"{result['problem']}: {verdict or status}" + (f" ({note})" if note else "")


def _reached(result: Result, directory: Path) -> list[str]:
    """How far a run came that can be resumed, and the command that goes on."""
    if result["status"] not in RESUMABLE:
        return []
    far = f"it came to {result['reached']}; " if result.get("reached") else ""
    return [f"  {far}go on with `hyrespinn resume {directory}`"]


def _figures(result: Result) -> list[str]:
    errors, residuals = result["rel_l2"] or {}, result["relative_residual"] or {}
    estimated = result.get("estimated_error") or {}
    return [
        *(
            f"estimated relative error of {field}: " + ("unbounded" if e is None else f"{e:.1e}")
            for field, e in estimated.items()
        ),
        *(f"relative l2 error of {field}: {error:.3e}" for field, error in errors.items()),
        *(f"relative {name} on fresh points: {ratio:.3e}" for name, ratio in residuals.items()),
    ]


def _parameters(result: Result) -> str:
    total, each = result["n_params"], result["n_params_window"]
    several = f", {total // each} windows of {each:,}" if total > each else ""
    return f"{total:,} parameters{several}"
