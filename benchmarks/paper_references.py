"""The paper's own references and initial data against converged ones (decisions D7, D8, D9, D11).

Run ``python benchmarks/paper_references.py``; the figures go to ``results/paper_references.json``
and from there, by ``python benchmarks/tables.py``, to the page of differences.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from hyrespinn.files import write_json
from hyrespinn.metrics import relative_l2
from hyrespinn.problems import (
    AllenCahnDirichlet,
    AllenCahnPeriodic,
    GreyScott,
    Initial,
    KuramotoSivashinsky,
    Periodic,
)
from hyrespinn.references import error_axes, make_reference, reference_of
from hyrespinn.references.dispersive import kuramoto_sivashinsky
from hyrespinn.run.environment import environment

FILE = Path(__file__).parents[1] / "results" / "paper_references.json"


def printed_start() -> dict[str, Any]:
    """D7: how far from the trivial state u = 1, v = 0 the two initial data end up."""
    rows = {}
    for initial in ("printed", "gaussian"):
        reference = reference_of(GreyScott(initial=initial))
        t = reference.axes["t"]
        v = np.abs(reference.values["v"]).max(axis=(1, 2))
        gone = np.flatnonzero(v < 1e-6)
        rows[initial] = {
            "max_v": {f"{time:g}": float(v[np.argmin(abs(t - time))]) for time in (0, 0.1, 0.4, 2)},
            "v_below_1e-6_from": float(t[gone[0]]) if gone.size else None,
        }
    return rows


def imex() -> float:
    """D8: the paper's reference of allen-cahn-dirichlet."""
    paper = reference_of(AllenCahnDirichlet(reference="paper"))
    return relative_l2(paper.values["u"], reference_of(AllenCahnDirichlet()).values["u"])


def modes() -> dict[str, float]:
    """D9: references of allen-cahn-periodic by plain sampling, the first of them the paper's."""
    converged = reference_of(AllenCahnPeriodic()).values["u"]
    problem = AllenCahnPeriodic(reference="paper")
    return {
        str(n): relative_l2(make_reference(problem, modes=n).values["u"], converged)
        for n in (512, 1024, 2048)
    }


class Disturbed(KuramotoSivashinsky):
    """The same equation with a small disturbance of the initial data."""

    wave: int = 1

    def conditions(self) -> list[Any]:
        def start(p: Any) -> Any:
            return jnp.cos(p.x) * (1 + jnp.sin(p.x)) + 1e-8 * jnp.cos(self.wave * p.x)

        return [Initial(start), Periodic("x")]


def growth() -> dict[str, dict[str, float]]:
    """D11: by how much disturbances of kuramoto-sivashinsky grow, at times and over all of them."""
    axes = error_axes(KuramotoSivashinsky())
    settings = {"modes": 512, "steps": 20_000}
    known = kuramoto_sivashinsky(KuramotoSivashinsky(), axes, **settings)["u"]
    rows = {}
    for wave in (1, 5, 10):
        other = kuramoto_sivashinsky(Disturbed(wave=wave), axes, **settings)["u"]
        first = relative_l2(other[0], known[0])
        at = {f"{t:g}": round(t * (len(known) - 1)) for t in (0.2, 0.4, 0.8, 1.0)}
        rows[f"cos {wave}x"] = {
            **{t: relative_l2(other[i], known[i]) / first for t, i in at.items()},
            "all": relative_l2(other, known) / first,
        }
    return rows


def main() -> None:
    result = {"D7": printed_start(), "D8": imex(), "D9": modes(), "D11": growth()}
    print(result)
    write_json(FILE, {"result": result, "environment": environment("float64", 0)})


if __name__ == "__main__":
    main()
