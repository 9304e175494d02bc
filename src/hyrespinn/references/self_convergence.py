"""Measure and store how far each reference is from one of twice the resolution.

Run ``python -m hyrespinn.references.self_convergence``; the result is stored with the package.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ..metrics import relative_l2
from ..problems.allen_cahn import AllenCahnDirichlet
from . import allen_cahn
from .reference import Reference

Pair = tuple[Callable[[], Reference], Callable[[], Reference], str]


def _allen_cahn_dirichlet() -> Pair:
    problem = AllenCahnDirichlet()
    cells, steps = allen_cahn.CELLS, allen_cahn.STEPS
    return (
        lambda: allen_cahn.converged(problem, cells, steps),
        lambda: allen_cahn.converged(problem, 2 * cells, 2 * steps),
        f"{cells} cells and {steps} steps against twice of both",
    )


PAIRS: dict[str, Callable[[], Pair]] = {"allen-cahn-dirichlet": _allen_cahn_dirichlet}


def measure(name: str) -> dict[str, float | str]:
    """The relative ℓ2 distance between a reference and the finer one, the worst field."""
    coarse, fine, what = PAIRS[name]()
    a, b = coarse(), fine()
    worst = float(np.max([relative_l2(a.values[f], b.values[f]) for f in a.values]))
    return {"relative_l2": worst, "what": what}


def main() -> None:
    figures = {name: measure(name) for name in PAIRS}
    path = Path(__file__).with_name("self_convergence.json")
    path.write_text(json.dumps(figures, indent=2) + "\n")
    print(path.read_text())


if __name__ == "__main__":
    main()
