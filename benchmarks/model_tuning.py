"""As many trials for every model: what shape the `general` preset gives it.

Four shapes of each model, all with as many parameters, on the same problems for the same number of
seconds of training, with the training of the `general` preset. Run
``python benchmarks/model_tuning.py``, or name models; trials that are in ``results/model_tuning.json``
already are kept.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
from hyrespinn.experiments.config import RunConfig
from hyrespinn.experiments.environment import environment
from hyrespinn.experiments.presets import FAST_MODEL, configure, match_parameters
from hyrespinn.experiments.solve import Session
from hyrespinn.files import write_json
from hyrespinn.models import model_named
from hyrespinn.problems import problem_named
from hyrespinn.problems.boundary import Lifted
from hyrespinn.problems.statement import state
from training import figures

PROBLEMS = ("allen-cahn-dirichlet", "darcy-2d-dirichlet")
"""One with time, one without: the shape may depend on that."""
Shape = dict[str, Any]
GAUSSIAN: Shape = {"kernel": "gaussian", "width_quantile": 0.3}
DEPTHS = {f"{n} layers": {"depth": n} for n in (2, 3, 4, 5)}
TRIALS: dict[str, dict[str, Shape]] = {
    "hyrespinn": {
        "compact, Fourier": {},
        "Gaussian, Fourier": GAUSSIAN,
        "Gaussian, one more layer": {**GAUSSIAN, "fourier": 0, "depth": 3},
        "Gaussian, one layer less, Fourier": {**GAUSSIAN, "depth": 1, "centers": 16},
    },
    "pinn": DEPTHS,
    "respinn": DEPTHS,
    "expertpinn": {
        "2 layers, scale 1": {},
        "2 layers, scale 2": {"fourier_scale": 2.0},
        "3 layers, scale 2": {"depth": 3, "fourier_scale": 2.0},
        "1 layer, scale 2": {"depth": 1, "fourier_scale": 2.0},
    },
    "stackedpinn": {
        "1 level of 2 layers": {"levels": 1},
        "1 level of 3 layers": {"levels": 1, "depth": 3},
        "2 levels of 2 layers": {},
        "1 level of 4 layers": {"levels": 1, "depth": 4},
    },
    "piratenet": {
        "1 block, scale 1": {},
        "1 block, scale 2": {"fourier_scale": 2.0},
        "2 blocks, scale 2": {"blocks": 2, "fourier_scale": 2.0},
        "1 block, scale 3": {"fourier_scale": 3.0},
    },
}


def configured(problem: str, model: str, shape: Shape, seconds: float) -> RunConfig:
    """The general preset of a problem with another shape of the model, of the same size."""
    made = problem_named(problem)()
    general = configure(made, model=model, max_seconds=seconds, preset="general")
    endless = replace(general.train, ssbroyden_steps=10**6, relative_target=0.0)
    size = FAST_MODEL.count(Lifted().inputs(state(made)))
    base = FAST_MODEL if model == "hyrespinn" else model_named(model)()
    sized = match_parameters(replace(base, **shape), size, made)
    return replace(general, train=endless, model_config=sized)


def run(problem: str, model: str, shape: Shape, seconds: float) -> dict[str, Any]:
    config = configured(problem, model, shape, seconds)
    result = Session(config, progress=False).run().result
    return {"settings": dataclasses.asdict(config.model_config), **figures(result)}


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
        outcome = run(problem, model, TRIALS[model][label], options.seconds)
        found.setdefault(model, {}).setdefault(label, {})[problem] = outcome
        print(problem, model, label, outcome["rel_l2"], outcome["steps"], flush=True)
        content = {"seconds": options.seconds, "result": found}
        write_json(options.out, content | {"environment": environment("float64", 0)})
        jax.clear_caches()


if __name__ == "__main__":
    main()
