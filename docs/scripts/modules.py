"""Draw which module of the package imports which: ``python docs/scripts/modules.py``.

The arrows are the imports found in the source, without those that follow from others; the picture goes to
``docs/images/modules.png``. Modules that everybody uses stand in one bar below.
"""

from __future__ import annotations

import ast
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "hyrespinn"
FILE = ROOT / "docs" / "images" / "modules.png"

COMMON = ("algebra", "errors", "files", "metrics", "phases", "registry", "settings", "version")
"""Used everywhere; arrows to them would hide the others."""
WHAT = {
    "cli": "arguments,\nexit codes",
    "bench": "many runs,\ntables",
    "run": "solve, resume,\nresult.json",
    "methods": "what suits\na problem",
    "discretise": "what was\nchosen",
    "estimate": "estimated\nerrors",
    "training": "windows, stages,\ncheckpoints",
    "losses": "terms, weights,\nJacobians",
    "references": "classical\nsolvers",
    "solution": "evaluate,\nsave, load",
    "problems": "statement,\nconditions",
    "models": "networks,\nkernels",
    "derivatives": "Taylor\nengine",
    "geometry": "domains,\npoints",
    "optim": "optimisers on\none vector",
    "plots": "pictures",
}
HEIGHT = {"solution": 2, "plots": 1, "estimate": -1, "references": -2, "optim": 1, "geometry": 1}
"""Where a module stands above the middle line; on it unless stated otherwise."""


def imports() -> dict[str, set[str]]:
    """For every top-level module of the package those that it imports."""
    found: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).parts
        own = _module(parts[0].removesuffix(".py"))
        if own in ("__init__", "__main__") or own in COMMON:
            continue
        mine = found.setdefault(own, set())
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == len(parts):
                names = [node.module] if node.module else [a.name for a in node.names]
                mine |= {_module(str(name).split(".")[0]) for name in names}
    return {own: mine & found.keys() - {own} for own, mine in found.items()}


def _module(name: str) -> str:
    """The command line is two files, one of which is imported when a command runs."""
    return "cli" if name == "commands" else name


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    """All modules that one depends on."""
    return set().union(*({name} | reachable(graph, name) for name in graph[start]))


def reduced(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """Without the imports that follow from others."""
    return {
        own: {n for n in names if not any(n in reachable(graph, m) for m in names if m != n)}
        for own, names in graph.items()
    }


def column(graph: dict[str, set[str]], name: str) -> int:
    """How many modules stand one before the other above this one."""
    users = [own for own, names in graph.items() if name in names]
    return 1 + max((column(graph, own) for own in users), default=-1)


def draw(path: Path) -> None:
    graph = imports()
    place = {name: (1.32 * column(graph, name), 0.95 * HEIGHT.get(name, 0)) for name in graph}
    right = max(x for x, _ in place.values())
    figure = Figure(figsize=(13.2, 5.2), layout="constrained")
    ax = figure.subplots()
    ax.set_axis_off()
    boxes = {name: _box(ax, *where, 1.1, 0.66, "#dbe7f3") for name, where in place.items()}
    for own, names in reduced(graph).items():
        for name in names:
            (x, y), (to_x, to_y) = place[own], place[name]
            style = "arc3"
            if y != to_y and to_x - x > 2:  # around a corner, past the modules in between
                style = "angle,angleA=0,angleB=90,rad=6"
            elif to_y - y < -1:
                style = "angle,angleA=90,angleB=0,rad=6"
            arrow = FancyArrowPatch(
                (x, y), (to_x, to_y), arrowstyle="-|>", mutation_scale=11, color="0.4",
                patchA=boxes[own], patchB=boxes[name], shrinkA=0, shrinkB=0, linewidth=1,
                connectionstyle=style,
            )  # fmt: skip
            ax.add_patch(arrow)
    for name, (x, y) in place.items():
        ax.text(x, y + 0.18, name, ha="center", va="center", fontsize=10.5, weight="bold")
        ax.text(x, y - 0.1, WHAT.get(name, ""), ha="center", va="center", fontsize=8.5)
    _box(ax, right / 2, -2.67, right + 1.1, 0.4, "#eeeeee")
    text = f"used by all:  {' · '.join(COMMON)}"
    ax.text(right / 2, -2.67, text, ha="center", va="center", fontsize=10)
    ax.set_xlim(-0.65, right + 0.65)
    ax.set_ylim(-2.95, 2.35)
    figure.savefig(path, dpi=150)


def _box(ax: Axes, x: float, y: float, width: float, height: float, colour: str) -> FancyBboxPatch:
    patch = FancyBboxPatch(
        (x - width / 2, y - height / 2), width, height,
        boxstyle="round,pad=0,rounding_size=0.06", facecolor=colour, edgecolor="0.4", zorder=2,
    )  # fmt: skip
    ax.add_patch(patch)
    return patch


if __name__ == "__main__":
    draw(FILE)
