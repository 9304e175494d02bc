"""The derivative engine against nested reverse mode on the paper-size network.

One block, DNN 3×64, 64 centres, batch 1024: values compared, and one full training step (loss,
gradient, Adam) timed side by side. Run ``python benchmarks/engine.py``; add ``--layouts`` to time
the two layouts of the derivatives, one array each or one stacked array.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import optax
from hyrespinn.derivatives import closure, coordinates, parse
from hyrespinn.files import write_json
from hyrespinn.models import Deep, HyResPINN, Inputs, Moving
from hyrespinn.models.parameters import cast, flatten
from hyrespinn.problems import AllenCahnDirichlet
from hyrespinn.run.environment import environment
from timing import time_together

BATCH = 1024
MODEL = HyResPINN(width=64, kernels=Moving(count=64), deep=Deep(depth=3))
CASES = {"u_t, u_xx": ("t", "xx"), "u_t, u_x, u_xx, u_xxxx": ("t", "x", "xx", "xxxx")}


def nested(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    for letter in name:
        function = jax.grad(function, "tx".index(letter))
    return function


def engine_values(model: Any, points: jax.Array, names: tuple[str, ...]) -> dict[str, jax.Array]:
    indices = {name: parse(name, ("t", "x")) for name in names}
    series = model(coordinates(points, closure(indices.values(), 2)))
    return {"": series.value[:, 0]} | {name: series[i][:, 0] for name, i in indices.items()}


def nested_values(model: Any, points: jax.Array, names: tuple[str, ...]) -> dict[str, jax.Array]:
    def u(t: jax.Array, x: jax.Array) -> jax.Array:
        return model(jnp.stack([t, x])[None])[0, 0]

    t, x = points.T
    return {name: jax.vmap(nested(u, name))(t, x) for name in ("", *names)}


def training_step(values: Any, assemble: Any, names: tuple[str, ...]) -> Any:
    optimiser = optax.adam(1e-3)

    def loss(theta: jax.Array, points: jax.Array) -> jax.Array:
        found = values(assemble(theta), points, names)
        # Allen–Cahn's reaction and a combination of all derivatives, as in KS.
        residual = found[""] ** 3 + sum(1e-2 * found[n] for n in names)
        return jnp.mean(residual**2)

    def step(theta: jax.Array, moments: Any, points: jax.Array) -> Any:
        value, gradient = jax.value_and_grad(loss)(theta, points)
        update, moments = optimiser.update(gradient, moments)
        return theta + update, moments, value

    return jax.jit(step), optimiser


def measure(precision: str, names: tuple[str, ...]) -> dict[str, float]:
    with jax.enable_x64(precision == "float64"):
        domain = AllenCahnDirichlet.domain
        inputs = Inputs(domain.bounds, (False, False), 1, 4, domain.spread, domain.cover)
        model = cast(MODEL.build(inputs, jax.random.key(0)), precision)
        theta, assemble = flatten(model)
        points = jax.random.uniform(jax.random.key(1), (BATCH, 2), precision) * 2 - 1
        a, b = engine_values(model, points, names), nested_values(model, points, names)
        difference = max(float(jnp.max(jnp.abs(a[n] - b[n])) / jnp.max(jnp.abs(b[n]))) for n in a)
        runs = {}
        for label, values in (("engine", engine_values), ("nested", nested_values)):
            step, optimiser = training_step(values, assemble, names)
            moments = optimiser.init(theta)
            runs[label] = lambda step=step, moments=moments: step(theta, moments, points)
        seconds = time_together(runs)
        return {
            "parameters": int(theta.size),
            "largest relative difference": difference,
            "engine ms": 1e3 * seconds["engine"],
            "nested ms": 1e3 * seconds["nested"],
            "ratio": seconds["nested"] / seconds["engine"],
        }


def layouts() -> dict[str, float]:
    """A tanh network with (u, u_t, u_x, u_xx) as four arrays, or stacked into one."""

    def activate(parts: Any) -> Any:
        y = jnp.tanh(parts[0])
        d = 1 - y * y
        return y, d * parts[1], d * parts[2], d * (parts[3] - 2 * y * parts[2] ** 2)

    def separate(weights: Any, parts: Any) -> Any:
        for w in weights:
            parts = activate(tuple(p @ w for p in parts))
        return sum(jnp.mean(p**2) for p in parts)

    def stacked(weights: Any, parts: Any) -> Any:
        h = jnp.stack(parts)
        for w in weights:
            h = jnp.stack(activate(h @ w))
        return sum(jnp.mean(p**2) for p in h)

    result = {}
    for precision in ("float32", "float64"):
        with jax.enable_x64(precision == "float64"):
            keys = jax.random.split(jax.random.key(0), 8)
            weights = [jax.random.normal(k, (32, 32), precision) / 6 for k in keys[:3]]
            parts = tuple(jax.random.normal(k, (4096, 32), precision) for k in keys[4:])
            runs = {}
            for name, function in (("separate", separate), ("stacked", stacked)):
                compiled = jax.jit(jax.value_and_grad(function))
                runs[name] = lambda f=compiled, w=weights, p=parts: f(w, p)
            seconds = time_together(runs)
            result[precision] = seconds["stacked"] / seconds["separate"]
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layouts", action="store_true")
    parser.add_argument("--out", type=Path, help="also write the result as JSON")
    options = parser.parse_args()
    if options.layouts:
        result: Any = {"stacked / separate": layouts()}
    else:
        result = {
            precision: {label: measure(precision, names) for label, names in CASES.items()}
            for precision in ("float32", "float64")
        }
    print(json.dumps(result, indent=2))
    if options.out:
        write_json(options.out, {"result": result, "environment": environment("both", 0)})


if __name__ == "__main__":
    main()
