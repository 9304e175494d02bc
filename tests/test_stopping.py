"""Signals and time limits: heard within seconds, whatever is going on, and nothing is lost by them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn import cli
from hyrespinn.errors import StoppedEarly
from hyrespinn.training import waiting
from hyrespinn.training.interrupt import Interrupt
from hyrespinn.training.limits import Limits
from hyrespinn.training.march import Compiled
from hyrespinn.training.records import Clock
from hyrespinn.training.stopping import INTERRUPTED
from hyrespinn.training.waiting import Due, Stopped, Waiter

from helpers import TINY, Heat

SMALL = {
    "model.width": 6, "model.kernels.count": 5, "points.interior": 64, "points.initial": 16,
    "marching": "whole",
}  # fmt: skip


def solve(stages: str = "adam(steps=150, batch=32)", problem=None, **options) -> hp.Solution:
    settings = SMALL | {"stages": stages}
    problem = problem or Heat()
    return hp.solve(problem, method="network", settings=settings, progress=False, **options)


def bits(solution: hp.Solution) -> list[bytes]:
    return [np.asarray(a).tobytes() for a in jax.tree.leaves(solution.model)]


# Waiting.


def test_a_waiter_returns_and_raises_what_the_function_does():
    with_x64 = Waiter(around=lambda: jax.enable_x64(True))
    assert with_x64(lambda: jnp.ones(1).dtype) == jnp.float64
    for error in (KeyError("a"), TimeoutError("own")):

        def fail(error=error):
            raise error

        with pytest.raises(type(error)):
            with_x64(fail)
    with_x64.close()


def test_a_waiter_gives_up_after_its_grace_and_can_be_used_again():
    asked = []
    waiter = Waiter(lambda: asked[0] if asked else None, grace=0.2)
    release = threading.Event()
    asked.append(Due(INTERRUPTED, time.monotonic()))
    begin = time.monotonic()
    with pytest.raises(Stopped):
        waiter(release.wait)
    assert 0.1 < time.monotonic() - begin < 2
    release.set()
    assert waiter(lambda: 3) == 3  # what ends in time is not given up
    waiter.close()


def test_limits_are_on_training_and_on_what_comes_before_it():
    clock = Clock()
    limits = Limits(Interrupt(), clock, training=5.0, preparation=10.0)
    assert limits.due() is None
    clock.training, clock.prepared = 4.9, 9.9
    assert limits.due() is None
    clock.prepared = 11.0
    due = limits.due()
    assert "compilation took longer than the limit of 10 s" in due.end.message
    assert time.monotonic() - due.since == pytest.approx(1.0, abs=0.2)
    clock.training = 6.0
    assert limits.due().end.status == "time_limit"
    limits.interrupt.signal = 15
    assert limits.due().end.status == "interrupted"
    with clock.measure("training"):
        time.sleep(0.01)
        assert clock.spent()[0] > 6.0
    assert clock.prepared == 11.0


# Slices.

STAGES = [
    "adam(steps=150, batch=32)",
    pytest.param("ssbroyden(steps=100, round_steps=40)", marks=pytest.mark.slow),
    pytest.param("gauss-newton(steps=6)", marks=pytest.mark.slow),
    pytest.param("lm(steps=8)", marks=pytest.mark.slow),
    pytest.param("trust-region(steps=12, round_steps=5)", marks=pytest.mark.slow),
    pytest.param("lbfgs(steps=60)", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("stages", STAGES)
def test_where_steps_are_cut_changes_nothing(stages, monkeypatch):
    whole = solve(stages)
    monkeypatch.setattr("hyrespinn.training.pace.SLICE", 0.0)
    cut = solve(stages)
    assert bits(cut) == bits(whole)
    assert cut.result["losses"] == whole.result["losses"]


@pytest.mark.slow
def test_where_steps_of_a_lattice_are_cut_changes_nothing(monkeypatch):
    """The preconditioner of the first step serves them all."""
    options = {"preset": "smoke", "progress": False, "settings": {"marching.count": 3}}
    whole = hp.solve("allen-cahn-dirichlet", method="collocation", **options)
    assert max(w["steps"] for w in whole.result["windows"]) > 2
    monkeypatch.setattr("hyrespinn.training.pace.SLICE", 0.0)
    cut = hp.solve("allen-cahn-dirichlet", method="collocation", **options)
    assert bits(cut) == bits(whole)


@pytest.mark.slow
@pytest.mark.usefixtures("unhurried")
def test_allotments_end_in_the_middle_of_chunks_and_change_nothing(monkeypatch, tmp_path):
    """Each allows one slice of 16 steps; the resumed runs come to where a run without them ends."""
    stages = "ssbroyden(steps=100, round_steps=40)"
    whole = solve(stages, out=tmp_path / "whole")
    monkeypatch.setattr("hyrespinn.training.pace.SLICE", 0.0)
    part = solve(stages, out=tmp_path / "part", max_seconds=1e-9)
    taken = [part.result["steps"]]
    while part.result["status"] == "time_limit":
        part = hp.resume(tmp_path / "part", progress=False)
        taken.append(part.result["steps"])
    assert taken[:3] == [16, 32, 40]
    assert taken[-1] == 100
    assert bits(part) == bits(whole)
    rows = [
        [line.split(",")[3:] for line in (tmp_path / name / "history.csv").read_text().splitlines()]
        for name in ("whole", "part")
    ]
    assert rows[0] == rows[1]


# Signals.


@pytest.fixture
def heard(monkeypatch):
    """The signals that reach the program around a run."""
    numbers: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: numbers.append(number))
    yield numbers
    signal.signal(signal.SIGTERM, before)


def test_a_run_passes_sigterm_on_when_everything_is_saved(heard, tmp_path):
    part = solve(out=tmp_path / "run", callbacks=[lambda row: signal.raise_signal(signal.SIGTERM)])
    assert heard == [signal.SIGTERM]
    assert (part.result["status"], part.result["signal"]) == ("interrupted", signal.SIGTERM)
    assert part.result["reached"] == "100 of at most 150 steps"
    again = hp.resume(tmp_path / "run", progress=False)
    assert again.result["steps"] == 150
    assert "signal" not in again.result


@pytest.fixture
def attentive():
    """Ctrl-C is heard, also where the tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("attentive")
def test_a_run_passes_ctrl_c_on_with_what_it_has_come_to(tmp_path):
    with pytest.raises(KeyboardInterrupt) as caught:
        solve(out=tmp_path / "run", callbacks=[lambda row: signal.raise_signal(signal.SIGINT)])
    solution = caught.value.solution
    assert solution.result["status"] == "interrupted"
    assert np.isfinite(solution(t=0.5, x=0.5))
    assert json.loads((tmp_path / "run" / "result.json").read_text())["signal"] == signal.SIGINT
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def slow_after(calls: int):
    """``Compiled.advance`` that hangs after so many calls, and says so by SIGTERM."""
    advance, count = Compiled.advance, iter(range(1000))

    def slow(self, state, steps):
        if next(count) == calls:
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
            self.programs.wait(lambda: time.sleep(30))
        return advance(self, state, steps)

    return slow


@pytest.fixture
def hurried(monkeypatch):
    """No grace for what cannot be cut."""
    original = waiting.Waiter.__init__

    def short(self, due=lambda: None, around=None, grace=waiting.GRACE):
        original(self, due, around, grace - 2)

    monkeypatch.setattr(waiting.Waiter, "__init__", short)


@pytest.mark.usefixtures("hurried")
def test_a_step_that_takes_too_long_is_given_up(heard, monkeypatch, tmp_path):
    """The state before it is kept, and the run ends to the same bits as without all that."""
    whole = solve()
    with monkeypatch.context() as stopped:
        stopped.setattr(Compiled, "advance", slow_after(2))
        begin = time.monotonic()
        part = solve(out=tmp_path / "run")
    assert time.monotonic() - begin < 25
    assert heard == [signal.SIGTERM]
    assert part.result["status"] == "interrupted"
    assert 0 < part.result["steps"] <= 100
    assert bits(hp.Solution.load(tmp_path / "run" / "solution.hyres")) == bits(part)
    again = hp.resume(tmp_path / "run", progress=False)
    assert bits(again) == bits(whole)


@pytest.mark.usefixtures("hurried")
def test_before_the_first_step_there_is_nothing_but_a_way_to_go_on(heard, monkeypatch, tmp_path):
    out = tmp_path / "run"
    with monkeypatch.context() as stopped:
        stopped.setattr(Compiled, "advance", slow_after(0))
        with pytest.raises(StoppedEarly, match="before its first step") as caught:
            solve(out=out)
    assert caught.value.signal == signal.SIGTERM
    assert f"`hyrespinn resume {out}` starts it" in str(caught.value)
    assert heard == [signal.SIGTERM]
    assert not (out / "result.json").exists()
    assert bits(hp.resume(out, progress=False)) == bits(solve())


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("where", ["on_axes", "_figures"])
def test_a_signal_ends_measuring_and_drawing(heard, monkeypatch, tmp_path, where):
    owner = hp.Solution if where == "on_axes" else sys.modules["hyrespinn.run.session"].Session

    def slow(self, *arguments):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(30)

    with monkeypatch.context() as stopped:
        stopped.setattr(owner, where, slow)
        part = solve(out=tmp_path / "run")
    assert heard == [signal.SIGTERM]
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["signal"] == part.result["signal"] == signal.SIGTERM
    assert np.isfinite(hp.Solution.load(tmp_path / "run" / "solution.hyres")(t=0.5, x=0.5))
    if where == "_figures":  # all is there but the pictures
        assert result["status"] == "completed"
        assert result["rel_l2"]["u"] > 0
    else:
        assert (result["status"], result["rel_l2"]) == ("interrupted", None)
        assert hp.resume(tmp_path / "run", progress=False).result["rel_l2"]["u"] > 0


SLOW = """
import time
import hyrespinn as hp
import jax.numpy as jnp

class Slow(hp.Problem):
    domain = hp.TimeBox(t=(0, 1), x=(0, 1))
    fields = ("u",)
    def residual(self, u, p):
        if {where!r} == "residual" and p.x.shape[0] > 60:
            time.sleep(100)
        return u.t - u.xx
    def conditions(self):
        return [hp.Initial(lambda p: jnp.sin(jnp.pi * p.x)), hp.Dirichlet(0.0)]
    def exact(self, p):
        if {where!r} == "exact" and p.x.shape[0] > 3:
            time.sleep(100)
        return 0 * p.x
"""


def process(tmp_path: Path, where: str, *more: str) -> subprocess.Popen:
    file = tmp_path / "slow.py"
    file.write_text(SLOW.format(where=where))
    settings = [f"{key}={value}" for key, value in TINY.items()]
    return subprocess.Popen(
        [
            sys.executable, "-m", "hyrespinn", "solve", f"{file}:Slow", "--method", "network",
            "--out", str(tmp_path / "run"), "--set", *settings, *more,
        ],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("where", "phase", "number"),
    [
        ("exact", "computing the reference", signal.SIGTERM),
        pytest.param("residual", "compiling", signal.SIGINT, marks=pytest.mark.slow),
    ],
)
def test_a_signal_is_heard_before_training(tmp_path, where, phase, number):
    with process(tmp_path, where) as running:
        for line in running.stdout:
            if line.startswith(phase):
                break
        time.sleep(0.5)
        begin = time.monotonic()
        running.send_signal(number)
        assert running.wait(timeout=60) == 128 + number
        assert time.monotonic() - begin < 5
        assert "before its first step" in running.stderr.read()
    assert (tmp_path / "run" / "config.json").exists()


@pytest.mark.slow
def test_a_time_limit_is_kept_before_training(tmp_path):
    with process(tmp_path, "exact", "--max-seconds", "1") as running:
        assert running.wait(timeout=60) == 5
        assert "the reference and compilation took longer than the limit" in running.stderr.read()


# Phases, and what is said at the end.

PHASES = [
    "reading the statement", "choosing the method", "computing the reference", "compiling",
    "training", "measuring", "drawing",
]  # fmt: skip
KEYS = {
    "import", "configure", "compilation", "reference", "training", "estimate", "drawing",
    "total",
}  # fmt: skip
CALL = ["solve", "poisson-2d", "--preset", "smoke", "--set", "stages=adam:2"]


def test_every_phase_is_named_when_it_begins(tmp_path, capsys):
    assert cli.main([*CALL, "--out", str(tmp_path / "run")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.removesuffix(" …") for line in lines if line.endswith(" …")] == PHASES
    assert lines[0] == "reading the statement …"
    seconds = json.loads((tmp_path / "run" / "result.json").read_text())["seconds"]
    assert seconds.keys() == KEYS
    assert seconds["estimate"] == 0, "of a smoke run"
    assert all(value > 0 for key, value in seconds.items() if key != "estimate")
    parts = sum(seconds[key] for key in KEYS - {"import", "total"})
    assert parts < seconds["total"]


def test_the_first_phase_is_named_before_anything_heavy_is_imported():
    code = (
        "import sys; from hyrespinn import cli; cli.import_module = None; cli.main(['solve', 'a'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.startswith("reading the statement")
    assert "TypeError" in done.stderr  # where the import would be


def test_python_names_the_phases_too(capsys):
    options = {"preset": "smoke", "settings": {"stages": "adam:2"}}
    hp.solve("poisson-2d", **options)
    shown = [line for line in capsys.readouterr().out.splitlines() if line.endswith(" …")]
    assert [line.removesuffix(" …") for line in shown] == PHASES[:-1]  # nothing to draw into
    hp.solve("poisson-2d", progress=False, **options)
    assert not capsys.readouterr().out


def test_quiet_leaves_three_lines(tmp_path, capsys):
    assert cli.main([*CALL, "--quiet", "--out", str(tmp_path / "run")]) == 0
    printed = capsys.readouterr()
    first, second, third = printed.out.splitlines()
    assert first.startswith("poisson-2d: ")
    assert "relative l2 error of u: " in second
    assert "relative residual on fresh points: " in second
    assert third == f"files: {tmp_path / 'run'}"
    assert not printed.err


def test_a_verdict_comes_first(tmp_path):
    from hyrespinn.run.summary import in_brief

    result = {
        "problem": "heat", "status": "stalled", "message": "no progress", "verdict": "unresolved",
        "rel_l2": None, "relative_residual": {},
    }  # fmt: skip
    assert in_brief(result, tmp_path)[0] == "heat: unresolved (stalled: no progress)"
    assert in_brief({**result, "verdict": None}, tmp_path)[0] == "heat: stalled (no progress)"


# What there is of a run that was stopped.


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A march that was stopped in the second of its four windows."""
    out = tmp_path_factory.mktemp("stopped") / "run"
    settings = {"marching.count": 4, "marching.growth": 0.0}
    solution = hp.solve(
        "heat-1d", preset="smoke", settings=settings, progress=False, out=out,
        callbacks=[lambda row: row["window"] == 2],
    )  # fmt: skip
    assert solution.result["reached"].startswith("1 of 4 windows, up to t = 0.25 of 1, ")
    return out


def test_there_is_no_solution_after_the_end_of_a_stopped_run(stopped, tmp_path, capsys):
    solution = hp.Solution.load(stopped / "solution.hyres")
    assert solution.end == 0.25
    assert np.isfinite(solution(t=[0.0, 0.25], x=0.5)).all()
    until = r"up to t = 0\.25 of 1, where the run was stopped"
    for ask in (solution, lambda **at: solution.derivative("xx", **at)):
        with pytest.raises(hp.UserError, match=until):
            ask(t=[0.1, 0.3], x=0.5)
    axes, values = solution.grid(t=5, x=7)
    assert axes["t"].tolist() == [0, 0.0625, 0.125, 0.1875, 0.25]
    assert np.isfinite(values["u"]).all()
    (tmp_path / "in.csv").write_text("t,x\n0.1,0.5\n0.6,0.5\n")
    call = ["predict", str(stopped), "--points", str(tmp_path / "in.csv"), "--out"]
    assert cli.main([*call, str(tmp_path / "out.csv")]) == 2
    message = capsys.readouterr().err
    assert (
        "1 of 2 points are at times for which there is no solution, the first in line 3" in message
    )
    assert not (tmp_path / "out.csv").exists()


def test_pictures_end_where_a_stopped_run_does(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        "hyrespinn.run.session.plot_fields", lambda *arguments: drawn.append(arguments)
    )
    settings = {"marching.count": 4, "marching.growth": 0.0}
    hp.solve(
        "heat-1d", preset="smoke", settings=settings, progress=False, out=tmp_path / "run",
        callbacks=[lambda row: row["window"] == 2],
    )  # fmt: skip
    axes, shown, known, *_ = drawn[0]
    assert axes["t"][-1] == pytest.approx(0.25, abs=1 / 200)
    assert shown["u"].shape == known["u"].shape == (axes["t"].size, axes["x"].size)
    assert np.isfinite(shown["u"]).all()


# What a person's functions raise.

RAISING = """
import hyrespinn as hp
import jax.numpy as jnp

def helper(p):
    return missing * p.x

class Mine(hp.Problem):
    domain = hp.TimeBox(t=(0, 1), x=(0, 1))
    fields = ("u",)
    def residual(self, u, p):
        return u.t - u.xx + {residual}
    def conditions(self):
        return [hp.Initial({initial}), hp.Dirichlet({wall})]
    def exact(self, p):
        return {exact}
    def derived(self, u, p):
        return {{"slope": {derived}}}
"""
GOOD = {"residual": "0", "initial": "0.0", "wall": "0.0", "exact": "0 * p.x", "derived": "u.x"}


@pytest.mark.parametrize("place", GOOD)
def test_what_a_persons_function_raises_is_told_with_her_line(tmp_path, capsys, place):
    """Also where it is in a function that hers has called."""
    text = "lambda p: helper(p)" if place in ("initial", "wall") else "helper(p)"
    file = tmp_path / "mine.py"
    file.write_text(RAISING.format(**(GOOD | {place: text})))
    call = ["solve", f"{file}:Mine", "--method", "network", "--out", str(tmp_path / "run")]
    assert cli.main(call) == 2
    message = capsys.readouterr().err
    assert "NameError: name 'missing' is not defined" in message
    assert "mine.py:6: return missing * p.x)" in message
    assert len(message.splitlines()) == 1


# A bench.


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_sigterm_ends_a_bench_and_its_processes(tmp_path, jobs):
    settings = ["model.width=6", "points.interior=64", "points.initial=16"]
    command = [
        sys.executable, "-m", "hyrespinn", "bench", "--problems", "heat-1d", "--models", "pinn",
        "hyrespinn", "--seeds", "2", "--jobs", jobs, "--out", str(tmp_path / "bench"),
        "--set", *settings, "stages=adam(steps=1000000, batch=32)",
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as running:
        begin = time.monotonic()
        while len(list(tmp_path.rglob("history.csv"))) < int(jobs):
            assert time.monotonic() - begin < 200
            assert running.poll() is None
            time.sleep(0.1)
        begin = time.monotonic()
        running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=60) == 143
        assert time.monotonic() - begin < 10
    results = [json.loads(file.read_text()) for file in tmp_path.rglob("result.json")]
    assert [result["status"] for result in results] == ["interrupted"] * int(jobs)
