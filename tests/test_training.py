"""Training: bitwise repeatable, stops for the reason it names, survives NaN, ignores the reference."""

from __future__ import annotations

from contextlib import contextmanager

import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.experiments.config import TrainConfig
from hyrespinn.experiments.stages import make_stages
from hyrespinn.training.checkpoint import load_meta
from hyrespinn.training.records import Clock
from hyrespinn.training.stopping import Stops

from helpers import TINY, Heat


def solve(problem=None, **options):
    settings = {**TINY, **options.pop("settings", {})}
    chosen = {"preset": "general", "progress": False, **options}
    return hp.solve(problem or Heat(), settings=settings, **chosen)


def parameters(solution):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(solution.model)]


def assert_same_bits(a, b):
    for x, y in zip(parameters(a), parameters(b), strict=True):
        assert x.tobytes() == y.tobytes()


@pytest.fixture(scope="module")
def plain():
    return solve(seed=3)


def test_the_same_seed_gives_the_same_bits_and_another_does_not(plain):
    assert_same_bits(plain, solve(seed=3))
    other = solve(seed=4)
    assert any((x != y).any() for x, y in zip(parameters(plain), parameters(other), strict=True))


def test_the_reference_has_no_influence(plain):
    blind = solve(seed=3, reference=False)
    assert_same_bits(plain, blind)
    assert plain.result["rel_l2"] is not None
    assert blind.result["rel_l2"] is None
    assert blind.result["steps"] == plain.result["steps"]


def test_training_lowers_the_error(plain):
    assert plain.result["rel_l2"]["u"] < 0.05
    assert plain.result["status"] == "completed"
    assert plain.result["steps"] == 80


def test_importing_and_solving_change_no_global_setting(plain):
    assert not jax.config.jax_enable_x64
    assert jnp.ones(1).dtype == jnp.float32
    assert plain(t=0.5, x=0.5).dtype == np.float64


@pytest.mark.slow
def test_float32_by_choice():
    single = solve(
        precision="float32", settings={"train.adam_steps": 0, "train.ssbroyden_steps": 10}
    )
    assert single.result["precision"] == "float32"
    assert all(leaf.dtype == np.float32 for leaf in parameters(single))


@pytest.mark.parametrize(
    ("settings", "options", "status"),
    [
        ({"train.target_loss": 1e9}, {}, "target"),
        ({"train.relative_target": 1e9}, {}, "target"),
        ({}, {"max_seconds": 1e-6}, "time_limit"),
        pytest.param(
            {"train.patience": 1, "train.ssbroyden_steps": 2000, "train.relative_target": 0.0},
            {},
            "stalled",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_stops_and_says_why(settings, options, status):
    result = solve(settings=settings, **options).result
    assert result["status"] == status
    assert result["message"]
    assert result["steps"] < 2000


class Explosive(Heat):
    """Finite at first; NaN as soon as the field leaves a narrow band."""

    limit: float = 3.0

    def residual(self, u, p):
        return u.t - self.nu * u.xx + 0 * jnp.sqrt(self.limit - jnp.abs(u.value))


def test_divergence_ends_with_the_last_good_solution():
    settings = {"train.adam_rate": 1e8, "train.adam_warmup": 0, "train.ssbroyden_steps": 0}
    solution = solve(Explosive(), settings=settings)
    assert solution.result["status"] == "diverged"
    assert "smaller" in solution.result["message"]
    assert np.isfinite(solution(t=0.5, x=np.linspace(0, 1, 5))).all()


def test_a_rate_that_is_too_high_is_mended(capsys):
    """Rolled back to the last good state, a smaller step gets through."""
    settings = {"train.adam_rate": 20.0, "train.adam_warmup": 0, "train.ssbroyden_steps": 0}
    result = hp.solve(Explosive(), preset="general", settings={**TINY, **settings}).result
    assert "back to the last good state" in capsys.readouterr().out.replace("\n", " ")
    assert result["status"] == "completed"
    assert np.isfinite(result["losses"]["total"])


@pytest.mark.slow  # test_losses.py has the gradient of such a batch
def test_one_point_in_a_batch_is_enough():
    settings = {"train.points": 1, "train.adam_points": 1, "train.initial_points": 1}
    result = solve(settings={**settings, "train.ssbroyden_steps": 5}).result
    assert np.isfinite(result["losses"]["total"])


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["lbfgs", "bfgs", "ssbfgs", "lm"])
def test_the_other_second_order_rules_train_too(rule):
    result = solve(settings={"train.quasi_newton": rule}).result
    assert result["rel_l2"]["u"] < 0.2


@pytest.mark.slow
def test_a_fixed_set_of_points_trains_too():
    """Poisson-disk points: drawn once, with nothing left for adaptive points to choose."""
    result = solve(settings={"train.sampler": "poisson"}).result
    assert result["status"] == "completed"
    assert result["rel_l2"]["u"] < 0.1
    assert result["rel_l2"]["u"] < 0.2 * result["rel_l2_initial"]["u"]


@pytest.mark.slow
def test_soap_trains_too():
    settings = {"train.adam_rule": "soap", "train.ssbroyden_steps": 0, "train.adam_steps": 100}
    result = solve(settings={**settings, "train.adam_rate": 1e-2}).result
    assert result["rel_l2"]["u"] < 0.5 * result["rel_l2_initial"]["u"]


@pytest.mark.slow
def test_optimisers_run_in_any_order():
    stages = "ssbroyden:20, lm:4, adam:5"
    solution = solve(settings={"train.stages": stages})
    assert solution.result["steps"] == 29
    assert np.isfinite(solution.result["losses"]["total"])


@pytest.mark.parametrize(
    ("stages", "message"),
    [("newton:5", "optimiser"), ("adam", "name:steps"), ("adam:-3", "name:steps")],
)
def test_a_stage_that_cannot_be_read_says_how_it_is_written(stages, message):
    with pytest.raises(hp.UserError, match=message):
        solve(settings={"train.stages": stages})


def test_rounds_grow_and_none_begins_shortly_before_the_end():
    train = TrainConfig(stages=("ssbroyden:1000",), round_steps=100, round_growth=0.5)
    (stage,) = make_stages(train)
    begins, taken = [], 0
    while taken < 1000:
        begins.append(taken)
        taken += stage.round_length(taken, 1000)
    assert begins == [0, 100, 200, 300, 450, 675]  # at 450 two rounds of 225 fit, at 675 of 338 not
    assert taken == 1000


def test_rounds_of_one_length_fill_a_stage_as_they_come():
    (stage,) = make_stages(TrainConfig(stages=("ssbroyden:1000",), round_steps=100))
    assert {stage.round_length(taken, 1000) for taken in range(0, 1000, 100)} == {100}
    assert stage.round_length(900, 1050) == 150


@pytest.mark.parametrize(
    ("began", "length", "limit", "expected"),
    [
        ((200, 70.0), 100, 100.0, False),  # 0.1 s a step: done after 90 s
        ((200, 70.0), 250, 100.0, True),  # after 105 s
        ((200, 70.0), 250, None, False),
        (None, 250, 100.0, False),  # resumed: how long a step takes is not known
        ((300, 80.0), 250, 100.0, False),
    ],
)
def test_a_time_limit_cuts_short_what_it_has_no_time_for(began, length, limit, expected):
    stops = Stops(max_seconds=limit)
    assert stops.cut_short(length, began, now=(300, 80.0)) == expected


@pytest.mark.slow
def test_the_last_round_lasts_until_the_time_is_over(tmp_path, monkeypatch):
    """On a clock that ticks once for each program that is run."""

    @contextmanager
    def tick(clock, what):
        yield
        clock.training += what == "training"

    monkeypatch.setattr(Clock, "measure", tick)
    settings = {"train.adam_steps": 0, "train.ssbroyden_steps": 400}
    result = solve(settings=settings, max_seconds=20, out=tmp_path / "run").result
    assert result["status"] == "time_limit"
    progress = load_meta(tmp_path / "run" / "checkpoint" / "state.npz")["progress"]
    assert 0 < progress["next_round"] < progress["stage_steps"] < 400
    more = hp.resume(tmp_path / "run", progress=False, max_seconds=1e9)
    assert more.result["steps"] == 400
