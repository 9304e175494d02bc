"""This tree beside an earlier one: errors and seconds of training, run in turn on the same machine.

``python benchmarks/before_after.py --before ../earlier --after . --seeds 1`` solves every problem of the
paper with both trees, one process at a time, and adds a row to ``results/before-after.json`` as soon as a
pair is done; rows that are there already are kept. An earlier tree had ``--preset fast`` where this one has
``--method collocation``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from hyrespinn.bench.plan import PAPER_PROBLEMS

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "results" / "before-after.json"


def commit(tree: Path) -> str:
    command = ["git", "-C", str(tree), "rev-parse", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def solve(tree: Path, problem: str, seed: int, choice: list[str]) -> dict[str, object]:
    """The errors and the seconds of one run in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        command = [
            sys.executable,
            "-m",
            "hyrespinn",
            "solve",
            problem,
            "--seed",
            str(seed),
            "--quiet",
        ]
        subprocess.run(
            [*command, *choice, "--out", str(out)],
            env={**os.environ, "PYTHONPATH": str(tree / "src")},
            check=True,
        )
        result = json.loads((out / "result.json").read_text())
    seconds = {k: round(v, 3) for k, v in result["seconds"].items()}
    return {"rel_l2": result["rel_l2"], "seconds": seconds, "n_params": result["n_params"]}


def ratio(row: dict[str, dict[str, dict[str, float]]]) -> tuple[float, float]:
    """Seconds of training and the first field's error, after over before."""
    before, after = row["before"], row["after"]
    field = next(iter(before["rel_l2"]))
    return (
        after["seconds"]["training"] / before["seconds"]["training"],
        after["rel_l2"][field] / before["rel_l2"][field],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, required=True, help="an earlier tree")
    parser.add_argument("--after", type=Path, default=ROOT)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--problems", nargs="+", default=list(PAPER_PROBLEMS))
    options = parser.parse_args()
    about = {
        "before": commit(options.before),
        "after": commit(options.after),
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
        },
    }
    rows = json.loads(FILE.read_text())["rows"] if FILE.exists() else []
    for problem in options.problems:
        for seed in range(options.seeds):
            if any((r["problem"], r["seed"]) == (problem, seed) for r in rows):
                continue
            row = {
                "problem": problem,
                "seed": seed,
                "before": solve(options.before, problem, seed, ["--preset", "fast"]),
                "after": solve(options.after, problem, seed, ["--method", "collocation"]),
            }
            rows.append(row)
            FILE.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")
            seconds, error = ratio(row)
            print(f"{problem} {seed}: seconds × {seconds:.2f}, error × {error:.2f}", flush=True)
    ratios = [ratio(row) for row in rows]
    for name, values in zip(("seconds", "error"), zip(*ratios, strict=True), strict=True):
        mean = math.exp(sum(map(math.log, values)) / len(values))
        print(f"{name}: geometric mean × {mean:.2f}, largest × {max(values):.2f}")


if __name__ == "__main__":
    main()
