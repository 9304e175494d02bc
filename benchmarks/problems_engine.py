"""A training step of every built-in problem: the engine against nested automatic differentiation.

One step is loss, gradient and Adam, inside a compiled loop, for the network and the points of the
first stage of ``--method network``. ``reverse`` takes derivatives as most codes do, by ``vmap`` of nested
``jax.grad``; ``forward`` by nested ``jvp``, the package's own way for foreign networks. All three
evaluate the same network, conditions included, at the same points. Run
``python benchmarks/problems_engine.py [PROBLEM …]``; the figures go to
``results/problems_engine.json``, problems that are there already stay.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import optax
from hyrespinn.derivatives import MultiIndex, Taylor, lift
from hyrespinn.files import write_json
from hyrespinn.losses.objective import Objective
from hyrespinn.losses.windows import Fields
from hyrespinn.optim import adam
from hyrespinn.problems import PROBLEMS
from hyrespinn.run.config import configure
from hyrespinn.run.environment import environment
from jax import Array
from timing import time_together
from training import prepare

FILE = Path(__file__).parents[1] / "results" / "problems_engine.json"
STEPS = 10
Series = Callable[[Any], Any]


def reverse_series(solution: Series, x: Any) -> Any:
    """Fields and derivatives at coordinates by ``vmap`` of nested ``jax.grad``, a field at a time."""
    if not isinstance(x, Taylor):
        return solution(x)
    fields = jax.eval_shape(solution, x.value).shape[-1]
    columns = tuple(x.value.T)

    def derivative(index: MultiIndex, field: int) -> Array:
        def value(*point: Array) -> Array:
            return solution(jnp.stack(point)[None])[0, field]

        function: Callable[..., Array] = value
        for axis, order in enumerate(index):
            for _ in range(order):
                function = jax.grad(function, axis)
        return jax.vmap(function)(*columns)

    parts = {
        index: jnp.stack([derivative(index, f) for f in range(fields)], axis=-1)
        for index in x.indices
    }
    return Taylor(parts, x.indices)


def forward_series(solution: Series, x: Any) -> Any:
    """Fields and derivatives by nested forward mode."""
    return lift(solution, x)


WAYS: dict[str, Callable[[Series, Any], Any] | None] = {
    "engine": None,
    "reverse": reverse_series,
    "forward": forward_series,
}


def objective_by(objective: Objective, way: Callable[[Series, Any], Any] | None) -> Objective:
    """The same loss with derivatives taken in another way."""
    if way is None:
        return objective

    class Otherwise(Fields):
        def solution(self, *arguments: Any) -> Any:
            return partial(way, super().solution(*arguments))

    other, fields = copy(objective), objective.fields
    other.fields = Otherwise(fields.statement, fields.ansatz, fields.assemble)
    return other


def measure(name: str, precision: str, seconds: float) -> dict[str, Any]:
    with jax.enable_x64(precision == "float64"):
        config = configure(PROBLEMS[name](), precision=precision, method="network")
        made, plain = prepare(config), prepare(config, operators=False)
        batch = made.stages["adam"].optimiser.batch_size
        samples = made.objective.draw_batch(jax.random.key(2), None, batch)
        rate = optax.constant_schedule(1e-4)
        transform = adam.moments()
        state = adam.start(made.theta, transform)
        runs, gradients = {}, {}
        for label, way in WAYS.items():
            objective = objective_by((made if way is None else plain).objective, way)
            function = objective.value_and_grad(samples)
            step = partial(adam.step, function, rate=rate, transform=transform)

            def train(state: Any, count: int, step: Callable[[Any], Any] = step) -> Any:
                return jax.lax.fori_loop(0, count, lambda _, s: step(s), state)

            steps = jax.jit(train)
            # After one step Adam's first moment is the gradient, but for a factor.
            gradients[label] = steps(state, 1).moments.mu
            runs[label] = partial(steps, state, STEPS)
        best = time_together(runs, seconds, calls=1)
        scale = jnp.linalg.norm(gradients["reverse"])
        difference = float(jnp.linalg.norm(gradients["engine"] - gradients["reverse"]) / scale)
    return {
        "parameters": int(made.theta.size),
        "derivatives": len(made.objective.statement.requested),
        "order": made.objective.statement.order,
        "steps per second": {label: STEPS / best[label] for label in WAYS},
        "reverse / engine": best["reverse"] / best["engine"],
        "forward / engine": best["forward"] / best["engine"],
        "difference of gradients": difference,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", help="all of them where none is named")
    parser.add_argument("--precision", choices=("float32", "float64"), default="float64")
    parser.add_argument("--seconds", type=float, default=1.5, help="for each way of a problem")
    parser.add_argument("--out", type=Path, default=FILE)
    options = parser.parse_args()
    kept = json.loads(options.out.read_text())["result"] if options.out.exists() else {}
    rows = kept.setdefault(options.precision, {})
    for name in options.problems or PROBLEMS:
        rows[name] = measure(name, options.precision, options.seconds)
        print(name, json.dumps(rows[name]), flush=True)
        ordered = {
            precision: {n: found[n] for n in PROBLEMS if n in found}
            for precision, found in kept.items()
        }
        write_json(options.out, {"result": ordered, "environment": environment("both", 0)})


if __name__ == "__main__":
    main()
