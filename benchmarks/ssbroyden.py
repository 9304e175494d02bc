"""The cost of an SSBroyden step against one loss-and-gradient evaluation.

About 3,000 parameters and 4,096 points of Allen–Cahn, float64. Both run many times inside one
compiled loop, as in training. The update of the inverse Hessian is also timed against one bare
pass (read and write) over a matrix of its size. Run ``python benchmarks/ssbroyden.py``.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from hyrespinn.experiments.environment import environment
from hyrespinn.experiments.presets import configure
from hyrespinn.files import write_json
from hyrespinn.optim import ssbroyden
from hyrespinn.problems import AllenCahnDirichlet
from timing import time_together
from training import Prepared, changed, prepare

STEPS = 20
WARM = 300  # into the first round, where the line search has settled


def prepared(width: int, centers: int) -> Prepared:
    """The fast preset with a network of this size, without its first stage."""
    config = changed(configure(AllenCahnDirichlet()), adam_steps=0)
    model = replace(config.model_config, width=width, centers=centers)
    return prepare(replace(config, model_config=model))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=29)
    parser.add_argument("--centers", type=int, default=32)
    parser.add_argument("--out", type=Path, help="also write the result as JSON")
    options = parser.parse_args()
    with jax.enable_x64(True):
        program = prepared(options.width, options.centers)
        objective, stage = program.objective, program.stages["ssbroyden"]
        run = jax.jit(lambda s, n: stage.run(objective, s, n), donate_argnums=0)
        state = run(program.state(stage), jnp.asarray(WARM))
        n = state.optimiser.theta.size
        box = {"state": state, "theta": jnp.copy(state.optimiser.theta)}
        samples, context = jax.tree.map(jnp.copy, (state.samples, state.context))
        gradient = jax.jit(partial(_evaluations, objective, samples, context))
        box["H"] = jnp.eye(n)
        vector = jnp.ones(n) / n
        change = jax.jit(partial(_update, vector), donate_argnums=0)
        scale = jax.jit(lambda h: 0.5 * h, donate_argnums=0)

        def steps() -> Any:
            box["state"] = run(box["state"], jnp.asarray(STEPS))
            return box["state"].optimiser.theta

        def update() -> Any:
            box["H"] = change(box["H"])
            return box["H"]

        def one_pass() -> Any:
            box["H"] = scale(box["H"])
            return box["H"]

        first = box["state"].optimiser
        begin_steps, begin_evaluations = int(first.steps), int(first.evaluations)
        seconds = time_together(
            {
                "steps": steps,
                "gradient": lambda: gradient(box["theta"]),
                "update": update,
                "pass": one_pass,
            },
            calls=3,
        )
        last = box["state"].optimiser
        per_step = (int(last.evaluations) - begin_evaluations) / (int(last.steps) - begin_steps)
        step, evaluation = seconds["steps"] / STEPS, seconds["gradient"] / STEPS
        result = {
            "parameters": n,
            "points": int(samples["interior"].points.shape[0]),
            "loss and gradient ms": 1e3 * evaluation,
            "step ms": 1e3 * step,
            "evaluations a step": per_step,
            "step / loss and gradient": step / evaluation,
            "update of the matrix ms": 1e3 * seconds["update"],
            "update / one pass (read and write)": seconds["update"] / seconds["pass"],
        }
    print(json.dumps(result, indent=2))
    if options.out:
        write_json(options.out, {"result": result, "environment": environment("float64", 0)})


def _evaluations(objective: Any, samples: Any, context: Any, theta: Any) -> Any:
    """Many evaluations in a row, each at a point that depends on the one before."""
    function = objective.value_and_grad(samples, context)
    return jax.lax.fori_loop(0, STEPS, lambda _, t: t - 1e-14 * function(t)[1], theta)


def _update(vector: Any, H: Any) -> Any:
    rule = ssbroyden.ssbroyden_rule
    slope = -jnp.vdot(vector, vector)
    new, _ = ssbroyden.update(
        H, vector, 1.01 * vector, 1.02 * vector, slope, jnp.asarray(1.0), rule
    )
    return new


if __name__ == "__main__":
    main()
