"""The method paper: its sizes, its recipe, and that all of it runs together."""

from __future__ import annotations

import dataclasses

import hyrespinn as hp
import numpy as np
import pytest
from hyrespinn.bench.plan import COMPARED, PAPER_PROBLEMS
from hyrespinn.discretise import Causal, Fixed, GradientNorm, Lifted, Whole
from hyrespinn.errors import UserError
from hyrespinn.geometry.sampling import PoissonDisk, Uniform
from hyrespinn.methods.paper import LARGE, SIZES, SMALL_COUNT
from hyrespinn.models import PINN
from hyrespinn.models.matching import tolerance
from hyrespinn.optim import Adam
from hyrespinn.problems.statement import state
from hyrespinn.run.config import configure


def paper(problem, model="hyrespinn", preset="full", **options):
    made = hp.problems.problem_named(problem)()
    return configure(made, method="paper", model=model, preset=preset, **options)


def chosen(problem, model="hyrespinn", preset="full"):
    return paper(problem, model, preset).discretisation


def count(config):
    return config.discretisation.model.count(Lifted().inputs(state(config.problem)))


@pytest.mark.parametrize("problem", PAPER_PROBLEMS)
@pytest.mark.parametrize("model", COMPARED)
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


@pytest.mark.parametrize("model", COMPARED)
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
        steps, points, decay_steps, chunks, tolerances, windows = row
        found = chosen(problem, model)
        (adam,) = found.stages
        schedule = {"rate": 1e-3, "warmup": 5000, "decay": 0.9, "decay_steps": decay_steps}
        assert adam == Adam(steps, batch=points, **schedule)
        assert found.points.interior == points
        assert found.weights.causal == Causal(chunks, tolerances, every=1000)
        assert found.weights.balance == GradientNorm(momentum=0.9, every=1000)
        assert getattr(found.marching, "count", 1) == windows
        assert (found.points.sampler, found.boundary) == (Uniform(), Lifted())
        fitted = model == "piratenet" or (model == "hyrespinn" and SIZES[problem] is LARGE)
        assert found.initial_fit == ("initial" if fitted else "none")
    darcy = chosen("darcy-2d-neumann", model)
    assert darcy.points.sampler == PoissonDisk()
    assert darcy.stages[0].batch == darcy.points.interior  # the full batch
    assert (darcy.weights.causal, darcy.marching) == (None, Whole())
    assert darcy.initial_fit == ("equation" if model == "piratenet" else "none")


def test_windows_reach_past_their_ends():
    assert chosen("kuramoto-sivashinsky").marching == Fixed(10, overshoot=0.04)
    assert chosen("kuramoto-sivashinsky").weights.initial == 1000
    assert chosen("grey-scott").marching == Fixed(10, overshoot=0.1)
    assert chosen("grey-scott").points.initial == 200**2


def test_other_problems_are_trained_alike():
    """As Allen–Cahn (Dirichlet), without causal weights where there is no time."""
    timed = chosen("heat-1d")
    assert timed == dataclasses.replace(chosen("allen-cahn-dirichlet"), model=timed.model)
    steady = chosen("poisson-2d")
    assert steady.weights == dataclasses.replace(timed.weights, causal=None)
    assert steady.stages == timed.stages


def test_the_preset_paper_is_the_method_at_its_full_length():
    problem = hp.problems.AllenCahnDirichlet()
    config = configure(problem, preset="paper")
    assert config.to_json() == paper("allen-cahn-dirichlet").to_json() | {"why": config.why}
    short = configure(problem, preset="paper", model="pinn")
    assert (short.method, short.preset, short.model) == ("paper", "full", "pinn")


@pytest.mark.parametrize(
    ("preset", "share"), [("small", 0.1), ("accurate", 0.05), ("fast", 0.01), ("smoke", 0.001)]
)
def test_shorter_presets_shorten_all_that_is_counted_in_steps(preset, share):
    """With networks of at most 20,000 parameters."""
    full, short = (chosen("kuramoto-sivashinsky", preset=p) for p in ("full", preset))
    (long,), (adam,) = full.stages, short.stages
    for name in ("steps", "warmup", "decay_steps"):
        assert getattr(adam, name) == round(share * getattr(long, name))
    assert (adam.rate, adam.decay, adam.batch) == (long.rate, long.decay, long.batch)
    assert short.weights.balance.every == max(10, round(share * 1000))
    assert short.weights.causal.every == max(10, round(share * 1000))
    assert (short.points, short.marching) == (full.points, full.marching)
    small = count(paper("kuramoto-sivashinsky", preset=preset))
    assert abs(small - SMALL_COUNT) <= 0.02 * SMALL_COUNT
    assert count(paper("darcy-2d-neumann", preset=preset)) == count(paper("darcy-2d-neumann"))


def test_a_specification_of_ones_own_is_trained_as_the_papers_network():
    own = PINN(width=7)
    found = configure(
        hp.problems.KortewegDeVries(), method="paper", preset="full", model=own
    ).discretisation
    assert found.model == own
    assert dataclasses.replace(chosen("korteweg-de-vries"), model=own, initial_fit="none") == found


@pytest.mark.parametrize("preset", ["fast", "smoke"])
def test_all_models_of_a_preset_have_one_size(preset):
    problem = hp.problems.problem_named("burgers")()
    made = (configure(problem, method="network", model=m, preset=preset) for m in COMPARED)
    counts = [count(config) for config in made]
    assert max(counts) <= 1.05 / 0.95 * min(counts)


@pytest.mark.slow
def test_windows_weights_causality_and_fitted_layer_run_together():
    """The periodic Allen–Cahn equation as the paper trains it, but in windows, small and short."""
    few = {
        "model.width": 8, "model.blocks": 1, "stages.adam.steps": 6, "marching": Fixed(2),
        "points.interior": 64, "stages.adam.batch": 64, "points.initial": 32,
        "weights.balance.every": 3,
    }  # fmt: skip
    solution = hp.solve(
        "allen-cahn-periodic", model="piratenet", preset="paper",
        precision="float32", settings=few, progress=False, reference=False,
    )  # fmt: skip
    assert solution.result["status"] == "completed"
    assert (solution.result["method"], solution.result["preset"]) == ("paper", "full")
    one, two = solution.result["windows"]
    assert 1 != one["weight_initial"] != two["weight_initial"] != 1
    assert 0 <= two["causal"] <= 1
    x = np.linspace(-1, 1, 9)[:-1]
    start = x**2 * np.cos(np.pi * x)
    # Six steps of the warm-up change next to nothing: the last layer was fitted to the start.
    assert np.abs(solution(t=0.0, x=x) - start).max() < 0.5 * np.abs(start).max()


def test_a_model_that_is_not_the_papers_is_refused():
    with pytest.raises(
        UserError, match="paper has no kernel-expansion; the method paper knows hyr"
    ):
        paper("heat-1d", "kernel-expansion")
