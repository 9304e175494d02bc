"""How the cost of a step grows with points, parameters, order and dimension.

Steps of Adam and of SSBroyden in training programs of ``--method network``, float64: with more points
or more parameters on Allen–Cahn, with higher derivatives of ``u_t + ∂ᵏu/∂xᵏ = 0``, and with more
dimensions of Poisson's equation. All sizes of a curve take turns. Run
``python benchmarks/scaling.py``; the figures go to ``results/scaling.json``, curves that are there
already stay, and ``docs/images/scaling.png`` is drawn (``--plot``: only that).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import hyrespinn as hp
import jax
import jax.numpy as jnp
from hyrespinn.files import write_json
from hyrespinn.problems import AllenCahnDirichlet
from hyrespinn.run.config import RunConfig, configure
from hyrespinn.run.environment import environment
from matplotlib.figure import Figure
from timing import time_together
from training import only, prepare, stepper, with_model

ROOT = Path(__file__).parents[1]
FILE = ROOT / "results" / "scaling.json"
FIGURE = ROOT / "docs" / "images" / "scaling.png"
STEPS = 20
WARM = 20  # steps before the clock runs: the first line searches are longer


def with_points(count: int) -> RunConfig:
    changes = {"points.interior": count, "stages.adam.batch": count}
    return configure(AllenCahnDirichlet(), method="network", settings=changes)


def with_parameters(count: int) -> RunConfig:
    config = configure(AllenCahnDirichlet(), method="network")
    return with_model(
        config, hp.match_parameters(config.discretisation.model, count, config.problem)
    )


def with_order(order: int) -> RunConfig:
    class Evolution(hp.Problem):
        domain = hp.TimeBox(t=(0, 1), x=(-1, 1))
        fields = ("u",)

        def residual(self, u: Any, p: Any) -> Any:
            return u.t + u.derivative("x" * order)

        def conditions(self) -> list[Any]:
            return [hp.Initial(lambda p: jnp.cos(jnp.pi * p.x)), hp.Periodic("x")]

    return configure(Evolution(), method="network")


def with_dimension(dimension: int) -> RunConfig:
    class Poisson(hp.Problem):
        domain = hp.Box(**dict.fromkeys("abcdefgh"[:dimension], (0, 1)))
        fields = ("u",)

        def residual(self, u: Any, p: Any) -> Any:
            return u.laplacian + 1

        def conditions(self) -> list[Any]:
            return [hp.Dirichlet(0.0)]

    return configure(Poisson(), method="network")


CURVES: dict[str, tuple[Callable[[int], RunConfig], dict[str, tuple[int, ...]]]] = {
    "points": (
        with_points,
        {"adam": (512, 1024, 2048, 4096, 8192), "ssbroyden": (1024, 2048, 4096, 8192)},
    ),
    "parameters": (
        with_parameters,
        {"adam": (1000, 2000, 4000, 8000, 16_000), "ssbroyden": (500, 1000, 2000, 4000)},
    ),
    "order": (with_order, {"adam": (1, 2, 3, 4), "ssbroyden": (1, 2, 3, 4)}),
    "dimension": (with_dimension, {"adam": (1, 2, 3, 4, 5), "ssbroyden": (1, 2, 3, 4, 5)}),
}
"""What grows, and how far, for each optimiser."""


def measure(curve: str, optimiser: str, seconds: float) -> list[dict[str, float]]:
    """The milliseconds of a step for every size of a curve."""
    configuration, sizes = CURVES[curve]
    runs, parameters = {}, {}
    with jax.enable_x64(True):
        for size in sizes[optimiser]:
            made = prepare(only(configuration(size), optimiser))
            parameters[size] = int(made.theta.size)
            runs[str(size)] = stepper(made, optimiser, STEPS, WARM)
        best = time_together(runs, seconds, calls=1)
    return [
        {
            "size": parameters[size] if curve == "parameters" else size,
            "parameters": parameters[size],
            "ms": 1e3 * best[str(size)] / STEPS,
        }
        for size in sizes[optimiser]
    ]


def ratios(rows: list[dict[str, float]]) -> list[float]:
    """The cost of each size divided by that of the one before."""
    return [b["ms"] / a["ms"] for a, b in pairwise(rows)]


def plot(result: dict[str, Any], path: Path) -> None:
    """A panel for each thing that grows, a line for each optimiser."""
    figure = Figure(figsize=(9.6, 7.2), layout="constrained")
    for ax, curve in zip(figure.subplots(2, 2).flat, CURVES, strict=True):
        if curve not in result:
            ax.set_visible(False)
            continue
        for optimiser, rows in result[curve].items():
            sizes, cost = [r["size"] for r in rows], [r["ms"] for r in rows]
            ax.plot(sizes, cost, "o-", label={"adam": "Adam"}.get(optimiser, "SSBroyden"))
            if curve in ("points", "parameters"):
                ideal = [cost[0] * size / sizes[0] for size in sizes]
                ax.plot(sizes, ideal, ":", color="0.5", linewidth=1, zorder=0)
        if curve in ("points", "parameters"):
            ax.set_xscale("log", base=2)
            ax.set_yscale("log")
            ax.xaxis.set_major_formatter(lambda size, _: f"{size:,.0f}")
            ax.plot([], [], ":", color="0.5", linewidth=1, label="in proportion")
        else:
            ax.set_xticks(sizes)
            ax.set_ylim(bottom=0)
        ax.set_xlabel({"order": "order of the derivative"}.get(curve, curve))
        ax.set_ylabel("milliseconds a step")
        ax.grid(alpha=0.3)
        ax.legend()
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("curves", nargs="*", help=f"of {', '.join(CURVES)}")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each size of a curve")
    parser.add_argument("--plot", action="store_true", help="only draw the figure")
    parser.add_argument("--out", type=Path, default=FILE)
    parser.add_argument("--figure", type=Path, default=FIGURE)
    options = parser.parse_args()
    known = json.loads(options.out.read_text())["result"] if options.out.exists() else {}
    for curve in [] if options.plot else options.curves or CURVES:
        for optimiser in CURVES[curve][1]:
            rows = measure(curve, optimiser, options.seconds)
            known.setdefault(curve, {})[optimiser] = rows
            steps = ", ".join(f"{r['size']}: {r['ms']:.2f} ms" for r in rows)
            grown = ", ".join(f"{r:.2f}" for r in ratios(rows))
            print(f"{curve} {optimiser}: {steps}; ratios {grown}", flush=True)
        ordered = {name: known[name] for name in CURVES if name in known}
        write_json(options.out, {"result": ordered, "environment": environment("float64", 0)})
    plot(json.loads(options.out.read_text())["result"], options.figure)


if __name__ == "__main__":
    main()
