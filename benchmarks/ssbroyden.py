"""The cost of an SSBroyden step against one loss-and-gradient evaluation and one pass over a matrix.

Allen–Cahn at 4,096 points, float64, networks of 1,000 to 5,000 parameters. Steps and evaluations run
many times inside one compiled loop, as in training; the pass reads and writes a matrix of the inverse
Hessian's size. Run ``python benchmarks/ssbroyden.py``; the figures go to ``results/ssbroyden.json``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from hyrespinn.files import write_json
from hyrespinn.problems import AllenCahnDirichlet
from hyrespinn.run.config import configure
from hyrespinn.run.environment import environment
from timing import time_together
from training import Prepared, evaluations, only, prepare

FILE = Path(__file__).parents[1] / "results" / "ssbroyden.json"
SIZES = ((14, 24), (23, 28), (29, 32), (38, 40))  # width and centres
STEPS = 48
WARM = 300  # into the first round, where the line search has settled


def prepared(width: int, centers: int) -> Prepared:
    """The method ``network`` with a network of this size, without its first stage."""
    changes = {"model.width": width, "model.kernels.count": centers}
    config = configure(AllenCahnDirichlet(), method="network", settings=changes)
    return prepare(only(config, "ssbroyden"))


def measure(width: int, centers: int, seconds: float) -> dict[str, float]:
    program = prepared(width, centers)
    objective, stage = program.objective, program.stages["ssbroyden"]
    run = jax.jit(lambda s, n: stage.run(objective, s, n), donate_argnums=0)
    state = run(program.state(stage), jnp.asarray(WARM))
    n = state.optimiser.theta.size
    box = {"state": state, "H": jnp.eye(n)}
    samples, context = jax.tree.map(jnp.copy, (state.samples, state.context))
    theta = jnp.copy(state.optimiser.theta)
    gradient = evaluations(objective, theta, samples, STEPS, context)
    scale = jax.jit(lambda h: 0.999 * h, donate_argnums=0)

    def steps() -> Any:
        box["state"] = run(box["state"], jnp.asarray(STEPS))
        return box["state"].optimiser.theta

    def one_pass() -> Any:
        box["H"] = scale(box["H"])
        return box["H"]

    first = box["state"].optimiser
    before = int(first.steps), int(first.evaluations)
    spent = time_together(
        {"steps": steps, "gradient": gradient, "pass": one_pass},
        seconds,
        calls=1,
    )
    last = box["state"].optimiser
    per_step = (int(last.evaluations) - before[1]) / (int(last.steps) - before[0])
    step, evaluation = spent["steps"] / STEPS, spent["gradient"] / STEPS
    return {
        "parameters": n,
        "points": int(samples["interior"].points.shape[0]),
        "step ms": 1e3 * step,
        "loss and gradient ms": 1e3 * evaluation,
        "pass ms": 1e3 * spent["pass"],
        "evaluations a step": per_step,
        "step / (loss and gradient + pass)": step / (evaluation + spent["pass"]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=6.0, help="for each size and part")
    parser.add_argument("--out", type=Path, default=FILE)
    options = parser.parse_args()
    rows = []
    with jax.enable_x64(True):
        for width, centers in SIZES:
            rows.append(measure(width, centers, options.seconds))
            print({k: round(v, 3) for k, v in rows[-1].items()}, flush=True)
    write_json(options.out, {"result": rows, "environment": environment("float64", 0)})


if __name__ == "__main__":
    main()
