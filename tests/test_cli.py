"""The command line: what it prints, what it refuses and how it says so, and its exit codes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import hyrespinn as hp
import numpy as np
import pytest
from hyrespinn import cli
from hyrespinn.references.self_convergence import FILE as FIGURES

from helpers import TINY

ROOT = Path(__file__).parents[1]
HEAT = f"{ROOT / 'examples' / 'heat.py'}:Heat"
FEW = [
    "--preset",
    "general",
    "--set",
    *(f"{k}={v}" for k, v in {**TINY, "train.ssbroyden_steps": 5}.items()),
]


def refused(capsys, *arguments: str) -> str:
    """The message of a call that must fail as a user's mistake."""
    assert cli.main(list(arguments)) == 2
    message = " ".join(capsys.readouterr().err.split())
    assert message.startswith("error:")
    assert "Traceback" not in message
    return message


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("cli") / "run"
    assert cli.main(["solve", HEAT, "--out", str(out), *FEW]) == 0
    return out


@pytest.mark.parametrize("columns", ["60", "100", "300"])
def test_list_shows_every_problem_whole_on_its_line(capsys, monkeypatch, columns):
    """Also where the terminal is narrow: a name that is cut cannot be copied."""
    monkeypatch.setenv("COLUMNS", columns)
    assert cli.main(["list"]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split()[:3] == ["problem", "coordinates", "fields"]
    assert [line.split()[0] for line in lines if line.strip()] == list(hp.problems.PROBLEMS)
    by_name = {line.split()[0]: " ".join(line.split()[1:]) for line in lines if line.strip()}
    for name, cls in hp.problems.PROBLEMS.items():
        problem = cls()
        first = " ".join((*problem.domain.coordinates, *problem.fields))
        assert by_name[name].startswith(f"{first} ")
        assert by_name[name].endswith(f" {problem.description}")
    assert "t x u exact" in by_name["heat-1d"]
    assert "x y u flux exact" in by_name["darcy-2d-neumann"]
    assert "x y z u flux exact" in by_name["darcy-3d-dirichlet"]
    for name, entry in json.loads(FIGURES.read_text()).items():
        assert f" {entry['relative_l2']:.0e} " in by_name[name]


def test_list_keys_prints_what_set_takes(capsys):
    assert cli.main(["list", "--keys", "allen-cahn-dirichlet"]) == 0
    keys = dict(line.split("=", 1) for line in capsys.readouterr().out.splitlines())
    wanted = {
        "problem.epsilon", "problem.reference", "model.kernel", "model.distance", "model.blocks",
        "model.centers", "model.width", "model.tau", "model.lambda_g", "train.adam_steps",
        "train.ssbroyden_steps", "train.points",
    }  # fmt: skip
    assert keys.keys() >= wanted
    assert keys["problem.reference"] == "converged"


def test_an_own_problem_without_reference_reports_its_residual(run):
    result = json.loads((run / "result.json").read_text())
    assert result["problem"] == "heat"
    assert result["rel_l2"] is None
    assert result["eta_dof"] is None
    assert result["relative_residual"]["residual"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["solve", "alen-cahn-dirichlet"], "Did you mean 'allen-cahn-dirichlet'?"),
        (["solve", HEAT, "--model", "hyrespin"], "Did you mean 'hyrespinn'?"),
        (["solve", HEAT, "--preset", "fastt"], "Did you mean 'fast'?"),
        (["solve", HEAT, "--precision", "float16"], "Unknown precision"),
        (["solve", HEAT, "--max-seconds", "0"], "time limit must be positive"),
        (["solve", HEAT, "--set", "model.widht=8"], "Did you mean 'model.width'?"),
        (["solve", HEAT, "--set", "model.width=wide"], "model.width must be a whole number"),
        (["solve", HEAT, "--set", "model.width=2.5"], "model.width must be a whole number"),
        (["solve", HEAT, "--set", "problem.nu=big"], "problem.nu must be a number"),
        (["solve", HEAT, "--set", "problem.nu=nan"], "problem.nu must be finite"),
        (["solve", HEAT, "--set", "train.exact=maybe"], "train.exact must be true or false"),
        (["solve", HEAT, "--set", "model.kernel=gausian"], "Did you mean 'gaussian'?"),
        (["solve", HEAT, "--set", "model.distance=round"], "Unknown model.distance"),
        (["solve", HEAT, "--set", "model.branches=both"], "must be one of hybrid, rbf, dnn"),
        (["solve", HEAT, "--set", "train.points=0"], "at least one point"),
        (["solve", HEAT, "--set", "train.points"], "--set takes key=value"),
        (["solve", HEAT, "--set", "model.tau=-1"], "tau must be positive"),
        (["solve", "nowhere.py:Heat"], "There is no file nowhere.py"),
        (["solve", HEAT.removesuffix(":Heat")], "Say which class"),
        (["solve", HEAT.replace(":Heat", ":Cold")], "has no Problem class named 'Cold'"),
        (["solve", HEAT, "--set", "train.sampler=sobl"], "Did you mean 'sobol'?"),
        (["reference", HEAT, "--out", "ref.npz"], "has no reference"),
        (["reference", HEAT], "--out FILE.npz, --plot, or both"),
        (["reference", "heat-1d", "--plot", "u.xyz"], "Cannot draw a picture of the kind 'xyz'"),
        (["reference", "heat-1d", "--plot", "no/folder/u.png"], "Cannot write no/folder/u.png"),
        (["reference", "heat-1d", "--out", "no/folder/u.npz"], "Cannot write no/folder/u.npz"),
        (["reference", "darcy-2d-dirichlet", "--plot", "--set", "problem.inner=0"],
         "problem.inner must be positive"),
        (["reference", "darcy-2d-dirichlet", "--plot", "--set", "problem.mu=[[1,2],[2,1]]"],
         "problem.mu must be a positive number or a symmetric positive definite matrix"),
        (["resume", "nowhere"], "There is no run directory nowhere"),
        (["predict", "nowhere", "--points", "p.csv", "--out", "o.csv"], "There is no solution"),
    ],
)  # fmt: skip
def test_mistakes_are_explained(capsys, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in refused(capsys, *arguments)
    assert not list(tmp_path.rglob("*.*")), "no file is left"


OWN = """
import hyrespinn as hp
import jax.numpy as jnp

class Mine(hp.Problem):
    domain = hp.{domain}
    fields = ("u",)
    def residual(self, u, p):
        return {residual}
    def conditions(self):
        return [{conditions}]
"""
TIME = "TimeBox(t=(0, 1), x=(0, 1))"


@pytest.mark.parametrize(
    ("domain", "residual", "conditions", "message"),
    [
        (TIME, "u.t - u.xx", "hp.Dirichlet(0.0)", "no initial condition for u"),
        (TIME, "jnp.mean(u.t)", "hp.Initial(0.0)", "has shape (); expected (3,)"),
        (TIME, "u.t[:, None]", "hp.Initial(0.0)", "has shape (3, 1); expected (3,)"),
        (TIME, "u.t - u.yy", "hp.Initial(0.0)", "There is no derivative 'yy'"),
        (TIME, "u.t / 0 - u.x", "hp.Initial(0.0)", "is NaN or infinite at"),
        (TIME, "jnp.log(-1 - u**2) + u.t", "hp.Initial(0.0)", "is NaN or infinite at"),
        (TIME, "u.t if u > 0 else u.x", "hp.Initial(0.0)", "jnp.where instead of if"),
        (TIME, "u.t + missing", "hp.Initial(0.0)", "NameError"),
        ("Box(x=(1, 0))", "u.xx", "hp.Dirichlet(0.0)", "from a lower to a higher"),
        ("Box(x=(0, 1))", "u.xx", "hp.Dirichlet(0.0, on='left')", "no boundary piece 'left'"),
        ("Box(x=(0, 1))", "u.xx", "hp.Initial(0.0)", "needs a time domain"),
    ],
)  # fmt: skip
def test_mistakes_in_an_own_problem_are_explained(
    capsys, tmp_path, domain, residual, conditions, message
):
    file = tmp_path / "mine.py"
    file.write_text(OWN.format(domain=domain, residual=residual, conditions=conditions))
    out = tmp_path / "out"
    assert message in refused(capsys, "solve", f"{file}:Mine", "--out", str(out), *FEW)
    assert not out.exists()


def test_a_file_that_does_not_run_is_named(capsys, tmp_path):
    file = tmp_path / "broken.py"
    file.write_text("1 +")
    assert "SyntaxError" in refused(capsys, "solve", f"{file}:Mine")


def test_predict_keeps_columns_and_order_and_writes_all_digits(run, tmp_path):
    points = tmp_path / "in.csv"
    points.write_text('x,label,t\n0.25,"a, b",0.5\n1,end,1\n0,start,0\n')
    assert (
        cli.main(["predict", str(run), "--points", str(points), "--out", str(tmp_path / "o.csv")])
        == 0
    )
    with (tmp_path / "o.csv").open() as file:
        table = list(csv.reader(file))
    assert table[0] == ["x", "label", "t", "u"]
    assert [row[:3] for row in table[1:]] == [
        ["0.25", "a, b", "0.5"],
        ["1", "end", "1"],
        ["0", "start", "0"],
    ]
    solution = hp.Solution.load(run / "solution.hyres")
    assert float(table[1][3]) == float(solution(t=0.5, x=0.25))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t,y\n0,0\n", "has no column x"),
        ("t,x\n0,zero\n", "line 2, column x: 'zero' is not a number"),
        ("t,x\n0,nan\n", "line 2, column x: 'nan' is not a number"),
        ("t,x\n0,0.5\n0,2\n", "1 of 2 points lie outside the domain"),
        ("t,x\n0\n", "line 2: 1 cells where the header has 2"),
        ("", "is empty"),
        ("t,x,u\n0,0,0\n", "has a column u already"),
    ],
)
def test_bad_point_files_are_explained(capsys, run, tmp_path, text, message):
    points = tmp_path / "in.csv"
    points.write_text(text)
    call = ["predict", str(run), "--points", str(points), "--out", str(tmp_path / "o.csv")]
    assert message in refused(capsys, *call)
    assert not (tmp_path / "o.csv").exists()


def test_reference_writes_axes_and_fields_time_first(tmp_path):
    out = tmp_path / "ref.npz"
    assert (
        cli.main(
            [
                "reference",
                "allen-cahn-dirichlet",
                "--out",
                str(out),
                "--set",
                "problem.reference=paper",
            ]
        )
        == 0
    )
    with np.load(out) as data:
        assert set(data) == {"t", "x", "u"}
        assert data["u"].shape == (data["t"].size, data["x"].size) == (201, 513)


@pytest.fixture
def coarse(monkeypatch, tmp_path):
    """An empty directory to work in, and grids of errors that are drawn at once."""
    for cls, counts in ((hp.problems.Heat1D, (9, 11)), (hp.problems.Darcy2DDirichlet, (21, 23))):
        monkeypatch.setattr(cls, "test_grid", counts)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_reference_draws_into_the_working_directory(coarse, capsys):
    assert cli.main(["reference", "heat-1d", "--plot"]) == 0
    assert [p.name for p in coarse.iterdir()] == ["heat-1d-reference.png"]
    assert (coarse / "heat-1d-reference.png").read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out == "heat-1d-reference.png: exact solution\n"


@pytest.mark.parametrize(
    ("file", "begin"), [("u.pdf", b"%PDF"), ("u.svg", b"<?xml"), ("plain", b"\x89PNG")]
)
def test_reference_draws_into_the_file_asked_for(coarse, file, begin):
    call = ["reference", "heat-1d", "--plot", str(coarse / file), "--out", str(coarse / "u.npz")]
    assert cli.main(call) == 0
    assert {p.name for p in coarse.iterdir()} == {file, "u.npz"}
    assert (coarse / file).read_bytes().startswith(begin)


def test_the_reference_of_a_ring_is_a_list_of_points(coarse):
    mu = "problem.mu=[[2,0.5],[0.5,1]]"
    assert (
        cli.main(["reference", "darcy-2d-dirichlet", "--out", "r.npz", "--plot", "--set", mu]) == 0
    )
    with np.load(coarse / "r.npz") as data:
        arrays = dict(data)
    assert list(arrays) == ["x", "y", "u", "flux_x", "flux_y"]
    x, y = arrays["x"], arrays["y"]
    whole = np.stack(np.meshgrid(np.linspace(-1, 1, 21), np.linspace(-1, 1, 23), indexing="ij"), -1)
    radius = np.hypot(*np.moveaxis(whole, -1, 0))
    inside = (radius >= 0.25 - 1e-12) & (radius <= 1 + 1e-12)
    np.testing.assert_allclose(np.stack([x, y], -1), whole[inside])
    assert all(a.shape == x.shape and np.isfinite(a).all() for a in arrays.values())
    np.testing.assert_allclose(arrays["u"], np.sin(np.pi * x) * np.cos(3 * np.pi * y), atol=1e-14)
    slope_x = np.pi * np.cos(np.pi * x) * np.cos(3 * np.pi * y)
    slope_y = -3 * np.pi * np.sin(np.pi * x) * np.sin(3 * np.pi * y)
    np.testing.assert_allclose(arrays["flux_x"], -2 * slope_x - 0.5 * slope_y, atol=1e-12)
    np.testing.assert_allclose(arrays["flux_y"], -0.5 * slope_x - slope_y, atol=1e-12)
    assert (coarse / "darcy-2d-dirichlet-reference.png").exists()


def test_diverged_runs_exit_with_3(tmp_path, capsys):
    file = tmp_path / "mine.py"
    file.write_text(
        OWN.format(
            domain=TIME,
            residual="u.t - u.xx + 0 * jnp.sqrt(3 - jnp.abs(u.value))",
            conditions="hp.Initial(0.0)",
        )
    )
    out = tmp_path / "out"
    wild = [*FEW, "train.adam_rate=1e8", "train.adam_warmup=0", "train.ssbroyden_steps=0"]
    assert cli.main(["solve", f"{file}:Mine", "--out", str(out), "--quiet", *wild]) == 3
    assert "diverged" in capsys.readouterr().err
    assert np.isfinite(hp.Solution.load(out / "solution.hyres")(t=0.5, x=0.5))
