"""The memory of a training step: of the whole process, and of the compiled program alone.

Every case is a process of its own: a few steps of a stage of ``--method network``. ``peak`` is the
most memory it ever held (``ru_maxrss``) beyond what it held after its imports, so compilation is
part of it; ``program`` is what the compiled program holds of arguments, results and temporary
arrays. Run ``python benchmarks/memory.py [PROBLEM …]``; the figures go to ``results/memory.json``.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from hyrespinn.files import write_json
from hyrespinn.problems import problem_named
from hyrespinn.run.config import configure
from hyrespinn.run.environment import environment
from training import prepare

FILE = Path(__file__).parents[1] / "results" / "memory.json"
PROBLEMS = (
    "allen-cahn-dirichlet",
    "burgers",
    "korteweg-de-vries",
    "kuramoto-sivashinsky",
    "grey-scott",
    "darcy-2d-dirichlet",
    "darcy-3d-dirichlet",
)
OPTIMISERS = ("adam", "ssbroyden")
MEGABYTE = 2**20
STEPS = 3


def peak() -> float:
    """The most megabytes that this process ever held."""
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes / 1024 if sys.platform != "darwin" else kilobytes / MEGABYTE


def worker(name: str, optimiser: str) -> dict[str, float]:
    """Train a few steps and look at the memory; for a process of its own."""
    with jax.enable_x64(True):
        jax.block_until_ready(jnp.zeros(1) + 1)
        imported = peak()
        made = prepare(configure(problem_named(name)(), method="network"))
        stage = made.stages[optimiser]
        state, count = made.state(stage), jnp.asarray(STEPS)
        run = jax.jit(lambda s, n: stage.run(made.objective, s, n), donate_argnums=0)
        program = run.lower(state, count).compile()
        jax.block_until_ready(program(state, count))
    held = program.memory_analysis()
    whole = held.argument_size_in_bytes + held.temp_size_in_bytes + held.output_size_in_bytes
    return {
        "parameters": int(made.theta.size),
        "imports MB": imported,
        "peak MB": peak() - imported,
        "program MB": (whole - held.alias_size_in_bytes) / MEGABYTE,
    }


def measure(name: str, optimiser: str) -> dict[str, float]:
    command = [sys.executable, __file__, name, "--worker", optimiser]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(run.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", help=f"by default {', '.join(PROBLEMS)}")
    parser.add_argument("--worker", metavar="OPTIMISER", help="measure in this process, and print")
    parser.add_argument("--out", type=Path, default=FILE)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(worker(options.problems[0], options.worker)))
        return
    known: dict[str, Any] = {}
    if options.out.exists():
        known = json.loads(options.out.read_text())["result"]
    for name in options.problems or PROBLEMS:
        for optimiser in OPTIMISERS:
            row = known.setdefault(name, {})[optimiser] = measure(name, optimiser)
            print(name, optimiser, {k: round(v, 1) for k, v in row.items()}, flush=True)
        write_json(options.out, {"result": known, "environment": environment("float64", 0)})


if __name__ == "__main__":
    main()
