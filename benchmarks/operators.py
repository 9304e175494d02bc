"""The linear part of an equation carried as one operator, against its derivatives one by one.

Loss and gradient of every problem at the points of ``--method network``, float64, inside a compiled loop as
in training. Run ``python benchmarks/operators.py [PROBLEM …]``; the figures go to
``results/operators.json``, problems that are there already stay.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import jax
import training
from hyrespinn.files import write_json
from hyrespinn.problems import PROBLEMS, problem_named
from hyrespinn.run.config import configure
from hyrespinn.run.environment import environment
from timing import time_together

FILE = Path(__file__).parents[1] / "results" / "operators.json"
STEPS = 10


def evaluations(name: str, combined: bool) -> Any:
    """A compiled loop of evaluations, with operators or without."""
    prepared = training.prepare(
        configure(problem_named(name)(), method="network"), operators=combined
    )
    samples = prepared.objective.draw(jax.random.key(1))
    return training.evaluations(prepared.objective, prepared.theta, samples, STEPS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each side of a comparison")
    options = parser.parse_args()
    result = json.loads(FILE.read_text())["result"] if FILE.exists() else {}
    with jax.enable_x64(True):
        for name in options.problems or PROBLEMS:
            if name in result and not options.problems:
                continue
            runs = {"operator": evaluations(name, True), "one by one": evaluations(name, False)}
            seconds = time_together(runs, options.seconds, calls=2)
            result[name] = {f"{k} ms": 1e3 * s / STEPS for k, s in seconds.items()}
            result[name]["ratio"] = seconds["one by one"] / seconds["operator"]
            print(name, {k: round(v, 2) for k, v in result[name].items()}, flush=True)
            write_json(FILE, {"result": result, "environment": environment("float64", 0)})


if __name__ == "__main__":
    main()
