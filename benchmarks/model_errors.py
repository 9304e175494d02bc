"""The errors of the models side by side, over the last part of their training.

New points come every few hundred steps, and the error goes up and down with them: its value at the
last step is one of many that the same training could have ended with. The geometric mean over the
last hundred seconds is steadier. Run ``python benchmarks/model_errors.py`` after the bench of
``docs/benchmarks.md``, whose run directories have the histories; cells without one keep their figures.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
from pathlib import Path
from typing import Any

from hyrespinn.experiments.bench import Bench
from hyrespinn.files import write_json


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
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", type=Path, default=Path("results/bench-models"))
    parser.add_argument("--seconds", type=float, default=100.0)
    parser.add_argument("--out", type=Path, default=Path("results/model_errors.json"))
    options = parser.parse_args()
    found = json.loads(options.out.read_text())["result"] if options.out.exists() else {}
    bench = Bench.open(options.bench)
    for (problem, model, seed), cell in bench.cells.items():
        history = options.bench / problem / f"{model}-seed{seed}" / "history.csv"
        if history.exists() and cell.is_over:
            figures = {"commit": cell.commit, "configuration": cell.configuration}
            entry = figures | summary(history, options.seconds)
            found.setdefault(problem, {})[f"{model}, seed {seed}"] = entry
    content = {"seconds": options.seconds, "result": found, "environment": bench.environment}
    write_json(options.out, content)


if __name__ == "__main__":
    main()
