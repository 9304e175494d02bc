"""As many trials for every model: what shape the `general` preset gives it.

Four shapes of each model, all with as many parameters, on the same problems for the same number of
seconds of training on one core each, with the training of the `general` preset. Run
``python benchmarks/model_tuning.py``, or name models; trials that are in ``results/model_tuning.json``
already are kept.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterator
from concurrent.futures import as_completed
from dataclasses import replace
from pathlib import Path
from typing import Any

from hyrespinn.experiments.bench_jobs import one_per_core
from hyrespinn.experiments.config import RunConfig
from hyrespinn.experiments.environment import cores, environment
from hyrespinn.experiments.presets import configure, match_parameters
from hyrespinn.experiments.solve import Session
from hyrespinn.files import write_json
from hyrespinn.nn import model_named
from hyrespinn.problems import problem_named
from hyrespinn.problems.problem import anatomy
from hyrespinn.solution import inputs_of
from training import figures

PROBLEMS = (
    "allen-cahn-dirichlet",
    "allen-cahn-periodic",
    "darcy-2d-dirichlet",
    "korteweg-de-vries",
)
Shape = dict[str, Any]
GAUSSIAN: Shape = {"kernel": "gaussian", "width_quantile": 0.3}
TRIALS: dict[str, dict[str, Shape]] = {
    "hyrespinn": {
        "compact, φ(β) 0.01": {},
        "compact, φ(β) 0.5": {"phi_beta": 0.5},
        "Gaussian, φ(β) 0.01": GAUSSIAN,
        "Gaussian, φ(β) 0.5": {**GAUSSIAN, "phi_beta": 0.5},
    },
    "pinn": {f"{n} layers": {"depth": n} for n in (2, 3, 4, 5)},
    "respinn": {f"{n} layers": {"depth": n} for n in (2, 3, 4, 5)},
    "expertpinn": {
        "2 layers, scale 1": {},
        "2 layers, scale 2": {"fourier_scale": 2.0},
        "3 layers, scale 1": {"depth": 3},
        "3 layers, scale 2": {"depth": 3, "fourier_scale": 2.0},
    },
    "stackedpinn": {
        "1 level of 2 layers": {"levels": 1},
        "1 level of 3 layers": {"levels": 1, "depth": 3},
        "2 levels of 2 layers": {},
        "2 levels of 3 layers": {"depth": 3},
    },
    "piratenet": {
        "1 block, scale 1": {},
        "1 block, scale 2": {"fourier_scale": 2.0},
        "2 blocks, scale 1": {"blocks": 2},
        "2 blocks, scale 2": {"blocks": 2, "fourier_scale": 2.0},
    },
}


def configured(problem: str, model: str, shape: Shape, seconds: float) -> RunConfig:
    """The general preset of a problem with another shape of the model, of the same size."""
    made = problem_named(problem)()
    general = configure(made, model=model, max_seconds=seconds, preset="general")
    endless = replace(general.train, ssbroyden_steps=10**6, relative_target=0.0)
    hybrid = configure(made, preset="general").model_config
    size = hybrid.count(inputs_of(made, anatomy(made), exact=True))
    base = hybrid if model == "hyrespinn" else model_named(model)()
    sized = match_parameters(replace(base, **shape), size, made)
    return replace(general, train=endless, model_config=sized)


def run(problem: str, model: str, shape: Shape, seconds: float) -> dict[str, Any]:
    config = configured(problem, model, shape, seconds)
    result = Session(config, progress=False).run().result
    return {"settings": dataclasses.asdict(config.model_config), **figures(result)}


def waiting(models: list[str], found: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The trials that have not been made, those of a problem one after the other."""
    for problem in PROBLEMS:
        for model in models or TRIALS:
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
    with one_per_core(cores()) as pool:
        trials = {
            pool.submit(run, problem, model, TRIALS[model][label], options.seconds): (
                problem, model, label,
            )
            for problem, model, label in waiting(options.models, found)
        }  # fmt: skip
        for trial in as_completed(trials):
            problem, model, label = trials[trial]
            outcome = found.setdefault(model, {}).setdefault(label, {})[problem] = trial.result()
            print(problem, model, label, outcome["rel_l2"], outcome["steps"], flush=True)
            content = {"seconds": options.seconds, "result": found}
            write_json(options.out, content | {"environment": environment("float64", 0)})


if __name__ == "__main__":
    main()
