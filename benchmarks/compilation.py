"""The seconds to compile the training programs of every problem, at first and from the cache.

Both stages of ``--method network``. A first process compiles them into an empty cache
(``jax_compilation_cache_dir``), a second one finds them there; tracing, which no cache saves, is
counted apart. Run ``python benchmarks/compilation.py [PROBLEM …]``; the figures go to
``results/compilation.json``, problems that are there already stay.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from hyrespinn.files import write_json
from hyrespinn.problems import PROBLEMS, problem_named
from hyrespinn.run.config import configure
from hyrespinn.run.environment import environment
from training import prepare

FILE = Path(__file__).parents[1] / "results" / "compilation.json"
OPTIMISERS = ("adam", "ssbroyden")


def worker(name: str) -> dict[str, dict[str, float]]:
    """Compile the programs of a problem in this process."""
    seconds = {}
    with jax.enable_x64(True):
        made = prepare(configure(problem_named(name)(), method="network"))
        for optimiser in OPTIMISERS:
            stage = made.stages[optimiser]
            begin_state = jax.eval_shape(
                lambda t, k, stage=stage: stage.start(
                    made.objective, t, k, made.objective.context()
                ),
                made.theta,
                jax.random.key(0),
            )
            run = jax.jit(lambda s, n, stage=stage: stage.run(made.objective, s, n))
            begin = time.perf_counter()
            lowered = run.lower(begin_state, jnp.asarray(1))
            traced = time.perf_counter()
            lowered.compile()
            seconds[optimiser] = {
                "tracing": traced - begin,
                "compiling": time.perf_counter() - traced,
            }
    return seconds


def process(name: str, cache: str) -> dict[str, dict[str, float]]:
    """The same in a process of its own, with this folder as its cache."""
    settings = {
        "JAX_COMPILATION_CACHE_DIR": cache,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    command = [sys.executable, __file__, name, "--worker"]
    run = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, **settings}
    )
    return json.loads(run.stdout.splitlines()[-1])


def measure(name: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as cache:
        first, again = process(name, cache), process(name, cache)
    return {
        optimiser: {
            "tracing": first[optimiser]["tracing"],
            "compiling": first[optimiser]["compiling"],
            "from the cache": again[optimiser]["compiling"],
        }
        for optimiser in OPTIMISERS
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", help="all of them where none is named")
    parser.add_argument("--worker", action="store_true", help="measure in this process, and print")
    parser.add_argument("--out", type=Path, default=FILE)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(worker(options.problems[0])))
        return
    known = json.loads(options.out.read_text())["result"] if options.out.exists() else {}
    for name in options.problems or PROBLEMS:
        known[name] = measure(name)
        print(name, json.dumps(known[name]), flush=True)
        ordered = {n: known[n] for n in PROBLEMS if n in known}
        write_json(options.out, {"result": ordered, "environment": environment("float64", 0)})


if __name__ == "__main__":
    main()
