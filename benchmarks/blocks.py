"""The gradient of the interior block by block, for several sizes of a block.

Loss and gradient of Allen–Cahn and Darcy at the 4,096 points of ``--method network``, float64, inside a
compiled loop as in training, for HyResPINN and a plain PINN of its size. Run ``python
benchmarks/blocks.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import training
from hyrespinn.files import write_json
from hyrespinn.losses import blocks
from hyrespinn.problems import problem_named
from hyrespinn.run.config import configure
from hyrespinn.run.environment import environment
from timing import time_together
from training import Prepared, prepare

FILE = Path(__file__).parents[1] / "results" / "blocks.json"
SIZES = (256, 512, 1024, 2048, 4096)
STEPS = 10


def evaluations(prepared: Prepared, size: int) -> Any:
    """A compiled loop of evaluations with blocks of this size."""
    blocks.LARGEST = size
    samples = prepared.objective.draw(jax.random.key(1))
    return training.evaluations(prepared.objective, prepared.theta, samples, STEPS)


def main() -> None:
    result: dict[str, Any] = {}
    with jax.enable_x64(True):
        for name in ("allen-cahn-dirichlet", "darcy-2d-dirichlet"):
            for model in ("hyrespinn", "pinn"):
                prepared = prepare(configure(problem_named(name)(), model=model, method="network"))
                runs = {str(size): evaluations(prepared, size) for size in SIZES}
                seconds = time_together(runs, seconds=2.0, calls=2)
                milliseconds = {size: 1e3 * s / STEPS for size, s in seconds.items()}
                result[f"{name}, {model}"] = milliseconds
                print(name, model, {k: round(v, 2) for k, v in milliseconds.items()}, flush=True)
    write_json(FILE, {"result": result, "environment": environment("float64", 0)})


if __name__ == "__main__":
    main()
