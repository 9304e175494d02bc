"""A solution: evaluate, differentiate, save, load in another process, plot."""

from __future__ import annotations

import subprocess
import sys

import hyrespinn as hp
import numpy as np
import pytest

from helpers import Heat


@pytest.fixture(scope="module")
def solution():
    settings = {"model.width": 6, "model.kernels.count": 5, "points.interior": 64}
    settings |= {"points.initial": 16, "stages": "adam(steps=40, batch=32)", "marching": "whole"}
    return hp.solve(Heat(), method="network", progress=False, settings=settings)


def test_calls_broadcast(solution):
    t, x = np.linspace(0, 1, 4)[:, None], np.linspace(0, 1, 5)[None, :]
    values = solution(t=t, x=x)
    assert values.shape == (4, 5)
    assert solution(t=0.25, x=0.5).shape == ()
    np.testing.assert_array_equal(values[1, 2], solution(t=t[1, 0], x=x[0, 2]))
    assert solution(t=[], x=[]).shape == (0,)


def test_derivatives_agree_with_finite_differences(solution):
    t, x, h = 0.4, np.linspace(0.2, 0.8, 5), 1e-4
    slope = (solution(t=t, x=x + h) - solution(t=t, x=x - h)) / (2 * h)
    np.testing.assert_allclose(solution.derivative("x", t=t, x=x), slope, rtol=1e-5, atol=1e-7)
    mixed = (solution.derivative("x", t=t + h, x=x) - solution.derivative("x", t=t - h, x=x)) / (
        2 * h
    )
    np.testing.assert_allclose(solution.derivative("tx", t=t, x=x), mixed, rtol=1e-5, atol=1e-7)
    assert np.isfinite(solution.derivative("xxxx", t=t, x=x)).all()


def test_grid_has_time_first(solution):
    axes, values = solution.grid(t=3, x=7)
    assert list(axes) == ["t", "x"]
    assert values["u"].shape == (3, 7)
    np.testing.assert_allclose(values["u"][:, [0, -1]], 0, atol=1e-14)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s(t=0.5), "Give every coordinate by name: t, x"),
        (lambda s: s(t=0.5, x=0.1, y=0.2), "Give every coordinate"),
        (lambda s: s.derivative("q", t=0.5, x=0.1), "no derivative 'q'"),
        (lambda s: s.at(np.zeros((3, 5))), "must have shape"),
        (lambda s: s.quantity("flux", t=0.5, x=0.1), "Unknown derived quantity 'flux'"),
    ],
)
def test_wrong_calls_are_explained(solution, call, message):
    with pytest.raises(hp.UserError, match=message):
        call(solution)


def test_saved_and_loaded_in_another_process(solution, tmp_path):
    """Also without the file of the problem: its code is stored with the solution."""
    path = tmp_path / "heat.hyres"
    solution.save(path)
    code = (
        "import sys, hyrespinn as hp; s = hp.Solution.load(sys.argv[1]);"
        "print(repr(float(s(t=0.3, x=0.4))), repr(float(s.derivative('xx', t=0.3, x=0.4))))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, cwd=tmp_path
    )
    assert run.returncode == 0, run.stderr
    value, second = (float(word) for word in run.stdout.split())
    assert value == float(solution(t=0.3, x=0.4))
    assert second == float(solution.derivative("xx", t=0.3, x=0.4))


def test_the_problem_can_be_passed_instead_of_stored_code(solution, tmp_path):
    solution.save(tmp_path / "a.hyres")
    again = hp.Solution.load(tmp_path / "a.hyres", problem=Heat())
    assert float(again(t=0.3, x=0.4)) == float(solution(t=0.3, x=0.4))


def test_damaged_and_missing_files_are_named(solution, tmp_path):
    with pytest.raises(hp.UserError, match="There is no solution"):
        hp.Solution.load(tmp_path / "none.hyres")
    path = tmp_path / "bad.hyres"
    solution.save(path)
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(hp.UserError, match="is damaged"):
        hp.Solution.load(path)


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (
            4,
            "was written by an earlier version of hyrespinn, whose networks this one does not have",
        ),
        (6, r"newer version of hyrespinn \(its format is 6, this version reads up to 5\); update"),
    ],
)
def test_files_of_other_versions_are_refused(solution, tmp_path, monkeypatch, number, message):
    path = tmp_path / "other.hyres"
    with monkeypatch.context() as other:
        other.setattr("hyrespinn.solution.FORMAT", number)
        solution.save(path)
    with pytest.raises(hp.UserError, match=message):
        hp.Solution.load(path)


def test_a_loaded_solution_knows_what_it_was_made_of(solution, tmp_path):
    solution.save(tmp_path / "a.hyres")
    again = hp.Solution.load(tmp_path / "a.hyres")
    assert again.spec == solution.spec
    assert again.boundary == solution.boundary
    assert (again.precision, again.windows) == ("float64", ())
    assert again.result == solution.result
    assert again.result["method"] == "network"


def test_plot_writes_a_picture(solution, tmp_path):
    solution.plot(tmp_path / "u.png", t=11, x=13)
    assert (tmp_path / "u.png").read_bytes().startswith(b"\x89PNG")
