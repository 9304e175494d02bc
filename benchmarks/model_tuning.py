"""As many trials for every model: what shape the presets give it.

Four shapes of each model, all with as many parameters, on the same problems for the same number of
seconds of training, with the training of the `general` preset. The shape with the smallest geometric
mean of the errors is the one that the presets take. Run ``python benchmarks/model_tuning.py``, or name
models; trials that are in ``results/model_tuning.json`` already are kept.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from hyrespinn.experiments.config import RunConfig
from hyrespinn.experiments.environment import environment
from hyrespinn.experiments.presets import configure, match_parameters
from hyrespinn.experiments.solve import Session
from hyrespinn.files import write_json
from hyrespinn.nn import model_named
from hyrespinn.problems import problem_named
from hyrespinn.problems.problem import anatomy
from hyrespinn.solution import inputs_of
from training import figures

PROBLEMS = ("allen-cahn-dirichlet", "allen-cahn-periodic", "darcy-2d-dirichlet")
Shape = Callable[[Any], Any]


def shapes(**options: list[Any]) -> dict[str, Shape]:
    """The same setting with several values."""
    return {
        f"{name} {value}": lambda base, name=name, value=value: replace(base, **{name: value})
        for name, values in options.items()
        for value in values
    }


def with_scale(**changes: Any) -> Shape:
    return lambda base: replace(base, fourier_scale=2.0, **changes)


SCALES = shapes(fourier_scale=[1.0, 2.0, 3.0])
TRIALS: dict[str, dict[str, Shape]] = {
    "hyrespinn": SCALES
    | {"one more layer, no Fourier": lambda b: replace(b, fourier=0, depth=b.depth + 1)},
    "pinn": shapes(depth=[2, 3, 4, 5]),
    "respinn": shapes(depth=[2, 3, 4, 5]),
    "expertpinn": SCALES | {"fourier_scale 2.0, depth 3": with_scale(depth=3)},
    "stackedpinn": shapes(levels=[1, 2], depth=[1, 3]),
    "piratenet": SCALES | {"fourier_scale 2.0, blocks 2": with_scale(blocks=2)},
}


def configured(problem: str, model: str, shape: Shape, seconds: float) -> RunConfig:
    """The general preset of a problem with another shape of the model, of the same size."""
    made = problem_named(problem)()
    fast = configure(made, model=model, max_seconds=seconds, preset="general")
    endless = replace(fast.train, ssbroyden_steps=10**6, relative_target=0.0)
    if model == "hyrespinn":
        return replace(fast, train=endless, model_config=shape(fast.model_config))
    size = configure(made, preset="general").model_config.count(
        inputs_of(made, anatomy(made), exact=True)
    )
    sized = match_parameters(shape(model_named(model)()), size, made)
    return replace(fast, train=endless, model_config=sized)


def run(config: RunConfig) -> dict[str, Any]:
    result = Session(config, progress=False).run().result
    return {"settings": dataclasses.asdict(config.model_config), **figures(result)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", help="all for none", default=[])
    parser.add_argument("--seconds", type=float, default=25.0, help="of training, for a trial")
    parser.add_argument("--out", type=Path, default=Path("results/model_tuning.json"))
    options = parser.parse_args()
    found = json.loads(options.out.read_text())["result"] if options.out.exists() else {}
    for model in options.models or TRIALS:
        for label, shape in TRIALS[model].items():
            for problem in PROBLEMS:
                rows = found.setdefault(model, {}).setdefault(label, {})
                if problem in rows:
                    continue
                rows[problem] = run(configured(problem, model, shape, options.seconds))
                print(model, label, problem, rows[problem]["rel_l2"], flush=True)
                content = {"seconds": options.seconds, "result": found}
                write_json(options.out, content | {"environment": environment("float64", 0)})


if __name__ == "__main__":
    main()
