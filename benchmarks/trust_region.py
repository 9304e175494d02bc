"""The trust region: what a step costs beside its bare matrix products, and in memory.

Korteweg–de Vries, HyResPINNs of some 500 to 5,000 parameters, 4,096 to 49,152 points; every case is a
process of its own. ``products`` are the chunks of ``JᵀJ`` alone, of random numbers in the place of
``Jᵀ``, side by side with the step in turns. Above ``columns_above`` parameters steps are sketched, and so
are these products. ``python benchmarks/trust_region.py`` writes ``results/trust_region.json`` case by case.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
from hyrespinn.algebra import gram
from hyrespinn.files import write_json
from hyrespinn.losses.normal import CHUNK
from hyrespinn.optim import TrustRegion
from hyrespinn.problems import problem_named
from hyrespinn.run.config import configure
from hyrespinn.run.environment import environment
from memory import peak
from timing import time_together
from training import prepare

FILE = Path(__file__).parents[1] / "results" / "trust_region.json"
WIDTHS = {8: 500, 13: 1000, 20: 2000, 34: 5000}
"""Of the network, and about the parameters that come of it."""
POINTS = (4096, 16_384, 49_152)


def worker(width: int, points: int) -> dict[str, float]:
    """One case, in this process."""
    with jax.enable_x64(True):
        jax.block_until_ready(jnp.zeros(1) + 1)
        imported = peak()
        optimiser = TrustRegion(steps=1000)
        settings = {
            "stages": (optimiser,),
            "model.width": width,
            "model.kernels.count": 2 * width,
            "points.interior": points,
        }
        made = prepare(
            configure(problem_named("korteweg-de-vries")(), method="network", settings=settings)
        )
        stage = made.stages["trust-region"]
        run = jax.jit(lambda s: stage.run(made.objective, s, jnp.asarray(1)))
        state = jax.block_until_ready(run(made.state(stage)))
        held = peak() - imported
        size = int(made.theta.size)
        used = optimiser.columns if size > optimiser.columns_above else size
        chunk = jax.random.normal(jax.random.key(0), (used, CHUNK))
        turns = math.ceil(points / CHUNK)

        @jax.jit
        def products(chunk: jax.Array) -> jax.Array:
            zero = jnp.zeros((used, used), chunk.dtype)
            return jax.lax.fori_loop(0, turns, lambda k, sums: sums + gram(chunk + k), zero)

        found = time_together(
            {"step": lambda: run(state), "products": lambda: products(chunk)}, seconds=8, calls=1
        )
    return {
        "parameters": size,
        "points": points,
        "step s": found["step"],
        "products s": found["products"],
        "ratio": found["step"] / found["products"],
        "peak MB": held,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", nargs=2, type=int, metavar=("WIDTH", "POINTS"))
    parser.add_argument("--out", type=Path, default=FILE)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(worker(*options.worker)))
        return
    rows = []
    for width in WIDTHS:
        for points in POINTS:
            command = [sys.executable, __file__, "--worker", str(width), str(points)]
            run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            rows.append(json.loads(run.stdout.splitlines()[-1]))
            print({k: round(v, 3) for k, v in rows[-1].items()}, flush=True)
            write_json(options.out, {"result": rows, "environment": environment("float64", 0)})


if __name__ == "__main__":
    main()
