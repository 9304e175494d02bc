"""The paper preset: its sizes, its recipe, and that all of it runs together."""

from __future__ import annotations

import hyrespinn as hp
import numpy as np
import pytest
from hyrespinn.errors import UserError
from hyrespinn.experiments.bench import PAPER_PROBLEMS
from hyrespinn.experiments.paper import LARGE, SIZES
from hyrespinn.experiments.presets import configure
from hyrespinn.models import MODELS
from hyrespinn.models.matching import tolerance
from hyrespinn.problems.boundary import Lifted
from hyrespinn.problems.statement import state


def paper(problem, model="hyrespinn", **options):
    return configure(hp.problems.problem_named(problem)(), model=model, preset="paper", **options)


def count(config):
    problem = config.problem
    return config.model_config.count(Lifted().inputs(state(problem)))


@pytest.mark.parametrize("problem", PAPER_PROBLEMS)
@pytest.mark.parametrize("model", MODELS)
def test_the_counts_are_those_of_the_papers_tables(problem, model):
    """Within 2 %."""
    printed = SIZES[problem].counts[model]
    assert abs(count(paper(problem, model)) - printed) <= tolerance(printed) * printed


@pytest.mark.parametrize(
    ("problem", "model", "printed"),
    [
        ("allen-cahn-dirichlet", "hyrespinn", 17_667),
        ("darcy-2d-dirichlet", "pinn", 14_913),
        ("darcy-3d-neumann", "pinn", 14_945),
        ("kuramoto-sivashinsky", "pinn", 724_353),
        ("korteweg-de-vries", "respinn", 790_145),
        ("allen-cahn-periodic", "expertpinn", 727_170),
    ],
)
def test_some_counts_are_exact(problem, model, printed):
    """What the depths and the modified deep branch were read from."""
    assert count(paper(problem, model)) == printed


@pytest.mark.parametrize("model", MODELS)
def test_the_recipe(model):
    """One row of the settings of each problem, read from the paper and what it follows."""
    rows = {
        "allen-cahn-dirichlet": (100_000, 1024, 2000, 32, (1.0,), 1),
        "allen-cahn-periodic": (300_000, 8192, 5000, 32, (1.0,), 1),
        "korteweg-de-vries": (200_000, 4096, 2000, 16, (0.1,), 1),
        "kuramoto-sivashinsky": (200_000, 4096, 2000, 16, (0.1,), 10),
        "grey-scott": (100_000, 4096, 2000, 32, (1.0,), 10),
    }
    if model == "expertpinn":
        rows["kuramoto-sivashinsky"] = (200_000, 4096, 2000, 16, (1.0,), 10)
    for problem, row in rows.items():
        t = paper(problem, model).train
        found = (t.adam_steps, t.adam_points, t.adam_decay_steps, t.causal_chunks)
        assert (*found, t.causal_tolerances, t.windows) == row
        assert (t.adam_rate, t.adam_warmup, t.adam_decay) == (1e-3, 5000, 0.9)
        assert (t.balance, t.balance_every, t.balance_momentum) == ("gradient-norm", 1000, 0.9)
        assert (t.ssbroyden_steps, t.sampler, t.exact) == (0, "uniform", True)
        fitted = model == "piratenet" or (model == "hyrespinn" and SIZES[problem] is LARGE)
        assert t.last_layer == ("initial" if fitted else "none")
    darcy = paper("darcy-2d-neumann", model).train
    assert darcy.sampler == "poisson"
    assert darcy.adam_points == darcy.points  # the full batch


@pytest.mark.parametrize("preset", ["general", "smoke"])
def test_all_models_of_a_preset_have_one_size(preset):
    problem = hp.problems.problem_named("burgers")()
    counts = [count(configure(problem, model=m, preset=preset)) for m in MODELS]
    assert max(counts) <= 1.05 / 0.95 * min(counts)


@pytest.mark.slow
def test_windows_weights_causality_and_fitted_layer_run_together():
    """The periodic Allen–Cahn equation as the paper trains it, but in windows, small and short."""
    few = {
        "model.width": 8, "model.blocks": 1, "train.adam_steps": 6, "train.windows": 2,
        "train.points": 64, "train.adam_points": 64, "train.initial_points": 32,
        "train.balance_every": 3,
    }  # fmt: skip
    solution = hp.solve(
        hp.problems.problem_named("allen-cahn-periodic")(), model="piratenet", preset="paper",
        precision="float32", settings=few, progress=False, reference=False,
    )  # fmt: skip
    assert solution.result["status"] == "completed"
    one, two = solution.result["windows"]
    assert 1 != one["weight_initial"] != two["weight_initial"] != 1
    assert 0 <= two["causal"] <= 1
    x = np.linspace(-1, 1, 9)[:-1]
    start = x**2 * np.cos(np.pi * x)
    # Six steps of the warm-up change next to nothing: the last layer was fitted to the start.
    assert np.abs(solution(t=0.0, x=x) - start).max() < 0.5 * np.abs(start).max()


def test_a_model_that_is_not_the_papers_is_refused(monkeypatch):
    monkeypatch.setitem(MODELS, "own", MODELS["pinn"])
    with pytest.raises(UserError, match="paper has no own"):
        paper("heat-1d", "own")
