"""Measure and store how far each reference is from finer ones.

Run ``python -m hyrespinn.references.self_convergence [PROBLEM …]``; the figures are stored with
the package. Each setting of a reference is doubled by itself, and the differences are added up.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import unknown
from ..files import write_json
from ..metrics import relative_l2
from ..problems.problem import problem_named
from .reference import REFERENCES, Reference, make_reference

FILE = Path(__file__).with_name("self_convergence.json")


def measure(name: str) -> dict[str, Any]:
    """The relative ℓ2 distances between a reference and finer ones, the worst field of each."""
    problem = problem_named(name)()
    recipe = REFERENCES[type(problem)]["converged"]
    begin = time.perf_counter()
    usual = make_reference(problem)
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    doubled = {
        key: _distance(usual, make_reference(problem, **{key: 2 * value}))
        for key, value in recipe.settings.items()
    }
    return {
        "relative_l2": sum(doubled.values()),
        "doubled": doubled,
        "reference": usual.description,
        "seconds": round(seconds, 1),
        "peak_gigabytes": round(peak, 2),
    }


def _distance(one: Reference, two: Reference) -> float:
    return max(relative_l2(one.values[f], two.values[f]) for f in one.values)


def names() -> list[str]:
    """The problems with a reference that has a resolution."""
    return [cls().name for cls in REFERENCES]


def main(arguments: Sequence[str] = ()) -> None:
    figures = json.loads(FILE.read_text()) if FILE.exists() else {}
    for name in arguments or names():
        if name not in names():
            raise unknown("reference", name, names())
        figures[name] = measure(name)
        print(name, json.dumps(figures[name], indent=2), flush=True)
    write_json(FILE, {name: figures[name] for name in names() if name in figures})


if __name__ == "__main__":
    main(sys.argv[1:])
