"""Levenberg–Marquardt: cost and memory of a step.

About 2,000 parameters and 6,000 points of Korteweg–de Vries; the peak memory of the process before
and after tells what the steps need. Run ``python benchmarks/levenberg_marquardt.py``; how it fares
against the other optimisers is in ``optimisers.py``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from hyrespinn.losses.jacobian import linearised
from hyrespinn.optim import LevenbergMarquardt
from hyrespinn.optim.levenberg_marquardt import gram
from hyrespinn.problems import problem_named
from hyrespinn.run.config import configure
from hyrespinn.run.environment import environment
from training import prepare


def peak_bytes() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def seconds_of(call: Any, calls: int = 3) -> float:
    """The best of a few calls."""
    best = float("inf")
    for _ in range(calls):
        begin = time.perf_counter()
        jax.block_until_ready(call())
        best = min(best, time.perf_counter() - begin)
    return best


def time_step(options: argparse.Namespace) -> dict[str, Any]:
    optimiser = LevenbergMarquardt(
        100_000, 1000, damping=options.damping, scaling=options.scaling,
        sketch=options.sketch, sketch_above=options.sketch_above,
    )  # fmt: skip
    changes = {
        "points.interior": options.points,
        "model.width": options.width,
        "stages": (optimiser,),
    }
    problem = problem_named("korteweg-de-vries")()
    made = prepare(configure(problem, model=options.model, method="network", settings=changes))
    objective, theta, stage = made.objective, made.theta, made.stages["lm"]
    context = objective.context()
    state = jax.jit(lambda t, k: stage.start(objective, t, k, context))(theta, jax.random.key(1))
    state = jax.jit(lambda s: stage.renew(objective, s))(state)
    run = jax.jit(lambda s, n: stage.run(objective, s, n)).lower(state, jnp.asarray(1)).compile()
    samples = state.samples
    loss = jax.jit(lambda t: objective.value_and_grad(samples, context)(t))
    jax.block_until_ready(loss(theta))
    before = peak_bytes()
    each, busy, evaluations = [], [], []
    for _ in range(options.steps):
        begin, busy_begin = time.perf_counter(), time.process_time()
        state = jax.block_until_ready(run(state, jnp.asarray(1)))
        each.append(time.perf_counter() - begin)
        busy.append(time.process_time() - busy_begin)
        evaluations.append(int(state.optimiser.evaluations))
    result = {
        "parameters": int(theta.size),
        "points": options.points,
        "seconds a step": sorted(each)[len(each) // 2],
        "least and most": [min(each), max(each)],
        # Of all cores together: what others do on the machine hardly changes it.
        "processor seconds a step": sorted(busy)[len(busy) // 2],
        "load of the machine": os.getloadavg()[0],
        "evaluations": evaluations,
        "peak above the state before, MB": (peak_bytes() - before) / 1e6,
        "peak of the process, MB": peak_bytes() / 1e6,
        "loss and gradient, seconds": seconds_of(lambda: loss(theta)),
    }
    if theta.size <= options.sketch_above:
        fill = jax.jit(lambda t: linearised(objective, t, samples, context))
        J = fill(theta).jacobian
        result["Jacobian, seconds"] = seconds_of(lambda: fill(theta))
        multiply = jax.jit(gram)
        multiply(J)
        result["lower triangle of JᵀJ, seconds"] = seconds_of(lambda: multiply(J))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="pinn")
    parser.add_argument("--width", type=int, default=30, help="of the network that is timed")
    parser.add_argument("--points", type=int, default=6000)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--scaling", default="identity", choices=("identity", "marquardt"))
    parser.add_argument("--damping", type=float, default=LevenbergMarquardt().damping)
    parser.add_argument("--sketch", type=int, default=1000)
    parser.add_argument("--sketch-above", type=int, default=5000)
    parser.add_argument("--out", type=Path, help="also write the result as JSON")
    options = parser.parse_args()
    with jax.enable_x64(True):
        result = time_step(options)
    chosen = {k: v for k, v in vars(options).items() if k != "out"}
    content = {"options": chosen, "result": result, "environment": environment("float64", 0)}
    text = json.dumps(content, indent=2)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
