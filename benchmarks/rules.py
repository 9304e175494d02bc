"""The measurements behind the rules of the presets.

Every variant changes a few settings on one problem and trains for the same number of seconds on
the whole machine: a rule that makes steps dearer has to earn it. Problems that march through
windows of time train the same number of steps in all windows together instead, and their seconds
are told. Run ``python benchmarks/rules.py`` for all of them, or name problems; variants that are
in a result file of ``results/rules/`` already are kept.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import hyrespinn as hp
from hyrespinn.experiments.environment import environment
from hyrespinn.files import write_json
from training import figures

Changes = dict[str, Any]
NO_END = 10**6
COMPACT: Changes = {
    "model.kernel": "wendland-c4",
    "model.width_quantile": 0.1,
    "model.width_factor": 1.0,
}
WIDE = COMPACT | {"model.width_factor": 3.0}
GAUSSIAN: Changes = {"model.kernel": "gaussian", "model.width_quantile": 0.3}
DEEP_ONLY: Changes = {"model.branches": "dnn"}
BASE: Changes = {
    **COMPACT,
    "model.width": 24,
    "model.centers": 32,
    "model.depth": 2,
    "model.harmonics": 1,
    "model.fourier": 0,
    "model.deep": 0,
    "model.overlap": 0.0,
    "model.time_width": 0.0,
    "model.gain": 0.0,
    "model.train_centers": True,
    "model.train_shapes": True,
    "model.phi_beta": 0.01,
    "train.stages": (),
    "train.pool": 8,
    "train.weight_boundary": 100.0,
    "train.adam_rule": "adam",
    "train.adam_steps": 1000,
    "train.ssbroyden_steps": NO_END,
    "train.points": 4096,
    "train.weight_initial": 100.0,
    "train.initial_points": 256,
    "train.boundary_points": 256,
    "train.windows": 1,
    "train.window_ends": None,
    "train.relative_target": 0.0,
}
"""What the variants change; all other settings are those of the `general` preset."""


def points(*counts: int) -> dict[str, Changes]:
    return {f"{count:,} points": {"train.points": count} for count in counts}


def on(base: Changes, variants: dict[str, Changes]) -> dict[str, Changes]:
    """The variants of another base."""
    return {label: base | changes for label, changes in variants.items()}


KERNELS = {"compact": COMPACT, "compact, wide": WIDE, "gaussian": GAUSSIAN, "deep only": DEEP_ONLY}
SIZES: dict[str, Changes] = {
    "width 16": {"model.width": 16},
    "width 32": {"model.width": 32},
    "depth 3": {"model.depth": 3},
    "16 centres": {"model.centers": 16},
    "64 centres": {"model.centers": 64},
}
WIDER = {"width 32": SIZES["width 32"]}
FIRST: dict[str, Changes] = {
    "no first stage": {"train.adam_steps": 0},
    "soap for 300": {"train.adam_rule": "soap", "train.adam_steps": 300},
}
LEAN: Changes = {"model.centers": 12, "train.weight_initial": 10.0}
LEAN_SHAPES: dict[str, Changes] = {
    "lean, depth 3": LEAN | {"model.depth": 3},
    "lean, Fourier": LEAN | {"model.fourier": 24},
    "lean, Fourier of scale 2": LEAN | {"model.fourier": 24, "model.fourier_scale": 2.0},
    "lean, Fourier of scale 3": LEAN | {"model.fourier": 24, "model.fourier_scale": 3.0},
}
HARMONICS: dict[str, Changes] = {f"{n} harmonics": {"model.harmonics": n} for n in (2, 3)}


def windows(count: int, all_steps: int, **more: Any) -> Changes:
    """Equal windows that share ``all_steps`` of each stage."""
    settings = {
        "windows": count,
        "adam_steps": all_steps // 5 // count,
        "ssbroyden_steps": all_steps // count,
    }
    return {f"train.{name}": value for name, value in (settings | more).items()}


SOAP = {"soap for 300": FIRST["soap for 300"]}
VARIANTS: dict[str, dict[str, Changes]] = {
    "darcy-2d-dirichlet": KERNELS | on(GAUSSIAN, {**SIZES, **FIRST, **points(2048, 8192)}),
    "allen-cahn-dirichlet": KERNELS | SIZES | SOAP | points(2048, 8192) | LEAN_SHAPES,
    "darcy-3d-dirichlet": KERNELS | on(GAUSSIAN, {**WIDER, **SOAP, **points(2048, 8192)}),
    "allen-cahn-periodic": KERNELS | FIRST | HARMONICS | points(2048) | LEAN_SHAPES,
    "burgers": KERNELS | LEAN_SHAPES,
    "poisson-2d": KERNELS,
    "korteweg-de-vries": {
        f"{count} windows, {start}": windows(count, 5000, window_start=start)
        for count, start in (
            *((2, start) for start in ("new", "warm", "continued")),
            (3, "new"),
            *((5, start) for start in ("new", "warm", "continued")),
        )
    },
}


def run(problem: str, changes: Changes, seed: int, seconds: float) -> dict[str, Any]:
    settings = BASE | changes
    limit = seconds if settings["train.ssbroyden_steps"] == NO_END else None
    solution = hp.solve(
        hp.problems.problem_named(problem)(),
        preset="general",
        seed=seed,
        settings=settings,
        max_seconds=limit,
        progress=False,
    )
    return {"changes": changes, **figures(solution.result)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", help="all for none", default=[])
    parser.add_argument("--only", default="", help="variants whose names begin like this")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=25.0, help="of training, for a variant")
    parser.add_argument("--out", type=Path, default=Path("results/rules"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for problem in options.problems or VARIANTS:
        path = options.out / f"{problem}-seed{options.seed}.json"
        kept = json.loads(path.read_text())["result"] if path.exists() else {}
        for label, changes in VARIANTS[problem].items():
            if not label.startswith(options.only):
                continue
            if label in kept and kept[label]["changes"] == json.loads(json.dumps(changes)):
                continue
            kept[label] = run(problem, changes, options.seed, options.seconds)
            print(problem, label, kept[label]["rel_l2"], flush=True)
            content = {"seconds": options.seconds, "settings": BASE, "result": kept}
            write_json(path, content | {"environment": environment("float64", options.seed)})


if __name__ == "__main__":
    main()
