"""Windows that find their own lengths: the rule, the estimate of the error, whole runs of it."""

from __future__ import annotations

import math
from itertools import pairwise

import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.errors import UserError
from hyrespinn.geometry.sampling import uniform
from hyrespinn.losses.context import first_window
from hyrespinn.losses.objective import Objective
from hyrespinn.losses.terms import Counts, Weights
from hyrespinn.problems.problem import anatomy
from hyrespinn.training.adaptive_windows import SMALLEST, AdaptiveWindows, window_error
from hyrespinn.training.windows import WindowOutcome

from helpers import TINY, Heat, in_window_two

RULE = AdaptiveWindows((0.0, 1.0), 4, 1e-3, steps=100)
SETTINGS = {
    **TINY,
    "train.adam_steps": 20,
    "train.ssbroyden_steps": 60,
    "train.adam_rate": 1e-2,
    "train.windows": 1,
}


def march(*results: tuple[int, bool]) -> list[WindowOutcome]:
    """The windows that follow from these ``(steps, kept)``."""
    tried: list[WindowOutcome] = []
    for steps, kept in results:
        tried.append(WindowOutcome(RULE.following(tried), "completed", "", steps, {}, kept))
    return tried


def where(tried: list[WindowOutcome]) -> tuple[float, float]:
    window = RULE.following(tried)
    return window.start, round(window.end, 6)


def test_a_window_that_does_not_converge_is_halved():
    assert where(march((100, False))) == (0.0, 0.125)
    assert where(march((100, False), (100, False))) == (0.0, 0.0625)


def test_an_easy_window_is_followed_by_a_longer_one():
    assert where(march((60, True))) == (0.25, 0.5)
    assert where(march((50, True))) == (0.25, 0.625)  # two of 0.375 fill the rest


def test_nothing_grows_right_after_a_halved_window():
    assert where(march((100, False), (10, True))) == (0.125, 0.25)
    assert where(march((100, False), (10, True), (10, True)))[1] > 0.375


def test_the_windows_fill_time_exactly():
    tried = march((10, True), (100, False), (80, True), (30, True), (10, True))
    while not RULE.is_over(tried):
        tried.append(WindowOutcome(RULE.following(tried), "completed", "", 10, {}))
        assert len(tried) < 50
    kept = [w.window for w in tried if w.kept]
    assert kept[0].start == 0
    assert kept[-1].end == 1
    assert all(a.end == b.start for a, b in pairwise(kept))


def test_windows_stop_shrinking():
    tried: list[WindowOutcome] = []
    while RULE.can_shorten(RULE.following(tried)):
        tried.append(WindowOutcome(RULE.following(tried), "completed", "", 100, {}, False))
    assert SMALLEST <= RULE.following(tried).length < 2 * SMALLEST


@pytest.mark.usefixtures("x64")
def test_the_estimate_bounds_the_error_of_a_solution_that_stands_still():
    """For u = sin πx at all times the residual is νπ²u, so the estimate is νπ² times the length."""
    problem = Heat(nu=0.3)
    made = Objective(
        problem, anatomy(problem), lambda theta: lambda x: theta * jnp.sin(jnp.pi * x[..., 1:]),
        counts=Counts(64, 16, 16), weights=Weights(), sampler=uniform,
        dtype=jnp.dtype("float64"), exact=False,
    )  # fmt: skip
    length, key = 0.2, jax.random.key(0)
    context = made.context(first_window(jnp.ones(1), 0.0, length))
    found = float(window_error(made, jnp.ones(1), context, key))
    assert found == pytest.approx(0.3 * math.pi**2 * length, rel=1e-9)
    assert found > 1 - math.exp(-0.3 * math.pi**2 * length)  # the error at the end
    # Twice as large from the beginning: the initial condition is missed by half of the solution.
    samples = made.draw(key, context)
    missed, fields = (
        float(np.sqrt(np.mean(np.sin(np.pi * samples[name].points[:, 1]) ** 2)))
        for name in ("initial", "interior")
    )
    twice = float(window_error(made, 2 * jnp.ones(1), context, key))
    assert twice == pytest.approx(found + missed / (2 * fields), rel=1e-9)


@pytest.fixture(scope="module")
def found():
    settings = {**SETTINGS, "train.window_tolerance": 0.15}
    return hp.solve(
        Heat(nu=0.2), preset="general", settings=settings, progress=False, seed=2
    ), settings


@pytest.mark.slow
def test_a_whole_run_keeps_converged_windows(found):
    solution, _ = found
    windows = solution.result["windows"]
    assert solution.result["status"] == "target"
    assert 1 < len(windows) == len(solution.windows) == len(solution.model)
    assert all(w["window_error"] <= 0.15 for w in windows)
    assert windows[-1]["end"] == 1
    # Windows that were tried in vain cost steps too.
    assert solution.result["steps"] > sum(w["steps"] for w in windows)
    assert solution.result["rel_l2"]["u"] < 0.15 * len(windows)


@pytest.mark.slow
def test_a_stopped_run_resumes_to_the_same_bits(found, tmp_path):
    """Stopped in a window that comes after a halved one."""
    whole, settings = found
    part = hp.solve(
        Heat(nu=0.2),
        preset="general",
        settings=settings,
        progress=False,
        seed=2,
        out=tmp_path / "run",
        callbacks=[in_window_two],
    )
    assert part.result["status"] == "interrupted"
    assert part.windows[0] == whole.windows[0]
    again = hp.resume(tmp_path / "run", progress=False)
    assert again.windows == whole.windows
    assert again.result["steps"] == whole.result["steps"]
    for a, b in zip(jax.tree.leaves(whole.model), jax.tree.leaves(again.model), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.slow
def test_a_hopeless_window_ends_the_run_and_says_what_to_do():
    settings = {**SETTINGS, "train.ssbroyden_steps": 0, "train.window_tolerance": 1e-9}
    solution = hp.solve(
        Heat(), preset="general", settings={**settings, "train.windows": 100}, progress=False
    )
    assert solution.result["status"] == "unconverged"
    assert "train.window_tolerance" in solution.result["message"]
    assert solution.result["rel_l2"] is None
    assert np.isfinite(solution(t=0.0, x=0.5))
    assert np.isnan(solution(t=0.5, x=0.5))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"train.window_tolerance": 0.1, "train.window_ends": [0.5, 1.0]}, "leave"),
        ({"train.window_tolerance": -0.1}, "train.window_tolerance"),
        ({"train.window_tolerance": 0.1, "train.windows": 0}, "train.windows"),
        (
            {"train.window_tolerance": 0.1, "train.adam_steps": 0, "train.ssbroyden_steps": 0},
            "need steps",
        ),
    ],
)
def test_bad_settings_are_explained(settings, message):
    with pytest.raises(UserError, match=message):
        hp.solve(Heat(), preset="general", settings=settings, progress=False)
