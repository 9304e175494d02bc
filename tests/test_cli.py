"""The command line: what it prints, what it refuses and how it says so, and its exit codes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import hyrespinn as hp
import numpy as np
import pytest
from hyrespinn import cli
from hyrespinn.methods import METHODS
from hyrespinn.models.kernels import KERNELS
from hyrespinn.references.self_convergence import FILE as FIGURES
from hyrespinn.run.config import configure, with_settings

from helpers import TINY

ROOT = Path(__file__).parents[1]
HEAT = f"{ROOT / 'examples' / 'heat.py'}:Heat"
NETWORK = ["--method", "network"]
FEW = [
    *NETWORK,
    "--set",
    *(f"{k}={v}" for k, v in {**TINY, "stages.ssbroyden.steps": 5}.items()),
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
    assert cli.main(["solve", HEAT, "--out", str(out), *FEW]) == 4  # a few steps solve nothing
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


def keys_of(capsys, *arguments: str) -> dict[str, str]:
    """What ``list --keys`` prints, without its remarks."""
    assert cli.main(["list", "--keys", *arguments]) == 0
    lines = (line.split("  #")[0].rstrip() for line in capsys.readouterr().out.splitlines())
    return dict(line.split("=", 1) for line in lines)


def test_list_keys_prints_what_set_takes(capsys):
    keys = keys_of(capsys, "allen-cahn-dirichlet", *NETWORK)
    wanted = {
        "problem.epsilon", "problem.reference", "model.kernels.kernel", "model.kernels.distance",
        "model.blocks", "model.kernels.count", "model.width", "model.gates.gate.tau",
        "model.gates.penalty", "stages.trust-region.steps", "stages.trust-region-2.ratio",
        "points.interior", "marching.first",
    }  # fmt: skip
    assert keys.keys() >= wanted
    assert keys["problem.reference"] == "converged"
    assert (keys["model"], keys["stages"]) == ("hyrespinn", "trust-region,trust-region")
    # What is printed can be given back, all of it at once.
    config = configure(hp.problems.AllenCahnDirichlet(), method="network")
    again = with_settings(config, keys)
    assert again.discretisation == config.discretisation


def test_list_keys_shows_those_of_what_was_chosen(capsys):
    keys = keys_of(capsys, "allen-cahn-dirichlet")
    assert keys["model.kernels.counts"] == "[8, 1024]"
    assert (keys["model.kernels"], keys["boundary"]) == ("lattice", "reflected")
    assert "points.boundary" not in keys, "it would change nothing"
    keys = keys_of(capsys, "heat-1d", "--model", "pinn", "--set", "marching=adaptive")
    assert keys["model"] == "pinn"
    assert keys["marching.count"] == "10"
    keys = keys_of(capsys, "heat-1d", "--preset", "paper")
    assert keys["stages.adam.steps"] == "100000"
    assert keys == keys_of(capsys, "heat-1d", "--method", "paper", "--preset", "full")
    keys = keys_of(capsys, "heat-1d", "--method", "paper", "--preset", "small", "--model", "pinn")
    assert (keys["stages.adam.steps"], keys["model"]) == ("10000", "pinn")


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
        (["solve", HEAT, "--preset", "fastt"], "no preset 'fastt'; it has smoke, fast, accurate."),
        (["solve", HEAT, *NETWORK, "--preset", "full"], "The method network has no preset 'full'"),
        (["solve", HEAT, "--method", "colocation"], "Did you mean 'collocation'?"),
        (["solve", HEAT, "--method", "collocation", "--model", "pinn"],
         "The method collocation has no choice of model: pinn is for the methods network and paper."),
        (["solve", HEAT, "--method", "collocation", "--precision", "float32"],
         "The method collocation does not suit heat: nearly dependent kernels on a lattice are lost"),
        (["solve", HEAT, "--method", "paper", "--model", "kernel-expansion"],
         "The paper has no kernel-expansion; the method paper knows hyrespinn, pinn,"),
        (["solve", HEAT, "--precision", "float16"], "Unknown precision"),
        (["solve", HEAT, "--max-seconds", "0"], "time limit must be positive"),
        (["solve", HEAT, *NETWORK, "--set", "model.widht=8"], "Did you mean 'model.width'?"),
        (["solve", HEAT, *NETWORK, "--set", "model.width=wide"], "model.width must be a whole number"),
        (["solve", HEAT, *NETWORK, "--set", "model.width=2.5"], "model.width must be a whole number"),
        (["solve", HEAT, "--set", "problem.nu=big"], "problem.nu must be a number"),
        (["solve", HEAT, "--set", "problem.nu=nan"], "problem.nu must be finite"),
        (["solve", HEAT, "--set", "in_turn=maybe"], "in_turn must be true or false"),
        (["solve", HEAT, "--set", "boundary=maybe"], "Known: lifted, penalty, reflected."),
        (["solve", HEAT, *NETWORK, "--set", "model.kernels.kernel=gausian"],
         "Did you mean 'gaussian'?"),
        (["solve", HEAT, *NETWORK, "--set", "model.kernels.distance=round"],
         "Unknown model.kernels.distance"),
        (["solve", HEAT, "--set", "initial_fit=both"], "must be one of none, initial, equation"),
        (["solve", HEAT, *NETWORK, "--set", "points.interior=0"], "at least one point"),
        (["solve", HEAT, *NETWORK, "--set", "points.interior"], "--set takes key=value"),
        (["solve", HEAT, *NETWORK, "--set", "model.gates.gate.tau=-1"], "tau must be positive"),
        (["solve", HEAT, *NETWORK, "--set", "points.sampler=sobl"], "Did you mean 'sobol'?"),
        (["solve", HEAT, *NETWORK, "--set", "stages=adm:10"], "Did you mean 'adam'?"),
        (["solve", HEAT, *NETWORK, "--set", "stages=adam:0"], "Adam needs at least one step, not 0"),
        (["solve", HEAT, *NETWORK, "--set", "stages="], "There is no optimiser"),
        (["solve", HEAT, *NETWORK, "--set", "marching=whole", "marching.count=5"],
         "It is one of marching=fixed, and marching is whole; set marching too."),
        (["solve", HEAT, *NETWORK, "--set", "model.harmonics=2"],
         "model.harmonics would change nothing: no coordinate is periodic. Leave it."),
        (["solve", "poisson-2d", *NETWORK, "--set", "points.initial=9"],
         "points.initial would change nothing: poisson-2d has no time. Leave it."),
        (["solve", "poisson-2d", *NETWORK, "--set", "marching=fixed"],
         "marching would change nothing: poisson-2d has no time. Leave it."),
        (["solve", HEAT, *NETWORK, "--set", "weights.causal.chunks=4"],
         "weights.causal is none and has no settings yet; set weights.causal too, to one of causal."),
        (["solve", HEAT, "--set", "model=pinn"], "take points=drawn for this model."),
        (["solve", HEAT, "--load", "nowhere.py"], "There is no file nowhere.py"),
        (["solve", "nowhere.py:Heat"], "There is no file nowhere.py"),
        (["solve", HEAT.removesuffix(":Heat")], "Say which class"),
        (["solve", HEAT.replace(":Heat", ":Cold")], "has no Problem class named 'Cold'"),
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


EXTENSION = """
from dataclasses import dataclass, replace

from hyrespinn import register
from hyrespinn.methods import FAST, Collocation, Method
from hyrespinn.models import KernelExpansion, Scattered
from hyrespinn.models.kernels import Gaussian


@register("own-kernel")
@dataclass(frozen=True)
class OwnKernel(Gaussian):
    power: int = 1


@register("own-method")
@dataclass(frozen=True)
class OwnMethod(Method):
    def discretise(self, statement, effort):
        made = Collocation().discretise(statement, FAST)
        points = replace(made.points, interior=200, boundary=60)
        return replace(made, model=KernelExpansion(Scattered(60, OwnKernel())), points=points)
"""


@pytest.fixture
def extension(tmp_path, monkeypatch):
    """A file that registers things, which are forgotten after the test."""
    for registry in (KERNELS, METHODS):
        monkeypatch.setattr(registry, "_classes", dict(registry))
    file = tmp_path / "extension.py"
    file.write_text(EXTENSION)
    return file


def test_files_of_ones_own_bring_methods_and_kernels(extension, tmp_path, capsys, monkeypatch):
    call = ["solve", "poisson-2d", "--method", "own-method", "--out", str(tmp_path / "run")]
    assert "Unknown method 'own-method'" in refused(capsys, *call)
    load = ["--load", str(extension)]
    assert keys_of(capsys, "poisson-2d", "--method", "own-method", *load) == keys_of(
        capsys, "poisson-2d", "--method", "own-method"
    )
    power = ["--set", "model.kernels.kernel.power=3"]
    assert cli.main([*call, *load, *power]) == 0
    assert "method own-method: it was asked for" in capsys.readouterr().out
    held = json.loads((tmp_path / "run" / "config.json").read_text())
    kernel = held["discretisation"]["model"]["kernels"]["kernel"]
    assert kernel == {"kind": "own-kernel", "power": 3}

    for registry in (KERNELS, METHODS):  # another process
        kept = {name: cls for name, cls in registry.items() if not name.startswith("own")}
        monkeypatch.setattr(registry, "_classes", kept)
    points, out = tmp_path / "in.csv", tmp_path / "out.csv"
    points.write_text("x,y\n0.5,0.25\n")
    call = ["predict", str(tmp_path / "run"), "--points", str(points), "--out", str(out)]
    assert "'own-kernel'" in refused(capsys, *call)
    assert cli.main([*call, *load]) == 0
    solution = hp.Solution.load(tmp_path / "run" / "solution.hyres")
    assert float(out.read_text().split(",")[-1]) == float(solution(x=0.5, y=0.25))


def test_a_file_that_cannot_be_loaded_is_named(capsys, tmp_path):
    file = tmp_path / "broken.py"
    file.write_text("import hyrespinn as hp\n@hp.register('gaussian')\nclass A: ...")
    message = refused(capsys, "solve", HEAT, "--load", str(file))
    assert "cannot be registered; derive it from one of the bases" in message
    file.write_text("1 / 0")
    message = refused(capsys, "solve", HEAT, "--load", str(file))
    assert f"{file} cannot be loaded: ZeroDivisionError" in message


def test_a_solve_says_which_method_and_where_it_is_kept(capsys, tmp_path, monkeypatch):
    """In a directory that is called after the problem, the method, the effort and the seed."""
    monkeypatch.chdir(tmp_path)
    assert cli.main(["solve", "poisson-2d", "--preset", "smoke", "--set", "stages=adam:2"]) == 0
    printed = capsys.readouterr().out
    assert (
        "method collocation: a steady equation, for scattered kernels and Gauss–Newton; not "
        in printed
    )
    assert "not network: slower and less accurate" in printed
    assert "259 parameters" in printed
    assert [p.name for p in (tmp_path / "runs").iterdir()] == ["poisson-2d-collocation-smoke-seed0"]


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
            conditions="hp.Initial(0.0), hp.Neumann(0.0)",
        )
    )
    out = tmp_path / "out"
    few = ("marching=whole", "model.width=6", "points.interior=64", "points.initial=16")
    wild = [*NETWORK, "--set", *few, "stages=adam(steps=40, batch=32, rate=1e8, warmup=0)"]
    assert cli.main(["solve", f"{file}:Mine", "--out", str(out), "--quiet", *wild]) == 3
    assert "diverged" in capsys.readouterr().err
    assert np.isfinite(hp.Solution.load(out / "solution.hyres")(t=0.5, x=0.5))
