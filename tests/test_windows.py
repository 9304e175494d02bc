"""Time in windows: where they are, how one begins where the last ended, and what comes of them."""

from __future__ import annotations

import json
from dataclasses import replace

import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.derivatives import closure, coordinates, propagate
from hyrespinn.discretise import Fixed
from hyrespinn.errors import UserError
from hyrespinn.geometry.sampling import uniform
from hyrespinn.losses.context import first_window, next_window
from hyrespinn.losses.objective import Objective
from hyrespinn.losses.terms import Counts, Sampling, Weights
from hyrespinn.models.window import InWindow
from hyrespinn.optim import Adam, SSBroyden
from hyrespinn.problems.boundary import Penalty
from hyrespinn.problems.statement import state
from hyrespinn.run.config import configure
from hyrespinn.run.session import Session
from hyrespinn.training.march import March
from hyrespinn.training.records import Silent
from hyrespinn.training.watch import Watch
from hyrespinn.training.windows import fixed_windows

from helpers import TINY, Heat, in_window_two

SMALL = {k: v for k, v in TINY.items() if not k.startswith(("stages", "points.adaptive"))}
ADAM = Adam(40, rate=1e-2, batch=32)
SETTINGS = {**SMALL, "stages": (ADAM,), "marching": Fixed(3)}
KEY = jax.random.key(1)


def test_equal_windows_and_their_overshoot():
    found = fixed_windows((0.0, 3.0), 3, overshoot=0.1)
    assert [(w.start, w.end) for w in found] == [(0, 1), (1, 2), (2, 3)]
    np.testing.assert_allclose([w.length for w in found], [1.1, 1.1, 1.0])


def test_windows_with_given_ends():
    found = fixed_windows((0.0, 1.0), 1, [0.1, 0.4, 1.0])
    assert [(w.start, w.end) for w in found] == [(0, 0.1), (0.1, 0.4), (0.4, 1)]


def test_windows_get_steps_by_the_time_still_to_come():
    tapered = fixed_windows((0.0, 2.0), 4, taper=1.0)
    np.testing.assert_allclose([w.effort for w in tapered], [1.6, 1.2, 0.8, 0.4])
    assert [w.steps(10) for w in tapered] == [16, 12, 8, 4]
    assert tapered[-1].steps(1) == 1  # a stage never vanishes
    assert {w.effort for w in fixed_windows((0.0, 2.0), 4)} == {1.0}
    late = fixed_windows((0.0, 2.0), 4, taper=-1.0)
    np.testing.assert_allclose([w.effort for w in late], [0.4, 0.8, 1.2, 1.6])


def test_windows_grow_from_a_first_one():
    """With a growth of 1 each lasts as long as all before it and the first together."""
    found = fixed_windows((0.0, 1.0), 4, growth=1.0, first=0.04)
    lengths = [w.end - w.start for w in found]
    np.testing.assert_allclose(lengths[:5], [0.01, 0.02, 0.04, 0.08, 0.16])
    np.testing.assert_allclose(lengths[5:], lengths[5])
    assert abs(lengths[5] - 0.25) < 0.05
    assert found[-1].end == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "at least one window"),
        ((2, [0.5, 0.9]), "end of time"),
        ((1, [0.5, 0.5, 1.0]), "rise"),
        ((3, [0.5, 1.0]), "leave one out"),
        ((2, None, -0.1), "overshoot"),
        ((2, None, 0.0, 1.5), "marching.taper"),
        ((2, None, 0.0, 0.0, -1.0), "marching.growth"),
        ((2, None, 0.0, 0.0, 1.0, 0.0), "marching.first"),
    ],
)
def test_bad_windows_are_explained(arguments, message):
    with pytest.raises(UserError, match=message):
        fixed_windows((0.0, 1.0), *arguments)


@pytest.mark.usefixtures("x64")
def test_a_network_in_a_window_is_the_network_in_its_own_time():
    """By the chain rule every derivative in time is multiplied by (whole / window)."""
    network = lambda x: jnp.sin(3 * x[..., :1]) * x[..., 1:] ** 2  # noqa: E731
    inside = InWindow(network, jnp.asarray(0.5), jnp.asarray(0.2), (0.0, 2.0))
    x = jnp.asarray([[0.5, 1.0], [0.6, 2.0], [0.7, -1.0]])
    own = (x[:, :1] - 0.5) * 10
    np.testing.assert_allclose(inside(x), jnp.sin(3 * own) * x[:, 1:] ** 2, atol=1e-12)
    series = propagate(inside, coordinates(x, closure([(2, 1)], 2)))
    expected = -((3 * 10) ** 2) * jnp.sin(3 * own) * 2 * x[:, 1:]
    np.testing.assert_allclose(series[(2, 1)], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("x64")
def test_the_next_window_begins_where_the_last_ended():
    problem = hp.problems.problem_named("wave-1d")()
    network = lambda theta: lambda x: theta[0] * jnp.sin(x[..., :1] + x[..., 1:])  # noqa: E731
    made = Objective(
        state(problem), network, Penalty(), weights=Weights(),
        sampling=Sampling(Counts(16, 8, 4), uniform, jnp.dtype("float64")),
    )  # fmt: skip
    begin, end = problem.domain.bounds[0]
    whole = end - begin
    start, length = begin + 0.25 * whole, 0.25 * whole
    first = first_window(jnp.ones(1), begin, length)
    given = made.draw(KEY, made.context(first))
    own = made.draw(KEY)
    for name in given:
        if name.startswith("initial"):
            alone = made.residuals(jnp.ones(1), own)[name]
            same = made.residuals(jnp.ones(1), given, made.context(first))[name]
            # The value of the condition is the problem's own; only the slope sees the window.
            if not name.endswith("_t"):
                np.testing.assert_allclose(alone, same, atol=1e-12)
    second = made.context(next_window(first, 2 * jnp.ones(1), start, length))
    samples = made.draw(KEY, second)
    t = samples["interior"].points[:, 0]
    assert (t >= start).all()
    assert (t <= start + length).all()
    x = samples["initial"].points
    np.testing.assert_allclose(x[:, 0], start)
    # The last network saw the first window as all of its time: its own time is (t−begin)·4.
    local = begin + (x[:, 0] - begin) * 4
    np.testing.assert_allclose(samples["initial"].data, 2 * np.sin(local + x[:, 1]), atol=1e-9)
    x = samples["initial_t"].points
    local = begin + (x[:, 0] - begin) * 4
    slope = samples["initial_t"].data
    np.testing.assert_allclose(slope, 4 * 2 * np.cos(local + x[:, 1]), atol=1e-9)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("name", "order"), [("heat-1d", 1), ("wave-1d", 2)])
def test_a_window_is_the_whole_of_a_problem_in_its_own_unit_of_time(name, order):
    """Per unit of its own time a residual of order n is length^n times that of the equation."""
    problem = hp.problems.problem_named(name)()
    made = Objective(
        state(problem), lambda theta: lambda x: theta[0] * x[..., :1], weights=Weights(),
        sampling=Sampling(Counts(16, 8, 4), uniform, jnp.dtype("float64")),
    )  # fmt: skip
    begin, end = problem.domain.bounds[0]
    whole = made.context().weights
    quarter = made.context(first_window(jnp.ones(1), begin, 0.25 * (end - begin))).weights
    for equation in made.terms[0].names:
        np.testing.assert_allclose(quarter[equation], whole[equation] / 16**order)
    np.testing.assert_allclose(quarter["initial"], whole["initial"])


def solve(changes=None, **options):
    chosen = {"method": "network", "progress": False, **options}
    return hp.solve(Heat(), settings={**SETTINGS, **(changes or {})}, **chosen)


@pytest.fixture(scope="module")
def marched(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "marched"
    return solve({"stages.adam.steps": 400}, out=out, seed=2), out


def test_one_solution_spans_all_windows(marched):
    solution, out = marched
    assert len(solution.windows) == len(solution.model) == 3
    x = np.linspace(0, 1, 7)
    edge = solution.windows[0][1]
    before, after = solution(t=edge, x=x), solution(t=np.nextafter(edge, 1), x=x)
    assert np.abs(before - after).max() < 0.1 * np.abs(before).max()  # trained to begin there
    h = 1e-5
    slope = solution.derivative("t", t=0.5, x=x)
    differences = (solution(t=0.5 + h, x=x) - solution(t=0.5 - h, x=x)) / (2 * h)
    np.testing.assert_allclose(slope, differences, rtol=1e-5, atol=1e-7)
    loaded = hp.Solution.load(out / "solution.hyres", problem=Heat())
    t = np.linspace(0, 1, 11)[:, None]
    np.testing.assert_array_equal(loaded(t=t, x=x), solution(t=t, x=x))


def test_every_window_is_recorded(marched):
    _, out = marched
    result = json.loads((out / "result.json").read_text())
    assert [round(w["end"], 6) for w in result["windows"]] == [0.333333, 0.666667, 1.0]
    assert all(w["steps"] == 400 and 0 < w["phi_beta_1"] < 1 for w in result["windows"])
    assert all(np.isfinite(w["rel_l2_u"]) for w in result["windows"])
    assert result["steps"] == 1200
    rows = (out / "history.csv").read_text().splitlines()
    column = rows[0].split(",").index("window")
    assert [row.split(",")[column] for row in rows[1:]] == [k for k in "123" for _ in range(4)]


def march(settings, store=None):
    """The first parameters, what is trained, its march, and a watch of that."""
    config = configure(Heat(), method="network", settings=settings)
    theta, training, _ = Session(config, progress=False, reference=False).training()
    watch = Watch(store=store or Silent(), checkpoint_seconds=-1.0)
    return theta, training, March(training, watch), watch


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_windows_are_compiled_once():
    """After the first window nothing is compiled any more."""
    stages = (ADAM, SSBroyden(4))
    settings = {**SETTINGS, "stages": stages, "initial_fit": "initial"}
    theta, _, run, watch = march(settings)
    seen = []
    watch.callbacks = [lambda row: seen.append((row["window"], watch.clock.compilation))]
    run(theta)
    assert [w for w, _ in seen] == [1, 1, 2, 2, 3, 3]
    assert len({seconds for _, seconds in seen[1:]}) == 1


def test_a_taper_shares_out_the_steps():
    result = solve({"stages.adam.steps": 30, "marching.taper": 1.0}).result
    assert [w["steps"] for w in result["windows"]] == [45, 30, 15]
    assert result["status"] == "completed"


def test_a_warm_start_takes_the_last_network(marched):
    warm = solve({"stages.adam.steps": 400, "marching.start": "warm"}, seed=2)
    cold, _ = marched
    same, other = (
        [
            np.array_equal(a, b)
            for a, b in zip(*(jax.tree.leaves(s.model[k]) for s in (warm, cold)), strict=True)
        ]
        for k in (0, 1)
    )
    assert all(same)
    assert not all(other)


CONTINUED = {
    **SMALL,
    "stages": (replace(ADAM, steps=20), SSBroyden(40, round_steps=20)),
    "marching": Fixed(3, start="continued"),
}


class Kept(Silent):
    """Keeps the state of the optimiser after every look at it, by window."""

    def __init__(self):
        self.optimisers = {}

    def checkpoint(self, state, run, clock):
        seen = self.optimisers.setdefault(run.progress.window, [])
        seen.append(jax.device_get(state.optimiser))


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_a_continued_window_keeps_what_the_optimiser_has_learnt():
    kept, rows = Kept(), []
    theta, training, run, watch = march(CONTINUED, kept)
    watch.callbacks = [rows.append]
    outcome = run(theta)
    assert [w.steps for w in outcome.windows] == [60, 40, 40]
    assert {row["stage"] for row in rows if row["window"] != 1} == {"ssbroyden"}
    stage, objective = training.stages[-1], training.objective

    @jax.jit
    def first_round(before, key, context):
        started = stage.start(objective, before.theta, key, context)
        begun = stage.carried(objective, started, before)
        after = stage.run(objective, stage.renew(objective, begun), jnp.asarray(20))
        return begun.optimiser, after.optimiser

    for done in (1, 2):
        end = kept.optimisers[done - 1][-1]
        window = outcome.windows[done].window
        context = run.context_of(window, outcome.thetas[:done], theta)
        key = jax.random.fold_in(jax.random.fold_in(training.key, 1), done)
        begin, after = first_round(end, key, context)
        assert end.steps == 40
        assert begin.steps == 0
        np.testing.assert_array_equal(begin.theta, end.theta)
        # The curvature is that of the window before, with a shift that makes the first step short.
        shift = np.linalg.inv(begin.inverse_hessian) - np.linalg.inv(end.inverse_hessian)
        np.testing.assert_allclose(shift, shift[0, 0] * np.eye(len(shift)), atol=1e-6)
        assert not np.allclose(end.inverse_hessian, np.eye(end.theta.size))
        # And this is where the march went on from.
        found = kept.optimisers[done][0]
        assert found.steps == 20
        np.testing.assert_allclose(found.theta, after.theta, rtol=1e-6, atol=1e-8)


@pytest.mark.slow
def test_a_window_that_ends_before_its_last_stage_leaves_no_curvature():
    """The target is reached with Adam; there is nothing that SSBroyden could go on with."""
    windows = solve({**CONTINUED, "stopping.loss": 1e9}).result["windows"]
    assert [w["status"] for w in windows] == ["target"] * 3


def test_a_chain_trained_in_turn_cannot_be_continued():
    settings = {"in_turn": True, "marching": Fixed(2, start="continued")}
    with pytest.raises(UserError, match="let windows begin 'warm' or 'new'"):
        hp.solve(Heat(), model="stackedpinn", preset="smoke", settings=settings, progress=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "steps"),
    [
        (
            {**SETTINGS, "weights.balance": "gradient-norm", "weights.balance.every": 20},
            [40, 40, 40],
        ),
        (CONTINUED, [60, 40, 40]),
    ],
    ids=["new", "continued"],
)
def test_a_stopped_march_resumes_to_the_same_bits(tmp_path, settings, steps):
    """Stopped in the second window, resumed: the third begins from the same parameters."""
    whole = solve(settings, seed=2)
    part = solve(settings, seed=2, out=tmp_path / "run", callbacks=[in_window_two])
    assert part.result["status"] == "interrupted"
    assert len(part.windows) == len(part.result["windows"]) == 1  # that are done
    assert part.result["reached"].startswith("1 of 3 windows, up to t = 0.333333 of 1, ")
    assert part.result["rel_l2"] is None  # the last window has no solution yet
    with pytest.raises(UserError, match=r"up to t = 0\.333333 of 1, where the run was stopped"):
        part(t=0.5, x=0.5)
    assert np.isfinite(part(t=1 / 3, x=0.5))
    again = hp.resume(tmp_path / "run", progress=False)
    assert again.result["status"] == "completed"
    assert again.result["steps"] == whole.result["steps"]
    for a, b in zip(jax.tree.leaves(whole.model), jax.tree.leaves(again.model), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    assert [w["steps"] for w in again.result["windows"]] == steps


def test_no_time_no_windows():
    with pytest.raises(UserError, match="marching would change nothing: poisson-2d has no time"):
        hp.solve("poisson-2d", settings={"marching": "fixed"}, progress=False, preset="smoke")
