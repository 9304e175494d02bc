"""Training: bitwise repeatable, stops for the reason it names, survives NaN, ignores the reference."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.optim import Adam, SSBroyden
from hyrespinn.run.config import configure
from hyrespinn.run.session import Session
from hyrespinn.training.march import March, Restored
from hyrespinn.training.records import Clock, Silent
from hyrespinn.training.run_state import RunState
from hyrespinn.training.stage import Stage
from hyrespinn.training.stage_run import copied
from hyrespinn.training.stopping import Facts, Stops, decide
from hyrespinn.training.watch import Watch

from helpers import TINY, Heat

SMALL = {k: v for k, v in TINY.items() if not k.startswith(("stages", "points.adaptive"))}


def solve(problem=None, **options):
    """With the stages of TINY, or those among the settings."""
    settings = options.pop("settings", {})
    settings = {**(SMALL if "stages" in settings else TINY), **settings}
    chosen = {"method": "network", "progress": False, **options}
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
    single = solve(precision="float32", settings={"stages": (SSBroyden(10, round_steps=20),)})
    assert single.result["precision"] == "float32"
    assert all(leaf.dtype == np.float32 for leaf in parameters(single))


@pytest.mark.parametrize(
    ("settings", "options", "status"),
    [
        ({"stopping.loss": 1e9}, {}, "target"),
        ({"stopping.relative_loss": 1e9}, {}, "target"),
        ({}, {"max_seconds": 1e-6}, "time_limit"),
        pytest.param(
            {
                "stopping.patience": 1,
                "stopping.relative_loss": 0.0,
                "stages.ssbroyden.steps": 2000,
            },
            {},
            "stalled",
            marks=pytest.mark.slow,
        ),
    ],
)
@pytest.mark.usefixtures("unhurried")
def test_stops_and_says_why(settings, options, status):
    result = solve(settings=settings, **options).result
    assert result["status"] == status
    assert result["message"]
    assert result["steps"] < 2000


ENDS = {
    "target": (Facts(1.0, target=1.0), "target"),
    "above the target": (Facts(1.1, target=1.0), None),
    "a window that converged": (Facts(1.0, window_error=0.1, tolerance=0.1), "target"),
    "its loss does not decide": (
        Facts(1.0, target=2.0, window_error=0.2, tolerance=0.1),
        None,
    ),
    "interrupted": (Facts(1.0, interrupted=True, seconds=99.0), "interrupted"),
    "out of time": (Facts(1.0, seconds=10.0), "time_limit"),
    "in time": (Facts(1.0, seconds=9.9), None),
    "done, whatever the clock says": (
        Facts(1.0, seconds=99.0, interrupted=True, is_last=True),
        None,
    ),
    "done, and good enough": (Facts(1.0, target=1.0, is_last=True), "target"),
    "no progress": (Facts(1.0, round_losses=(1.0, 0.95, 0.91)), "stalled"),
    "some progress": (Facts(1.0, round_losses=(1.0, 0.95, 0.9)), None),
    "too early to tell": (Facts(1.0, round_losses=(1.0, 1.0)), None),
}


@pytest.mark.parametrize(("facts", "status"), ENDS.values(), ids=ENDS)
def test_the_decision_to_stop(facts, status):
    end = decide(Stops(max_seconds=10.0, patience=2), facts)
    assert (None if end is None else end.status) == status
    assert end is None or end.message


def test_nothing_stops_a_training_that_was_given_no_limit():
    assert decide(Stops(), Facts(1.0, seconds=1e9, round_losses=(1.0,) * 9)) is None


class Explosive(Heat):
    """Finite at first; NaN as soon as the field leaves a narrow band."""

    limit: float = 3.0

    def residual(self, u, p):
        return u.t - self.nu * u.xx + 0 * jnp.sqrt(self.limit - jnp.abs(u.value))


def test_divergence_ends_with_the_last_good_solution():
    stages = (Adam(40, rate=1e8, warmup=0, batch=32),)
    solution = solve(Explosive(), settings={"stages": stages})
    assert solution.result["status"] == "diverged"
    assert "smaller" in solution.result["message"]
    assert np.isfinite(solution(t=0.5, x=np.linspace(0, 1, 5))).all()


def test_a_rate_that_is_too_high_is_mended(capsys):
    """Rolled back to the last good state, a smaller step gets through."""
    stages = (Adam(40, rate=20.0, warmup=0, batch=32),)
    result = solve(Explosive(), settings={"stages": stages}, progress=True).result
    assert "back to the last good state" in capsys.readouterr().out.replace("\n", " ")
    assert result["status"] == "completed"
    assert np.isfinite(result["losses"]["total"])


@pytest.mark.slow  # test_losses.py has the gradient of such a batch
def test_one_point_in_a_batch_is_enough():
    settings = {"points.interior": 1, "stages.adam.batch": 1, "points.initial": 1}
    result = solve(settings={**settings, "stages.ssbroyden.steps": 5}).result
    assert np.isfinite(result["losses"]["total"])


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["lbfgs", "bfgs", "ssbfgs", "lm", "trust-region"])
def test_the_other_second_order_rules_train_too(rule):
    stages = f"adam(steps=40, batch=32), {rule}(steps=40, round_steps=20)"
    result = solve(settings={"stages": stages}).result
    assert result["rel_l2"]["u"] < 0.2


@pytest.mark.slow
def test_a_fixed_set_of_points_trains_too():
    """Poisson-disk points: drawn once, with nothing left for adaptive points to choose."""
    stages = "adam(steps=40, batch=32), ssbroyden(steps=40, round_steps=20)"
    result = solve(settings={"stages": stages, "points.sampler": "poisson"}).result
    assert result["status"] == "completed"
    assert result["rel_l2"]["u"] < 0.1
    assert result["rel_l2"]["u"] < 0.2 * result["rel_l2_initial"]["u"]


@pytest.mark.slow
def test_soap_trains_too():
    result = solve(settings={"stages": "soap(steps=100, rate=1e-2, batch=32)"}).result
    assert result["rel_l2"]["u"] < 0.5 * result["rel_l2_initial"]["u"]


@pytest.mark.slow
def test_optimisers_run_in_any_order():
    stages = "ssbroyden:20, lm:4, adam:5"
    solution = solve(settings={"stages": stages})
    assert solution.result["steps"] == 29
    assert np.isfinite(solution.result["losses"]["total"])


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ("newton:5", "Unknown .* 'newton'. Did you mean 'gauss-newton'"),
        ("adam:many", "name:steps"),
        ("adam:-3", "name:steps"),
        ("adam:0", "at least one step, not 0"),
    ],
)
def test_a_stage_that_cannot_be_read_says_how_it_is_written(stages, message):
    with pytest.raises(hp.UserError, match=message):
        solve(settings={"stages": stages})


def test_rounds_grow_and_none_begins_shortly_before_the_end():
    stage = Stage(SSBroyden(1000, round_steps=100, round_growth=0.5))
    begins, taken = [], 0
    while taken < 1000:
        begins.append(taken)
        taken += stage.round_length(taken, 1000)
    assert begins == [0, 100, 200, 300, 450, 675]  # at 450 two rounds of 225 fit, at 675 of 338 not
    assert taken == 1000


def test_rounds_of_one_length_fill_a_stage_as_they_come():
    stage = Stage(SSBroyden(1000, round_steps=100))
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


class Ticking(Clock):
    """Ticks once for each program that is run."""

    @contextmanager
    def measure(self, what):
        yield
        self.training += what == "training"


class Last(Silent):
    """Keeps the last checkpoint in memory."""

    def checkpoint(self, state, run, clock):
        self.restored = Restored(copied(state), RunState.from_json(run.to_json()), ())


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_the_last_round_lasts_until_the_time_is_over():
    settings = {**SMALL, "stages": (SSBroyden(400, round_steps=20),)}
    config = configure(Heat(), method="network", settings=settings, max_seconds=20)
    theta, training, _ = Session(config, progress=False, reference=False).training()
    store = Last()
    march = March(training, Watch(clock=Ticking(), store=store))
    outcome = march(theta)
    assert outcome.status == "time_limit"
    progress = march.run.progress
    assert 0 < progress.next_round < progress.stage_steps < 400
    # A resumed run goes on from before: as if there had been no limit.
    kept = store.restored.run.progress
    assert kept.next_round == kept.stage_steps == progress.next_round
    more = March(replace(training, stops=Stops()))(theta, store.restored)
    assert (more.status, more.steps) == ("completed", 400)
    whole = March(replace(training, stops=Stops()))(theta)
    np.testing.assert_array_equal(more.theta, whole.theta)
