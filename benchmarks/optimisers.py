"""The error against the seconds of training, for every optimiser on four problems.

The network of ``--method network``, the same seconds for each; those of the second order begin after
its first stage, Adam, but for the trust region. Of Korteweg–de Vries it is the first of five windows of
time. Run ``python benchmarks/optimisers.py``; what ``results/optimisers.json`` has already stays, so a
run that was stopped goes on. ``--plot`` draws ``docs/images/optimisers.png`` from it.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from pathlib import Path
from typing import Any

import hyrespinn as hp
from hyrespinn.files import write_json
from hyrespinn.optim import OPTIMISERS
from hyrespinn.run.environment import environment
from matplotlib.axes import Axes
from matplotlib.figure import Figure

ROOT = Path(__file__).parents[1]
FILE = ROOT / "results" / "optimisers.json"
FIGURE = ROOT / "docs" / "images" / "optimisers.png"

FIRST_ORDER = ("adam", "soap")
SECOND_ORDER = ("lbfgs", "bfgs", "ssbfgs", "ssbroyden", "lm")
NAMES = (*FIRST_ORDER, *SECOND_ORDER, "trust-region")
PROBLEMS: dict[str, dict[str, Any]] = {
    "allen-cahn-dirichlet": {},
    "burgers": {},
    "darcy-2d-dirichlet": {},
    "korteweg-de-vries": {"marching": hp.discretise.Fixed(5)},
}
"""The problems, with settings of their own."""
ENDLESS = 10**6  # steps: the time limit ends a training


def settings(optimiser: str) -> dict[str, Any]:
    """The method ``network`` with another optimiser, until time is over."""
    if optimiser in FIRST_ORDER:
        # The usual rate falls within the first stage; alone, an optimiser has longer.
        return {"stages": (OPTIMISERS[optimiser](steps=ENDLESS, decay_steps=500),)}
    if optimiser == "trust-region":  # from a random start
        endless = hp.optim.TrustRegion(steps=ENDLESS, round_steps=15, most_rounds=ENDLESS)
        return {"stages": (endless,)}
    growth = {} if optimiser == "lm" else {"round_growth": 0.05}
    last = OPTIMISERS[optimiser](steps=ENDLESS, **growth)
    return {"stages": (hp.optim.Adam(steps=1000), last)}


def measure(name: str, optimiser: str, seconds: float) -> dict[str, Any]:
    """The errors of the first field along a training."""
    problem = hp.problems.problem_named(name)()
    chosen = {**PROBLEMS[name], **settings(optimiser), "stopping.relative_loss": 0.0}
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        solution = hp.solve(
            problem, method="network", max_seconds=seconds, settings=chosen, out=run, progress=False
        )
        with (run / "history.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
    result = solution.result
    first = [row for row in rows if row.get("window") == rows[0].get("window")]
    column = f"rel_l2_{problem.fields[0]}"
    return {
        "seconds": [round(float(row["seconds"]), 3) for row in first],
        "error": [float(row[column]) for row in first],
        "steps": int(first[-1]["step"]),
        "status": result["status"],
        "parameters": result["n_params"],
        "compilation": result["seconds"]["compilation"],
    }


def plot(content: dict[str, Any], path: Path) -> None:
    """A panel for each problem, a line for each optimiser."""
    shown = content["result"]
    figure = Figure(figsize=(9.6, 7.2), layout="constrained")
    for ax, name in zip(figure.subplots(2, 2).flat, PROBLEMS, strict=True):
        ax.set_visible(name in shown)
        _panel(ax, name, shown.get(name, {}))
    handles = {label: line for ax in figure.axes for line, label in _lines(ax)}
    figure.legend(
        list(handles.values()), list(handles), loc="outside lower center", ncols=len(handles)
    )
    figure.savefig(path, dpi=150)


def _panel(ax: Axes, name: str, runs: dict[str, Any]) -> None:
    for i, optimiser in enumerate(NAMES):
        if optimiser in runs:
            run = runs[optimiser]
            ax.plot(run["seconds"], run["error"], color=f"C{i}", linewidth=1.4, label=optimiser)
    ax.set_yscale("log")
    ax.set_title(name + (", first window" if PROBLEMS[name] else ""), fontsize=11)
    ax.set_xlabel("seconds of training")
    ax.set_ylabel("relative error")
    ax.grid(alpha=0.3)
    ax.set_xlim(left=0)


def _lines(ax: Axes) -> list[tuple[Any, str]]:
    return list(zip(*ax.get_legend_handles_labels(), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", action="append", choices=tuple(PROBLEMS))
    parser.add_argument("--optimiser", action="append", choices=NAMES)
    parser.add_argument("--seconds", type=float, default=60.0, help="of training, each")
    parser.add_argument("--again", action="store_true", help="measure also what is there already")
    parser.add_argument("--plot", action="store_true", help="only draw the figure")
    parser.add_argument("--out", type=Path, default=FILE)
    parser.add_argument("--figure", type=Path, default=FIGURE)
    options = parser.parse_args()
    known = json.loads(options.out.read_text())["result"] if options.out.exists() else {}
    pairs = [
        (name, optimiser)
        for name in options.problem or PROBLEMS
        for optimiser in options.optimiser or NAMES
        if options.again or optimiser not in known.get(name, {})
    ]
    for name, optimiser in [] if options.plot else pairs:
        run = known.setdefault(name, {})[optimiser] = measure(name, optimiser, options.seconds)
        print(f"{name} {optimiser}: {run['error'][-1]:.2e}, {run['steps']} steps", flush=True)
        ordered = {n: known[n] for n in PROBLEMS if n in known}
        content = {"result": ordered, "environment": environment("float64", 0)}
        write_json(options.out, content)
    if options.out.exists():
        plot(json.loads(options.out.read_text()), options.figure)


if __name__ == "__main__":
    main()
