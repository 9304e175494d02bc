"""The errors of the models side by side, over the last part of their training.

New points come every few hundred steps, and the error goes up and down with them: its value at the
last step is one of many that the same training could have ended with. The geometric mean over the
last hundred seconds is steadier. The mean square of the residual at points that the training has not
seen says how far it has fitted its own points alone. Run ``python benchmarks/model_errors.py`` after the
bench of ``docs/benchmarks.md``, whose run directories have the histories; cells without one keep their
figures.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hyrespinn import Solution
from hyrespinn.bench.bench import Bench
from hyrespinn.derivatives.multiindex import name_of
from hyrespinn.files import write_json
from hyrespinn.problems.statement import state


def summary(history: Path, seconds: float) -> dict[str, Any]:
    """The geometric mean of the error over the last so many seconds, its range, and the last loss."""
    with history.open(newline="") as file:
        rows = list(csv.DictReader(file))
    begin = float(rows[-1]["seconds"]) - seconds
    errors = [float(r["rel_l2_u"]) for r in rows if r["rel_l2_u"] and float(r["seconds"]) >= begin]
    return {
        "error": statistics.geometric_mean(errors),
        "smallest": min(errors),
        "largest": max(errors),
        "last loss": float(rows[-1]["loss_total"]),
        "last residual": float(rows[-1]["loss_residual"]),
    }


def fresh_residual(solution: Solution, count: int = 2**17) -> float:
    """The mean square of the residual at evenly spread points."""
    problem = solution.problem
    points = np.asarray(problem.domain.sample(count))
    values = {}
    for index in state(problem).requested:
        columns = solution.at(points, name_of(index, problem.domain.coordinates)).values()
        values[index] = np.stack(list(columns), axis=-1)
    with jax.enable_x64(True):
        vectors = state(problem).residuals(jax.tree.map(jnp.asarray, values), jnp.asarray(points))
    return float(np.mean([np.square(vector) for vector in vectors.values()]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", type=Path, default=Path("results/network-300s"))
    parser.add_argument("--seconds", type=float, default=100.0)
    parser.add_argument("--out", type=Path, default=Path("results/model_errors.json"))
    options = parser.parse_args()
    found = json.loads(options.out.read_text())["result"] if options.out.exists() else {}
    bench = Bench.open(options.bench)
    for (problem, model, seed), cell in bench.cells.items():
        run = options.bench / problem / f"{model}-seed{seed}"
        history = run / "history.csv"
        if history.exists() and cell.is_over:
            entry = {"commit": cell.commit, "configuration": cell.configuration}
            entry |= summary(history, options.seconds)
            entry["fresh residual"] = fresh_residual(Solution.load(run / "solution.hyres"))
            found.setdefault(problem, {})[f"{model}, seed {seed}"] = entry
    content = {"seconds": options.seconds, "result": found, "environment": bench.environment}
    write_json(options.out, content)


if __name__ == "__main__":
    main()
