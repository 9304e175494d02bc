"""As many trials for every model: what shape the method ``network`` gives it.

Four shapes of each model, all with as many parameters, on the same problems for the same number of
seconds of training by Adam and SSBroyden on all of the time at once. Run
``python benchmarks/model_tuning.py``, or name models; trials that are in ``results/model_tuning.json``
already are kept.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
from hyrespinn.files import write_json
from hyrespinn.methods.network import sized_as
from hyrespinn.models import (
    PINN,
    Deep,
    ExpertPINN,
    Fourier,
    Frequencies,
    HyResPINN,
    ModelSpec,
    Moving,
    PirateNet,
    ResPINN,
    StackedPINN,
)
from hyrespinn.models.kernels import Gaussian
from hyrespinn.problems import problem_named
from hyrespinn.problems.statement import state
from hyrespinn.run.config import RunConfig, configure
from hyrespinn.run.environment import environment
from hyrespinn.run.session import Session
from hyrespinn.settings import to_json
from training import figures

PROBLEMS = ("allen-cahn-dirichlet", "darcy-2d-dirichlet")
"""One with time, one without: the shape may depend on that."""
GAUSSIAN = Moving(count=12, kernel=Gaussian(), quantile=0.3)
FOURIER = Fourier(features=24, scale=2.0)
DEPTHS = (2, 3, 4, 5)
BASE = HyResPINN(kernels=Moving(count=12), deep=Deep(fourier=FOURIER))
"""Its number of parameters is that of all shapes."""
TRAINING: dict[str, object] = {
    "stages": f"adam(steps=1000), ssbroyden(steps={10**6}, round_growth=0.05)",
    "stopping.relative_loss": 0.0,
    "points.interior": 4096,
}
TRIALS: dict[str, dict[str, ModelSpec]] = {
    "hyrespinn": {
        "compact, Fourier": BASE,
        "Gaussian, Fourier": replace(BASE, kernels=GAUSSIAN),
        "Gaussian, one more layer": replace(BASE, kernels=GAUSSIAN, deep=Deep(depth=3)),
        "Gaussian, one layer less, Fourier": replace(
            BASE, kernels=replace(GAUSSIAN, count=16), deep=Deep(depth=1, fourier=FOURIER)
        ),
    },
    "pinn": {f"{n} layers": PINN(depth=n) for n in DEPTHS},
    "respinn": {f"{n} layers": ResPINN(depth=n) for n in DEPTHS},
    "expertpinn": {
        "2 layers, scale 1": ExpertPINN(),
        "2 layers, scale 2": ExpertPINN(fourier=Fourier(scale=2.0)),
        "3 layers, scale 2": ExpertPINN(depth=3, fourier=Fourier(scale=2.0)),
        "1 layer, scale 2": ExpertPINN(depth=1, fourier=Fourier(scale=2.0)),
    },
    "stackedpinn": {
        "1 level of 2 layers": StackedPINN(levels=1),
        "1 level of 3 layers": StackedPINN(levels=1, depth=3),
        "2 levels of 2 layers": StackedPINN(),
        "1 level of 4 layers": StackedPINN(levels=1, depth=4),
    },
    "piratenet": {
        "1 block, scale 1": PirateNet(),
        "1 block, scale 2": PirateNet(fourier=Frequencies(scale=2.0)),
        "2 blocks, scale 2": PirateNet(blocks=2, fourier=Frequencies(scale=2.0)),
        "1 block, scale 3": PirateNet(fourier=Frequencies(scale=3.0)),
    },
}


def configured(problem: str, shape: ModelSpec, seconds: float) -> RunConfig:
    """The method ``network`` with another shape of the model, of the same size."""
    made = problem_named(problem)()
    return configure(
        made,
        method="network",
        model=sized_as(shape, BASE, state(made)),
        max_seconds=seconds,
        settings=TRAINING | ({"marching": "whole"} if made.domain.has_time else {}),
    )


def run(problem: str, shape: ModelSpec, seconds: float) -> dict[str, Any]:
    config = configured(problem, shape, seconds)
    result = Session(config, progress=False).run().result
    return {"settings": to_json(config.discretisation.model), **figures(result)}


def waiting(models: Iterable[str], found: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The trials that have not been made yet: problem, model, and the label of the shape."""
    for problem in PROBLEMS:
        for model in models:
            for label in TRIALS[model]:
                if problem not in found.get(model, {}).get(label, {}):
                    yield problem, model, label


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", help="all for none", default=[])
    parser.add_argument("--seconds", type=float, default=25.0, help="of training, for a trial")
    parser.add_argument("--out", type=Path, default=Path("results/model_tuning.json"))
    options = parser.parse_args()
    found = json.loads(options.out.read_text())["result"] if options.out.exists() else {}
    for problem, model, label in waiting(options.models or TRIALS, found):
        outcome = run(problem, TRIALS[model][label], options.seconds)
        found.setdefault(model, {}).setdefault(label, {})[problem] = outcome
        print(problem, model, label, outcome["rel_l2"], outcome["steps"], flush=True)
        content = {"seconds": options.seconds, "result": found}
        write_json(options.out, content | {"environment": environment("float64", 0)})
        jax.clear_caches()


if __name__ == "__main__":
    main()
