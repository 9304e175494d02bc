"""The record of trials behind the rules of the method ``network``: nothing in it knows a reference.

``python benchmarks/network_trials.py PROBLEM --label WHAT --set key=value …`` trains once and adds a row to
``results/network_trials.json``: the settings, the losses, the gap between fresh points and those of
training, and the estimated error. Rules are chosen by these. The error against a reference is not computed
at all, so that none can be.

A problem is built in, or one of ``verdict_problems.py``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import hyrespinn as hp
from hyrespinn.files import write_json
from hyrespinn.run.environment import environment
from verdict_problems import catalogue

FILE = Path(__file__).resolve().parents[1] / "results" / "network_trials.json"
KEPT = ("status", "message", "steps", "n_params", "n_params_window", "estimated_error",
        "fresh_gap", "relative_residual", "trained", "losses")  # fmt: skip


def problem_of(name: str) -> hp.Problem:
    """A built-in problem, or one of the catalogue of known answers."""
    if name in hp.problems.PROBLEMS:
        return hp.problems.problem_named(name)()
    return catalogue()[name].problem


def trial(options: argparse.Namespace) -> dict[str, Any]:
    """One training, and what it gave."""
    solution = hp.solve(
        problem_of(options.problem),
        method="network",
        preset=options.preset,
        model=options.model,
        seed=options.seed,
        max_seconds=options.seconds,
        settings=dict(pair.split("=", 1) for pair in options.set),
        reference=False,
        progress=options.progress,
        out=options.out,
    )
    result = solution.result
    return {
        "problem": options.problem,
        "label": options.label,
        "model": options.model or "hyrespinn",
        "preset": options.preset,
        "seed": options.seed,
        "limit": options.seconds,
        "settings": options.set,
        "training seconds": round(result["seconds"]["training"], 1),
        **{name: result[name] for name in KEPT if name in result},
        "windows": [_short(window) for window in result["windows"] or []],
    }


def _short(window: dict[str, Any]) -> dict[str, Any]:
    """Of a window where it ends, its steps, its loss and its estimated error."""
    found = window.get("estimated_error") or {}
    return {
        "end": round(window["end"], 4),
        "steps": window["steps"],
        "loss": window.get("loss_total"),
        "estimate": max(found.values(), default=None),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem")
    parser.add_argument("--label", default="", help="what the trial is about")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE")
    parser.add_argument("--preset", default="fast")
    parser.add_argument("--model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--out", help="a run directory")
    parser.add_argument("--progress", action="store_true")
    options = parser.parse_args()
    row = trial(options)
    for window in row["windows"]:
        print(window)
    hidden = ("settings", "windows", "status", "message", "limit", "model", "preset")
    print({k: v for k, v in row.items() if k not in hidden}, flush=True)
    rows = json.loads(FILE.read_text())["result"] if FILE.exists() else []
    write_json(FILE, {"result": [*rows, row], "environment": environment("float64", 0)})


if __name__ == "__main__":
    main()
