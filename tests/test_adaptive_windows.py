"""Windows that find their own lengths: the rule, the estimate of the error, whole runs of it."""

from __future__ import annotations

import math
from itertools import pairwise

import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.discretise import Adaptive
from hyrespinn.errors import UserError
from hyrespinn.geometry.sampling import uniform
from hyrespinn.losses.context import first_window
from hyrespinn.losses.objective import Objective
from hyrespinn.losses.terms import Counts, Sampling, Weights
from hyrespinn.optim import Adam, SSBroyden
from hyrespinn.problems.boundary import Penalty
from hyrespinn.problems.statement import state
from hyrespinn.training.adaptive_windows import SMALLEST, AdaptiveWindows, window_error
from hyrespinn.training.windows import WindowOutcome

from helpers import TINY, Heat, in_window_two

RULE = AdaptiveWindows((0.0, 1.0), 4, 1e-3, steps=100)
ADAM = Adam(20, rate=1e-2, batch=32)
SETTINGS = {
    **{k: v for k, v in TINY.items() if not k.startswith("stages")},
    "stages": (ADAM, SSBroyden(60, round_steps=20)),
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
        state(problem), lambda theta: lambda x: theta * jnp.sin(jnp.pi * x[..., 1:]), Penalty(),
        sampling=Sampling(Counts(64, 16, 16), uniform, jnp.dtype("float64")), weights=Weights(),
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


def solved(settings, problem, **options):
    chosen = {"method": "network", "progress": False, "seed": 2, **options}
    return hp.solve(problem, settings=settings, **chosen)


@pytest.fixture(scope="module")
def found():
    return solved({**SETTINGS, "marching": Adaptive(1, tolerance=0.15)}, Heat(nu=0.2))


@pytest.mark.slow
def test_a_whole_run_keeps_converged_windows(found):
    windows = found.result["windows"]
    assert found.result["status"] == "target"
    assert 1 < len(windows) == len(found.windows) == len(found.model)
    assert all(w["window_error"] <= 0.15 for w in windows)
    assert windows[-1]["end"] == 1
    # Windows that were tried in vain cost steps too.
    assert found.result["steps"] > sum(w["steps"] for w in windows)
    assert found.result["rel_l2"]["u"] < 0.15 * len(windows)


@pytest.mark.slow
def test_a_stopped_run_resumes_to_the_same_bits(found, tmp_path):
    """Stopped in a window that comes after a halved one."""
    whole = found
    settings = {**SETTINGS, "marching": Adaptive(1, tolerance=0.15)}
    out = tmp_path / "run"
    part = solved(settings, Heat(nu=0.2), out=out, callbacks=[in_window_two])
    assert part.result["status"] == "interrupted"
    assert part.windows[0] == whole.windows[0]
    again = hp.resume(tmp_path / "run", progress=False)
    assert again.windows == whole.windows
    assert again.result["steps"] == whole.result["steps"]
    for a, b in zip(jax.tree.leaves(whole.model), jax.tree.leaves(again.model), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.slow
def test_a_hopeless_window_ends_the_run_and_says_what_to_do():
    small = {k: v for k, v in SETTINGS.items() if not k.startswith("points.adaptive")}
    settings = {**small, "stages": (ADAM,), "marching": Adaptive(100, tolerance=1e-9)}
    solution = solved(settings, Heat())
    assert solution.result["status"] == "unconverged"
    assert "marching.tolerance" in solution.result["message"]
    assert solution.result["rel_l2"] is None
    assert np.isfinite(solution(t=0.0, x=0.5))
    with pytest.raises(UserError, match="no solution"):
        solution(t=0.5, x=0.5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"marching": "adaptive", "marching.ends": [0.5, 1.0]},
            r"Unknown setting 'marching\.ends'",
        ),
        ({"marching": Adaptive(tolerance=-0.1)}, r"marching\.tolerance must be positive"),
        ({"marching": Adaptive(tolerance=0.0)}, r"marching\.tolerance must be positive"),
        ({"marching": Adaptive(0)}, "at least one window"),
        ({"marching": Adaptive(overshoot=-0.1)}, r"marching\.overshoot cannot be negative"),
    ],
)
def test_bad_settings_are_explained(settings, message):
    with pytest.raises(UserError, match=message):
        solved(settings, Heat())


def test_windows_that_find_their_lengths_need_steps():
    with pytest.raises(UserError, match="need steps"):
        AdaptiveWindows((0.0, 1.0), 4, 1e-3, steps=0)
