"""Levenberg–Marquardt: cost and memory of a step, and its error against that of SSBroyden.

``step`` times one step at about 2,000 parameters and 6,000 points of Korteweg–de Vries in a
process of its own, whose peak memory before and after tells what the steps need. ``race`` trains
a problem with both optimisers for equally many seconds after the same Adam steps. Run ``python
benchmarks/levenberg_marquardt.py step`` or ``… race PROBLEM --seconds 60``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from hyrespinn.experiments.config import RunConfig, with_settings
from hyrespinn.experiments.environment import environment
from hyrespinn.experiments.monitor import Monitor
from hyrespinn.experiments.presets import configure
from hyrespinn.experiments.solve import Session
from hyrespinn.experiments.stages import make_stages
from hyrespinn.losses.jacobian import linearised
from hyrespinn.optim.levenberg_marquardt import Rule, gram
from hyrespinn.problems import problem_named
from hyrespinn.references import reference_of
from hyrespinn.training.lm_stage import LmStage
from hyrespinn.training.loop import WHOLE, Silent, Stops, Trainer
from hyrespinn.training.stages import QuasiNewtonStage, Stage
from hyrespinn.training.windows import stretches

WINDOWS = {"korteweg-de-vries": 5, "kuramoto-sivashinsky": 20}
"""Of these problems the first of so many windows of time is solved."""


def lm_stage(rule: Rule, sketch: int, sketch_above: int, round_steps: int) -> LmStage:
    return LmStage(
        steps=100_000,
        chunk=5,
        round_steps=round_steps,
        part=None,
        pool=8,
        power=1.0,
        floor=1.0,
        rule=rule,
        sketch=sketch,
        sketch_above=sketch_above,
    )


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
    config = configure(problem_named("korteweg-de-vries")(), model=options.model)
    changes = {"train.points": options.points, "model.width": options.width}
    session = Session(with_settings(config, changes), progress=False, reference=False)
    theta, assemble = session._model(jax.random.key(0))
    objective = session._objective(assemble)
    stage = lm_stage(rule_of(options), options.sketch, options.sketch_above, 1000)
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


class Rows(Silent):
    """Keeps the history."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def append(self, row: Any) -> None:
        self.rows.append(dict(row))
        error = {k: f"{v:.2e}" for k, v in row.items() if k.startswith("rel_l2")}
        print(row["stage"], row["step"], row["seconds"], f"{row['loss_total']:.3e}", error)


def race(options: argparse.Namespace) -> dict[str, Any]:
    """The history of each optimiser: seconds, loss and error."""
    problem = problem_named(options.problem)()
    config = configure(problem, model=options.model)
    config = with_settings(config, {"train.points": options.points})
    config = replace(config, train=replace(config.train, adam_steps=options.adam))
    found = {}
    for name in options.optimisers:
        found[name] = contest(config, name, options)
    return found


def contest(config: RunConfig, name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    session = Session(config, progress=False)
    theta, assemble = session._model(jax.random.key(config.seed))
    objective = session._objective(assemble)
    stages: list[Stage] = make_stages(config.train, assemble(theta))
    if name == "lm":
        stage = lm_stage(rule_of(options), options.sketch, options.sketch_above, options.round)
        stages = [stage if isinstance(s, QuasiNewtonStage) else s for s in stages]
    windows: Any = WHOLE
    if options.problem in WINDOWS:
        time_span = config.problem.domain.bounds[0]
        windows = stretches(time_span, WINDOWS[options.problem])[:1]
    reference = reference_of(config.problem, lambda text: None)
    assert reference is not None
    store = Rows()
    trainer = Trainer(
        objective,
        stages,
        jax.random.fold_in(jax.random.key(config.seed), 1),
        stops=Stops(max_seconds=options.seconds),
        store=store,
        monitor=Monitor(objective, reference, windows),
        windows=windows,
    )
    outcome = trainer.run(theta)
    print(name, outcome.status, outcome.message, outcome.steps, "parameters", theta.size)
    return thinned(store.rows)


def thinned(rows: list[dict[str, Any]], count: int = 12) -> list[dict[str, Any]]:
    """About ``count`` rows, the last among them, with what a race is about."""
    kept = rows[:: -max(1, len(rows) // count)][::-1]
    return [
        {
            k: v
            for k, v in row.items()
            if k in ("step", "stage", "seconds", "loss_total") or k.startswith("rel_l2")
        }
        for row in kept
    ]


def rule_of(options: argparse.Namespace) -> Rule:
    return Rule(scaling=options.scaling, damping=options.damping, space=options.space)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("step", "race"))
    parser.add_argument("problem", nargs="?", default="korteweg-de-vries")
    parser.add_argument("--model", default="pinn")
    parser.add_argument("--width", type=int, default=30, help="of the network that is timed")
    parser.add_argument("--points", type=int, default=6000)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--adam", type=int, default=1000)
    parser.add_argument("--round", type=int, default=25)
    parser.add_argument("--optimisers", nargs="+", default=["lm", "ssbroyden"])
    parser.add_argument("--scaling", default="identity", choices=("identity", "marquardt"))
    parser.add_argument("--damping", type=float, default=Rule().damping)
    parser.add_argument("--space", type=int, default=Rule().space)
    parser.add_argument("--sketch", type=int, default=1000)
    parser.add_argument("--sketch-above", type=int, default=5000)
    parser.add_argument("--out", type=Path, help="also write the result as JSON")
    options = parser.parse_args()
    with jax.enable_x64(True):
        result = time_step(options) if options.what == "step" else race(options)
    chosen = {k: v for k, v in vars(options).items() if k != "out"}
    content = {"options": chosen, "result": result, "environment": environment("float64", 0)}
    text = json.dumps(content, indent=2)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
