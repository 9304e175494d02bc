"""Every built-in problem once, ``--method network --preset smoke``: does it run, how long, does it learn?

Run ``python benchmarks/smoke.py [PROBLEM …]``; the table goes to ``results/smoke.json``.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import hyrespinn as hp
from hyrespinn.files import write_json
from hyrespinn.references import reference_of
from hyrespinn.run.environment import environment

FILE = Path(__file__).parents[1] / "results" / "smoke.json"


def measure(name: str) -> dict[str, Any]:
    problem = hp.problems.problem_named(name)()
    reference_of(problem)  # not counted: it is made once and kept
    begin = time.perf_counter()
    result = hp.solve(problem, method="network", preset="smoke", progress=False).result
    return {
        "seconds": round(time.perf_counter() - begin, 1),
        "training": round(result["seconds"]["training"], 1),
        "rel_l2_initial": result["rel_l2_initial"],
        "rel_l2": result["rel_l2"],
        "learned": all(result["rel_l2"][f] < e for f, e in result["rel_l2_initial"].items()),
    }


def main() -> None:
    names = sys.argv[1:] or list(hp.problems.PROBLEMS)
    known = json.loads(FILE.read_text())["problems"] if FILE.exists() else {}
    for name in names:
        known[name] = measure(name)
        print(name, json.dumps(known[name]), flush=True)
    ordered = {name: known[name] for name in hp.problems.PROBLEMS if name in known}
    write_json(FILE, {"problems": ordered, "environment": environment("float64", 0)})


if __name__ == "__main__":
    main()
