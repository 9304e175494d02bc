"""The measurements behind the rules of the `fast` preset.

Every variant changes a few settings of the preset on one problem and trains for the same number
of steps, so that a busy machine changes no figure. Run ``python benchmarks/rules.py`` for all of
them, or name problems; variants that are in the result file already are kept. Two problems can
run side by side, each on a core of its own: every problem has a file in ``results/rules/``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import hyrespinn as hp
from hyrespinn.experiments.environment import environment
from hyrespinn.files import write_json

NARROW: dict[str, Any] = {}
WIDE = {"model.width_factor": 3.0}
GAUSSIAN = {"model.kernel": "gaussian", "model.width_quantile": 0.3}
DEEP_ONLY = {"model.branches": "dnn"}
BASE: dict[str, Any] = {
    "train.adam_steps": 1000,
    "train.ssbroyden_steps": 1500,
    "train.windows": 1,
    "train.window_ends": None,
    "train.relative_target": 0.0,
    "model.kernel": "wendland-c4",
    "model.width_quantile": 0.1,
    "model.width_factor": 1.0,
    "model.width": 24,
    "model.centers": 32,
    "model.depth": 2,
    "train.points": 4096,
}


def windows(count: int, steps: int, **more: Any) -> dict[str, Any]:
    """Equal windows with ``steps`` steps each."""
    settings = {"train.windows": count, "train.ssbroyden_steps": steps}
    return settings | {f"train.{name}": value for name, value in more.items()}


KERNELS = {"narrow": NARROW, "wide": WIDE, "gaussian": GAUSSIAN, "deep branch alone": DEEP_ONLY}
SIZES = {
    "width 16": {"model.width": 16},
    "width 32": {"model.width": 32},
    "depth 3": {"model.depth": 3},
    "64 centres": {"model.centers": 64},
    "2,048 points": {"train.points": 2048},
    "8,192 points": {"train.points": 8192},
}
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "darcy-2d-dirichlet": KERNELS | SIZES,
    "poisson-2d": KERNELS,
    "helmholtz-2d": KERNELS,
    "darcy-3d-dirichlet": KERNELS,
    "burgers": KERNELS,
    "wave-1d": KERNELS,
    "allen-cahn-dirichlet": KERNELS | SIZES,
    "allen-cahn-periodic": KERNELS
    | {"2 windows": windows(2, 750), "4 windows": windows(4, 375)}
    | {f"{n} harmonics": {"model.harmonics": n} for n in (2, 4)},
    "korteweg-de-vries": KERNELS
    | {"2 windows": windows(2, 750), "5 windows": windows(5, 300), "10 windows": windows(10, 150)},
}


def run(problem: str, changes: dict[str, Any], seed: int) -> dict[str, Any]:
    settings = BASE | changes
    solution = hp.solve(
        hp.problems.problem_named(problem)(), seed=seed, settings=settings, progress=False
    )
    result = solution.result
    return {
        "changes": changes,
        "rel_l2": result["rel_l2"],
        "steps": result["steps"],
        "parameters": result["n_params"],
        "training seconds": result["seconds"]["training"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", help="all for none", default=[])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results/rules"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for problem in options.problems or VARIANTS:
        path = options.out / f"{problem}-seed{options.seed}.json"
        kept = json.loads(path.read_text())["result"] if path.exists() else {}
        for label, changes in VARIANTS[problem].items():
            if label in kept and kept[label]["changes"] == json.loads(json.dumps(changes)):
                continue
            kept[label] = run(problem, changes, options.seed)
            print(problem, label, kept[label]["rel_l2"], flush=True)
            content = {"settings": BASE, "result": kept}
            write_json(path, content | {"environment": environment("float64", options.seed)})


if __name__ == "__main__":
    main()
