"""Effort that adapts itself, measured: windows of time, resampling, growing by a block.

    python benchmarks/adaptive.py windows korteweg-de-vries --out results/adaptive.json
    python benchmarks/adaptive.py resampling burgers --out results/adaptive.json
    python benchmarks/adaptive.py growth darcy-2d-dirichlet --out results/adaptive.json
    python benchmarks/adaptive.py estimates korteweg-de-vries --out results/adaptive.json

``windows``: the same number of steps on all of time at once, on equal windows, and on windows that
find their own lengths (these stop once they are below their tolerance). ``resampling``: points
drawn where the residual is large against a plain draw. ``growth``: the same seconds for one block,
two blocks, and one block that is grown to two after half of the time. ``estimates``: three estimates
of the error of a window beside its true error. Rows are added to the file.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hyrespinn as hp
from growth import growth
from hyrespinn.experiments.environment import environment
from window_estimates import estimates

Row = dict[str, Any]


def solved(name: str, seed: int, way: str, settings: dict[str, Any]) -> Row:
    """One solve of the general preset with other settings, as a row."""
    problem = hp.problems.problem_named(name)()
    solution = hp.solve(problem, preset="general", seed=seed, settings=settings, progress=True)
    result = solution.result
    return {
        "problem": name,
        "seed": seed,
        "way": way,
        "settings": settings,
        "status": result["status"],
        "steps": result["steps"],
        "seconds": result["seconds"]["training"],
        "rel_l2": result["rel_l2"],
        "ends": [w["end"] for w in result["windows"] or []],
        "estimates": [w.get("window_error") for w in result["windows"] or []],
        "window_errors": [w.get("rel_l2_u") for w in result["windows"] or []],
    }


SMALL = {"model.width": 16, "model.centers": 16, "train.points": 1024}
"""A network and a set of points with which a window takes seconds."""


def windows(name: str, seed: int, size: float) -> Iterator[Row]:
    """``size`` steps in all, shared by the windows; windows of own lengths take what they need."""
    total = int(size or 1600)
    warm = {"train.window_start": "warm"}
    ways: dict[str, dict[str, Any]] = {
        "all of time at once": _steps(total),
        "4 equal windows": {"train.windows": 4, **_steps(total // 4)},
        "8 equal windows": {"train.windows": 8, **_steps(total // 8)},
        "8 equal windows, warm": {"train.windows": 8, **warm, **_steps(total // 8)},
        "own lengths, warm": {
            "train.windows": 4,
            "train.window_tolerance": 1e-2,
            **warm,
            **_steps(total // 2),
        },
    }
    for way, settings in ways.items():
        yield solved(name, seed, way, {**SMALL, **settings})


def _steps(count: int) -> dict[str, int]:
    """A sixth of the steps are Adam's."""
    return {"train.adam_steps": count // 6, "train.ssbroyden_steps": count - count // 6}


def resampling(name: str, seed: int, size: float) -> Iterator[Row]:
    steps = {"train.adam_steps": 400, "train.ssbroyden_steps": int(size or 2000)}
    for pool in (8, 1):
        yield solved(name, seed, f"pool {pool}", {**SMALL, "train.pool": pool, **steps})


STUDIES: dict[str, Callable[[str, int, float], Iterator[Row]]] = {
    "windows": windows,
    "resampling": resampling,
    "growth": growth,
    "estimates": estimates,
}


def add(path: Path, row: Row) -> None:
    """One more row in the file of results."""
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    content = {"rows": [*rows, row], "environment": environment("float64", row["seed"])}
    path.write_text(json.dumps(content, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("problem")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--size", type=float, default=0, help="steps, or seconds of growth")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    for row in STUDIES[options.study](options.problem, options.seed, options.size):
        row = {"study": options.study, **row}
        print(json.dumps(row), flush=True)
        if options.out:
            add(options.out, row)


if __name__ == "__main__":
    main()
