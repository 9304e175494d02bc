"""The seconds in which the package's own reference solvers solve the problems of the paper.

Each reference is made from scratch: no file is read or written, and what JAX compiles is counted.
The error is the stored self-convergence (``python -m hyrespinn.references.self_convergence``); problems
with an exact solution have none, and the seconds are those of its formula on the test grid. Run
``python benchmarks/reference_seconds.py [PROBLEM …]`` on an idle machine; the figures go to
``results/reference-seconds.json``, problems that are there already stay unless they are named.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from hyrespinn.bench.plan import PAPER_PROBLEMS
from hyrespinn.files import write_json
from hyrespinn.problems import PROBLEMS, problem_named
from hyrespinn.references import make_reference, reference_of
from hyrespinn.references.reference import recipe_of
from hyrespinn.run.environment import environment

FILE = Path(__file__).parents[1] / "results" / "reference-seconds.json"


def worker(name: str) -> dict[str, Any]:
    """Solve in this process; imports are not counted."""
    problem = problem_named(name)()
    begin = time.perf_counter()
    # A recipe is followed anew; an exact solution is never kept on disk.
    made = make_reference(problem) if recipe_of(problem) else reference_of(problem)
    seconds = time.perf_counter() - begin
    if made is None:
        raise SystemExit(f"{name} has no reference")
    return {
        "seconds": seconds,
        "self_convergence": made.self_convergence,
        "reference": made.description,
    }


def measure(name: str) -> dict[str, Any]:
    """The same in a process of its own, in which nothing is compiled yet."""
    command = [sys.executable, __file__, name, "--worker"]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", help="the paper's ten where none is named")
    parser.add_argument("--worker", action="store_true", help="measure in this process, and print")
    parser.add_argument("--out", type=Path, default=FILE)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(worker(options.problems[0])))
        return
    known = json.loads(options.out.read_text())["result"] if options.out.exists() else {}
    waiting = options.problems or [name for name in PAPER_PROBLEMS if name not in known]
    for name in waiting:
        known[name] = measure(name)
        print(name, json.dumps(known[name]), flush=True)
        ordered = {n: known[n] for n in PROBLEMS if n in known}
        write_json(options.out, {"result": ordered, "environment": environment("float64", 0)})


if __name__ == "__main__":
    main()
