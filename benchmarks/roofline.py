"""A training step of the engine against its bare matrix products.

The step (loss, gradient, Adam) of a plain 4×64 tanh network with 2 inputs and 1 output, and of the
default HyResPINN, at 1,024 points, with the linear part of the equation carried as one
operator, as training does. Beside it run the same matrix products, forward and backward, and nothing
else: no activation, no kernel, no loss. Both run many times inside one
compiled loop; the floating-point operations of all matrix products are counted in the compiled
programs. Run ``python benchmarks/roofline.py``; the figures go to ``results/roofline.json``.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from hyrespinn.derivatives import MultiIndex, closure, coordinates, parse
from hyrespinn.files import write_json
from hyrespinn.models import HyResPINN, Inputs
from hyrespinn.models.mlp import MLP
from hyrespinn.models.parameters import cast, flatten
from hyrespinn.optim import adam
from hyrespinn.problems import AllenCahnDirichlet
from hyrespinn.run.environment import environment
from jax import Array
from timing import time_together

FILE = Path(__file__).parents[1] / "results" / "roofline.json"
POINTS, STEPS = 1024, 50
WIDTH, DEPTH = 64, 4
HYBRID = HyResPINN()


class Case(NamedTuple):
    """An equation: its linear operator, the other derivatives it reads, and the residual of both."""

    operator: dict[str, float]
    names: tuple[str, ...]
    residual: Callable[[Array, dict[str, Array]], Array]

    @property
    def closure(self) -> tuple[MultiIndex, ...]:
        """The derivatives carried one by one."""
        highest = {parse(name, ("t", "x")) for name in self.operator}
        return closure([i for i in closure(highest, 2) if i not in highest], 2)


CASES = {
    "u_t, u_xx": Case(  # Allen–Cahn
        {"t": 1.0, "xx": -1e-2}, (), lambda linear, u: linear + u[""] ** 3 - u[""]
    ),
    "u_t, u_x, u_xx, u_xxxx": Case(  # Kuramoto–Sivashinsky
        {"t": 1.0, "xxxx": 1e-2},
        ("x", "xx"),
        lambda linear, u: linear + u[""] * u["x"] + 1e-1 * u["xx"],
    ),
}


def networks() -> dict[str, Callable[[Array], Any]]:
    """The networks by name, each made from a key."""
    domain = AllenCahnDirichlet.domain
    inputs = Inputs(domain.bounds, (False, False), 1, 4, domain.spread, domain.cover)
    return {
        f"PINN {DEPTH}×{WIDTH}": lambda key: MLP(2, 1, WIDTH, DEPTH, key),
        "HyResPINN": lambda key: HYBRID.build(inputs, key),
    }


def engine_steps(model: Any, points: Array, case: Case, steps: int) -> tuple[Any, Any]:
    """``steps`` steps of Adam as a function of its state, and the first state."""
    theta, assemble = flatten(model)
    indices = {name: parse(name, ("t", "x")) for name in case.names}
    operator = {
        parse(name, ("t", "x")): jnp.asarray(c, points.dtype) for name, c in case.operator.items()
    }

    def loss(theta: Array) -> Array:
        series = assemble(theta)(coordinates(points, case.closure, [operator]))
        found = {"": series.value} | {name: series[i] for name, i in indices.items()}
        return jnp.mean(case.residual(series[0], found) ** 2)

    transform, rate = adam.moments(), optax.constant_schedule(1e-4)
    step = partial(adam.step, jax.value_and_grad(loss), rate=rate, transform=transform)
    return partial(_repeat, step, steps), adam.start(theta, transform)


def _repeat(step: Callable[[Any], Any], steps: int, state: Any) -> Any:
    if steps == 1:
        return step(state)
    return jax.lax.fori_loop(0, steps, lambda _, s: step(s), state)


class Chain(NamedTuple):
    """Linear layers one after the other, through which ``parts`` derivatives go.

    ``first`` is a layer before them that sees the points: only the value is a product with all
    points there, the derivatives of the coordinates are single rows. ``ends`` of the parts go
    through the last layer, all of them where it is None.
    """

    weights: list[Array]
    starts: list[Array]
    first: Array | None = None
    ends: int | None = None


def chains(name: str, case: Case, dtype: str) -> list[Chain]:
    """The matrix products of a network with as many derivatives as its equation needs."""
    parts = len(case.closure) + 1
    ends = 2 + len(case.names)
    keys = iter(jax.random.split(jax.random.key(2), 100))

    def matrix(rows: int, columns: int) -> Array:
        scale = 1 / math.sqrt(min(rows, columns))
        return scale * jax.random.normal(next(keys), (rows, columns), dtype)

    def starts(width: int, count: int) -> list[Array]:
        return [matrix(POINTS, width) for _ in range(count)]

    if name != "HyResPINN":
        hidden = [matrix(WIDTH, WIDTH) for _ in range(DEPTH - 1)]
        last = matrix(WIDTH, 1)
        return [Chain([*hidden, last], starts(WIDTH, parts - 1), matrix(2, WIDTH), ends)]
    assert HYBRID.kernels is not None
    assert HYBRID.deep is not None
    width, centers = HYBRID.width, HYBRID.kernels.count
    deep = [matrix(width, width) for _ in range(HYBRID.deep.depth)]
    return [
        Chain([matrix(centers, width)], starts(centers, parts)),
        Chain(deep, starts(width, parts - 1), matrix(2, width)),
        Chain([matrix(width, 1)], starts(width, ends)),
        Chain([], [], matrix(2, width)),  # the lift
    ]


def products(points: Array, chain: Chain) -> Chain:
    """Forward and backward through a chain; each weight moves a little by its gradient."""
    parts = list(chain.starts)
    if chain.first is not None:
        parts.insert(0, points @ chain.first)
    entered = []
    for weight in chain.weights[:-1]:
        entered.append(parts)
        parts = [h @ weight for h in parts]
    staying: list[Array] = []
    if chain.weights:
        entered.append(parts[: chain.ends])
        staying = parts[len(entered[-1]) :]
        parts = [h @ chain.weights[-1] for h in entered[-1]]
    # The gradient of half the sum of squares: what leaves the chain, and what stays in it.
    weights = []
    for weight, inside in zip(reversed(chain.weights), reversed(entered), strict=True):
        weights.append(weight - 1e-9 * sum(h.T @ g for h, g in zip(inside, parts, strict=True)))
        parts = [*(g @ weight.T for g in parts), *staying]
        staying = []
    if chain.first is None:
        weights[-1] = weights[-1] + _touch(parts)
        return chain._replace(weights=weights[::-1])
    first = chain.first - 1e-9 * (points.T @ parts[0]) + _touch(parts[1:])
    return chain._replace(weights=weights[::-1], first=first)


def _touch(arrays: Sequence[Array]) -> Any:
    """One entry of each array, behind a barrier: the compiler has to make all of the others."""
    return 1e-30 * sum(a[0, 0] for a in jax.lax.optimization_barrier(list(arrays)))


def bare_steps(linear: Sequence[Chain], points: Array, steps: int) -> tuple[Any, Any]:
    """``steps`` times all products, as a function of the weights, and the first weights."""

    def step(moving: Any) -> Any:
        moved = [
            products(points, chain._replace(weights=weights, first=first))
            for chain, (weights, first) in zip(linear, moving, strict=True)
        ]
        return [(chain.weights, chain.first) for chain in moved]

    return partial(_repeat, step, steps), [(chain.weights, chain.first) for chain in linear]


def product_flops(function: Callable[..., Any], *arguments: Any) -> int:
    """The floating-point operations of all matrix products in the compiled program."""
    text = jax.jit(function).lower(*arguments).compile().as_text()
    shapes = {
        name: [int(n) for n in dims.split(",") if n]
        for name, dims in re.findall(r"%?([\w.\-]+) = \w+\[([\d,]*)\]", text)
    }
    found = re.findall(
        r"= \w+\[([\d,]*)\]\S* dot\(%?([\w.\-]+),.*?lhs_contracting_dims=\{(\d+)\}", text
    )
    total = 0
    for dims, left, axis in found:
        total += 2 * math.prod(int(n) for n in dims.split(",")) * shapes[left][int(axis)]
    return total


def measure(name: str, case: Case, dtype: str, seconds: float) -> dict[str, float]:
    with jax.enable_x64(dtype == "float64"):
        model = cast(networks()[name](jax.random.key(0)), dtype)
        points = jax.random.uniform(jax.random.key(1), (POINTS, 2), dtype, -1, 1)
        linear = chains(name, case, dtype)
        makers = {
            "engine": partial(engine_steps, model, points, case),
            "products": partial(bare_steps, linear, points),
        }
        flops = {label: product_flops(*make(1)) for label, make in makers.items()}
        runs = {}
        for label, make in makers.items():
            function, state = make(STEPS)
            runs[label] = partial(jax.jit(function), state)
        best = time_together(runs, seconds, calls=1)
    return {
        "engine ms": 1e3 * best["engine"] / STEPS,
        "products ms": 1e3 * best["products"] / STEPS,
        "ratio": best["engine"] / best["products"],
        "engine product megaflop": flops["engine"] / 1e6,
        "products megaflop": flops["products"] / 1e6,
        "products gigaflop per second": flops["products"] * STEPS / best["products"] / 1e9,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="for each side of a comparison")
    parser.add_argument("--precision", choices=("float32", "float64"), action="append")
    parser.add_argument("--network", default="", help="how the names of the networks begin")
    parser.add_argument("--out", type=Path, default=FILE)
    options = parser.parse_args()
    result: dict[str, Any] = {}
    for precision in options.precision or ("float32", "float64"):
        for name in networks():
            if not name.startswith(options.network):
                continue
            for label, case in CASES.items():
                row = measure(name, case, precision, options.seconds)
                result.setdefault(precision, {}).setdefault(name, {})[label] = row
                print(precision, name, label, {k: round(v, 3) for k, v in row.items()}, flush=True)
    write_json(options.out, {"result": result, "environment": environment("both", 0)})


if __name__ == "__main__":
    main()
