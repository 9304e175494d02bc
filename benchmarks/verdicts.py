"""Does a run know how good it is? The estimated error and the verdict beside the true error.

``python benchmarks/verdicts.py`` solves the problems of ``verdict_problems.py`` and the built-in ones with
``collocation``, where that is possible, and with ``network``, and adds a row to ``results/verdicts.json``
as soon as a run is done; rows that are there already are kept. ``--problems`` and ``--methods`` choose
some, ``--dry`` writes nothing. The last lines are the shares that the project promises.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hyrespinn as hp
import jax
import numpy as np
from hyrespinn.files import write_json
from verdict_problems import Entry, catalogue

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "results" / "verdicts.json"
TOLERANCE, SECONDS, POINTS = 1e-3, 30.0, 20_000
FACTOR, SHARE = 10.0, 0.9
Row = dict[str, Any]


def solve(entry: Entry, method: str, seconds: float) -> Row:
    """The largest relative error over the fields, beside its estimate and the verdict."""
    about = {"kind": entry.kind, "expected": entry.expected}
    try:
        solution = hp.solve(
            entry.problem, method=method, max_seconds=seconds, tolerance=TOLERANCE, progress=False
        )
    except hp.UserError as error:
        return {**about, "verdict": "refused", "message": str(error)}
    result = solution.result
    estimates = result["estimated_error"] or {}
    known = [e for e in estimates.values() if e is not None]
    return {
        **about,
        "verdict": result["verdict"],
        "status": result["status"],
        "error": error_of(entry, solution),
        "estimate": max(known) if len(known) == len(estimates) > 0 else None,
        "warnings": [warning["code"] for warning in result["warnings"]],
        "relative_residual": max(result["relative_residual"].values(), default=None),
        "fresh_gap": result["fresh_gap"],
        "training_seconds": round(result["seconds"]["training"], 3),
        "limit": seconds,
        "estimate_seconds": round(result["seconds"]["estimate"], 3),
        "n_params": result["n_params"],
    }


def error_of(entry: Entry, solution: hp.Solution) -> float | None:
    """Against the answer at points all over the domain; against the reference of a built-in problem."""
    result, fields = solution.result, entry.problem.fields
    if entry.answer is None:
        errors = result["rel_l2"] or {}
        return max((errors[name] for name in fields if name in errors), default=None)
    domain = entry.problem.domain
    if domain.has_time and solution.end is not None and solution.end < domain.bounds[0][1]:
        return None
    with jax.enable_x64(True):
        points = np.asarray(entry.problem.domain.sample(POINTS, "sobol", 5))
        found, right = solution.at(points), entry.answer(points)
    ratios = [np.linalg.norm(found[f] - right[f]) / np.linalg.norm(right[f]) for f in fields]
    largest = float(max(ratios))
    return largest if math.isfinite(largest) else None


def entries() -> dict[str, Entry]:
    built_in = {
        name: Entry(hp.problems.problem_named(name)(), "built in", None, "solved")
        for name in hp.problems.PROBLEMS
    }
    return {**built_in, **catalogue()}


def summary(rows: Sequence[Row]) -> dict[str, tuple[int, int]]:
    """Of how many runs a promise is kept, and how many there are.

    A run counts for the estimate where there is an error to estimate: a problem with one solution, and
    a run that came to the end of time and did not diverge.
    """
    judged = [row for row in rows if row.get("error") is not None]
    estimated = [
        row for row in judged if row["verdict"] != "failed" and "unique" not in row["expected"]
    ]
    close = [
        row["estimate"] is not None
        and row["error"] / FACTOR <= row["estimate"] <= row["error"] * FACTOR
        for row in estimated
    ]
    good = [row["verdict"] == "solved" for row in judged if row["error"] < TOLERANCE / FACTOR]
    bad = [row["verdict"] != "solved" for row in rows if is_wrong(row)]
    return {
        "estimate within a factor of ten": (sum(close), len(close)),
        "accurate and called solved": (sum(good), len(good)),
        "wrong and not called solved": (sum(bad), len(bad)),
    }


def summaries(rows: dict[str, Row]) -> dict[str, dict[str, tuple[int, int]]]:
    methods = sorted({key.partition("/")[0] for key in rows})
    return {m: summary([r for k, r in rows.items() if k.startswith(f"{m}/")]) for m in methods}


def is_wrong(row: Row) -> bool:
    """Far from the answer, or an answer where there is none."""
    if row["error"] is None if "error" in row else True:
        return row["expected"].startswith(("not", "no "))
    return row["error"] > FACTOR * TOLERANCE


def shown(row: Row) -> str:
    if row["verdict"] == "refused":
        return f"refused: {row['message'][:90]}"
    error, estimate = (
        "      -" if row[k] is None else f"{row[k]:.1e}" for k in ("error", "estimate")
    )
    seconds = f"{row['training_seconds']:6.2f} s + {row['estimate_seconds']:5.2f} s"
    return (
        f"error {error} estimate {estimate} {row['verdict']:10} {seconds} {row['status']:10} "
        f"{','.join(row['warnings'])}  [{row['expected']}]"
    )


def commit() -> str:
    command = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="+", default=["collocation", "network"])
    parser.add_argument("--problems", nargs="+", default=list(entries()))
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of training, for each run")
    parser.add_argument("--dry", action="store_true", help="do not write the file")
    options = parser.parse_args()
    about = {
        "tolerance": TOLERANCE,
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
        },
    }
    kept = json.loads(FILE.read_text())["rows"] if FILE.exists() and not options.dry else {}
    known, rows = entries(), dict(kept)
    for method in options.methods:
        for name in options.problems:
            key = f"{method}/{name}"
            if key not in rows:
                rows[key] = {**solve(known[name], method, options.seconds), "commit": commit()}
                print(f"{key:40} {shown(rows[key])}", flush=True)
                if not options.dry:
                    write_json(FILE, {**about, "summary": summaries(rows), "rows": rows})
                jax.clear_caches()
                gc.collect()
    for method, promises in summaries(rows).items():
        for promise, (count, total) in promises.items():
            print(f"{method}: {promise}: {count} of {total}")


if __name__ == "__main__":
    main()
