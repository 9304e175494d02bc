"""The benchmark: the arithmetic of its tables, what it keeps and what it refuses."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import shutil
from pathlib import Path
from types import SimpleNamespace

import hyrespinn as hp
import jax
import numpy as np
import pytest
from hyrespinn import cli
from hyrespinn.bench import plan as module
from hyrespinn.bench.bench import PAPER_PROBLEMS, Bench, BenchRequest, bench, forecast
from hyrespinn.bench.export import as_csv, as_latex, records
from hyrespinn.bench.plan import COMPARED, digest, plan
from hyrespinn.bench.table import (
    Cell,
    efficiency_grid,
    failures,
    grids,
    markdown,
    problem_grid,
    summary_grid,
    time_grid,
)
from hyrespinn.errors import UserError
from hyrespinn.files import write_json
from hyrespinn.methods import METHODS
from hyrespinn.run.config import configure
from hyrespinn.run.run_directory import RunDirectory
from hyrespinn.training.watch import Watch

QUICK = {
    "model.width": 6, "model.depth": 1, "model.kernels.count": 5, "points.interior": 64,
    "points.initial": 16, "stages": "adam(steps=150, batch=32)", "marching": "whole",
}  # fmt: skip
REQUEST = BenchRequest(["heat-1d"], ["hyrespinn", "pinn"], settings=QUICK)


def made_up(problem, model, seed, errors, status="completed", rate=100.0, n_params=50):
    return Cell(
        problem,
        model,
        seed,
        status,
        fields=[name for name in errors if not name.startswith("flux")],
        derived=["flux"] if "flux" in errors else [],
        method="network",
        n_params=n_params,
        n_params_window=n_params,
        steps=400,
        seconds={"training": 400 / rate, "compilation": 1.0, "total": 9.0},
        steps_per_second=rate,
        rel_l2=errors,
        rel_l2_initial=dict.fromkeys(errors, 1.0),
    )


def column(grid, name):
    return {row[0]: row[grid.columns.index(name)] for row in grid.rows}


CELLS = [
    made_up("darcy", "pinn", 0, {"u": 1e-2, "flux": 3e-2, "flux_x": 9.0}, rate=300.0),
    made_up("darcy", "pinn", 1, {"u": 3e-2, "flux": 5e-2, "flux_x": 9.0}, rate=300.0),
    made_up("darcy", "hyrespinn", 0, {"u": 1e-3, "flux": 8e-2}, rate=150.0, n_params=80),
    made_up("darcy", "hyrespinn", 1, {"u": 2e-3, "flux": 8e-2}, rate=250.0, n_params=80),
    made_up("darcy", "hyrespinn", 2, {"u": 1e9}, status="diverged"),
    Cell("darcy", "respinn", 0, "failed", "no\nmemory"),
]
MODELS = ["hyrespinn", "pinn", "respinn", "piratenet"]


def test_means_and_deviations_are_over_the_seeds_that_finished():
    grid = problem_grid(CELLS, "darcy", MODELS)
    errors = column(grid, "error u")
    spread = np.std([1e-2, 3e-2], ddof=1)
    assert errors["pinn"] == f"2.00e-02 ({spread:.1e})"
    assert errors["hyrespinn"] == f"**1.50e-03 ({np.std([1e-3, 2e-3], ddof=1):.1e})**"
    assert column(grid, "error flux")["pinn"] == f"**4.00e-02 ({spread:.1e})**"
    assert column(grid, "error flux")["hyrespinn"] == "8.00e-02 (0.0e+00)"
    assert column(grid, "seeds") == {
        "hyrespinn": "2/3", "pinn": "2/2", "respinn": "0/1", "piratenet": "–",
    }  # fmt: skip
    assert not any("flux_x" in name for name in grid.columns)


def test_a_step_costs_what_it_takes_of_the_pinns_time():
    grid = problem_grid(CELLS, "darcy", MODELS)
    assert column(grid, "steps/s")["hyrespinn"] == "200.0"
    assert column(grid, "step cost")["hyrespinn"] == "1.50×"
    assert column(grid, "step cost")["pinn"] == "1.00×"
    assert "step cost" not in problem_grid(CELLS, "darcy", ["hyrespinn"]).columns


def test_models_without_a_finished_run_have_no_figures():
    for grid in (problem_grid(CELLS, "darcy", MODELS), efficiency_grid(CELLS, "darcy", MODELS)):
        rows = {row[0]: row[1:] for row in grid.rows}
        assert set(rows["piratenet"]) == {"–"}
        assert set(rows["respinn"]) <= {"–", "0/1"}


def test_efficiencies_are_of_the_mean_error_and_the_mean_cost():
    rows = {row[0]: row[1:] for row in efficiency_grid(CELLS, "darcy", MODELS).rows}
    error, parameters, rate, seconds = 1.5e-3, 80, 200.0, (400 / 150 + 400 / 250) / 2
    expected = [
        1 / (error * parameters),
        1 / (error * rate),
        1 / (error * parameters * rate),
        1 / (error * seconds),
        1 / (error * parameters * seconds),
    ]
    assert [float(text) for text in rows["hyrespinn"]] == pytest.approx(expected, rel=5e-3)


def test_the_summary_has_a_row_for_each_field():
    grey = [
        made_up("grey-scott", "pinn", 0, {"u": 0.2, "v": 0.3}),
        made_up("grey-scott", "hyrespinn", 0, {"u": 0.1, "v": 0.4}),
    ]
    grid = summary_grid([*CELLS, *grey], ["hyrespinn", "pinn"])
    assert grid.columns == ["problem", "hyrespinn", "pinn"]
    assert grid.rows == [
        ["darcy", "**1.50e-03**", "2.00e-02"],
        ["grey-scott u", "**1.00e-01**", "2.00e-01"],
        ["grey-scott v", "4.00e-01", "**3.00e-01**"],
    ]
    labels = [row[0] for row in efficiency_grid(grey, "grey-scott", ["pinn"]).rows]
    assert labels == ["pinn u", "pinn v"]


def test_the_page_has_every_table_and_names_what_failed():
    page = markdown("# Benchmark", CELLS, MODELS)
    for grid in grids(CELLS, MODELS):
        assert f"## {grid.title}\n\n{grid.markdown()}" in page
        assert {line.count("|") for line in grid.markdown().splitlines()} == {len(grid.columns) + 1}
    assert failures(CELLS) == [
        "darcy, hyrespinn, seed 2: diverged: ",
        "darcy, respinn, seed 0: failed: no memory",
    ]
    assert "- darcy, respinn, seed 0: failed: no memory\n" in page


def paper_cells():
    """Two seeds of a problem of the paper with a reference of its own."""
    return [
        dataclasses.replace(
            made_up("allen-cahn-dirichlet", "hyrespinn", seed, {"u": error}),
            rel_l2_until={"0.2": {"u": error / 4}, "0.8": {"u": error / 2}},
            rel_l2_paper_reference={"u": 2.4e-3},
        )
        for seed, error in enumerate((1e-4, 3e-4))
    ]


def test_the_papers_figures_stand_beside_ours():
    grid = problem_grid(paper_cells(), "allen-cahn-dirichlet", ["hyrespinn", "pinn"])
    assert column(grid, "paper") == {"hyrespinn": "2.39e-03", "pinn": "2.65e-01"}
    assert column(grid, "against the paper's reference")["hyrespinn"] == "2.40e-03"
    assert "paper" not in problem_grid(CELLS, "darcy", MODELS).columns


def test_errors_up_to_parts_of_the_time():
    grid = time_grid(paper_cells(), "allen-cahn-dirichlet", ["hyrespinn", "pinn"])
    assert grid.columns == ["model", "t ≤ 0.2", "t ≤ 0.8"]
    assert grid.rows == [["hyrespinn", "5.00e-05", "1.00e-04"]]
    assert not time_grid(CELLS, "darcy", MODELS).rows


def test_records_have_every_figure():
    (record,) = records(paper_cells(), ["hyrespinn", "pinn"])
    assert record["error"] == pytest.approx(2e-4)
    assert record["error_sd"] == pytest.approx(math.sqrt(2) * 1e-4)
    assert (record["paper"], record["error_paper_reference"]) == (2.39e-3, 2.4e-3)
    assert (record["seeds"], record["failed"], record["parameters"]) == (2, 0, 50)
    assert record["eta_params"] > 0
    assert record["error_until"] == pytest.approx({"0.2": 5e-5, "0.8": 1e-4})
    darcy = records(CELLS, MODELS)
    assert {(r["quantity"], r["model"]) for r in darcy} == {
        (q, m) for q in ("u", "flux") for m in ("hyrespinn", "pinn", "respinn")
    }
    failed = next(r for r in darcy if r["model"] == "respinn")
    assert (failed["error"], failed["seeds"], failed["failed"]) == (None, 0, 1)


def test_csv_and_latex_say_what_the_records_say():
    found = records([*paper_cells(), *CELLS], MODELS)
    lines = list(csv.DictReader(io.StringIO(as_csv(found))))
    assert len(lines) == len(found)
    assert float(lines[0]["error"]) == found[0]["error"]
    assert float(lines[0]["error_until_0.2"]) == pytest.approx(5e-5)
    assert lines[-1]["error_until_0.2"] == ""
    text = as_latex(found, MODELS)
    assert r"allen-cahn-dirichlet, $u$ & $\mathbf{2.00\cdot 10^{-4}}$ & -- & -- & -- \\" in text
    assert r"(paper) & ($2.39\cdot 10^{-3}$)" in text
    assert text.count("{") == text.count("}")


@pytest.mark.parametrize(
    ("ahead", "jobs", "expected"),
    [
        ([("darcy", "pinn", 2)], 1, "; about 1 min left"),
        ([("darcy", "pinn", seed) for seed in range(1200)], 1, "; about 3 h 0 min left"),
        ([("other", "piratenet", seed) for seed in range(1200)], 2, "; about 1 h 30 min left"),
        ([], 1, ""),
    ],
)
def test_the_time_left_is_that_of_cells_alike(ahead, jobs, expected):
    assert forecast(CELLS, ahead, jobs) == expected


def test_nothing_is_forecast_from_nothing():
    assert forecast([Cell("darcy", "pinn", 0, "failed")], [("darcy", "pinn", 1)], 1) == ""


def test_problems_without_reference_have_speeds_alone():
    cell = Cell("own", "pinn", 0, "completed", fields=["u"], steps_per_second=5.0)
    (grid,) = grids([cell], ["pinn"])
    assert grid.columns[-1] == "seconds"


def test_the_papers_problems_are_registered():
    assert len(PAPER_PROBLEMS) == 10
    assert set(PAPER_PROBLEMS) <= set(hp.problems.PROBLEMS)


class Solver:
    """Stands in for the solver: it writes a result at once, and counts its calls."""

    def __init__(self):
        self.ran: list[tuple[str, int]] = []
        self.ends: dict[tuple[str, int], str | BaseException] = {}
        self.cleared_after: list[int] = []  # how many cells had run when caches were cleared

    def __call__(self, config, out, *, progress=True, reference=True, patient=False):
        assert patient, "a limit is on training alone"
        key = config.model, config.seed
        self.ran.append(key)
        end = self.ends.get(key, "completed")
        directory = RunDirectory.create(Path(out), config)
        if isinstance(end, BaseException):
            raise end
        cell = made_up(config.problem.name, *key, {"u": 0.1 + config.seed}, status=end)
        result = vars(cell) | {"method": config.method}
        write_json(directory.result, result)
        return SimpleNamespace(result=result)


@pytest.fixture
def solver(monkeypatch):
    stand_in = Solver()
    monkeypatch.setattr(module, "solve_configured", stand_in)
    monkeypatch.setattr(
        jax, "clear_caches", lambda: stand_in.cleared_after.append(len(stand_in.ran))
    )
    return stand_in


def test_only_missing_cells_run_and_seeds_and_models_can_be_added(solver, tmp_path):
    lines: list[str] = []
    bench(REQUEST, tmp_path, lines.append)
    assert solver.ran == [("hyrespinn", 0), ("pinn", 0)]
    assert lines[1].startswith(
        "2 of 2  heat-1d, pinn, seed 0: error u 1.00e-01, 4.0 s, 100.0 steps"
    )
    wider = BenchRequest(["heat-1d"], ["pinn", "respinn"], [0, 1], settings=QUICK)
    found = bench(wider, tmp_path, lines.append)
    assert solver.ran[2:] == [("pinn", 1), ("respinn", 0), ("respinn", 1)]
    assert "1 of 4 cells" in lines[2]
    assert lines[3].startswith("2 of 4 ")
    stored = json.loads((tmp_path / "bench.json").read_text())
    assert stored["request"]["models"] == ["hyrespinn", "pinn", "respinn"]
    assert stored["request"]["seeds"] == [0, 1]
    assert len(stored["cells"]) == len(found.cells) == 5
    assert stored["environment"]["packages"]["jax"]
    assert column(found.grids[0], "seeds") == {"hyrespinn": "1/1", "pinn": "2/2", "respinn": "2/2"}
    assert Bench.open(tmp_path).cells.keys() == found.cells.keys()


def test_programs_are_dropped_between_models_and_kept_between_seeds(solver, tmp_path):
    bench(BenchRequest(["heat-1d"], ["pinn", "respinn"], [0, 1, 2]), tmp_path, lambda line: None)
    assert len(solver.ran) == 6
    assert solver.cleared_after == [3]


def test_settings_go_to_the_models_that_have_them(solver, tmp_path):
    bench(REQUEST, tmp_path, lambda line: None)
    held = {
        model: json.loads((tmp_path / "heat-1d" / f"{model}-seed0" / "config.json").read_text())
        for model in REQUEST.models
    }
    ours, theirs = (held[model]["discretisation"]["model"] for model in ("hyrespinn", "pinn"))
    assert (ours["kind"], ours["width"], ours["kernels"]["count"]) == ("hyrespinn", 6, 5)
    assert (theirs["kind"], theirs["width"], theirs["depth"]) == ("pinn", 6, 1)
    assert "kernels" not in theirs


def test_a_kind_comes_with_its_keys():
    """Keys that only another kind of a part has, as ``solve`` takes them."""
    windows = {"marching": "adaptive", "marching.tolerance": "0.1"}
    (task,) = plan(BenchRequest(["heat-1d"], ["pinn"], settings=windows), Path("out"))
    assert task.config.discretisation.marching == hp.discretise.Adaptive(tolerance=0.1)
    alone = {"marching.tolerance": "0.1"}
    with pytest.raises(UserError, match=r"Unknown setting 'marching\.tolerance'"):
        plan(BenchRequest(["heat-1d"], ["pinn"], settings=alone), Path("out"))


def test_a_method_without_a_choice_of_models_has_one_row(solver, tmp_path):
    request = BenchRequest(["heat-1d", "poisson-2d"], method="auto", seeds=[0, 1])
    found = bench(request, tmp_path, lambda line: None)
    assert solver.ran == 2 * [("kernel-expansion", 0), ("kernel-expansion", 1)]
    assert found.models == ("kernel-expansion",)
    assert {cell.method for cell in Bench.open(tmp_path).cells.values()} == {"collocation"}
    with pytest.raises(UserError, match="collocation has no choice of model: pinn"):
        plan(BenchRequest(["heat-1d"], ["pinn"], method="collocation"), tmp_path)


def test_without_a_choice_all_models_of_the_paper_are_compared():
    tasks = plan(BenchRequest(["heat-1d"], method="paper"), Path("out"))
    assert tuple(task.config.model for task in tasks) == COMPARED
    assert {task.config.method for task in tasks} == {"paper"}


OWN = """
import hyrespinn as hp
from typing import Any

class Mine(hp.Problem):
    force: Any = lambda p: p.x
    domain = hp.Box(x=(0, 1))
    fields = ("u",)
    def residual(self, u, p):
        return u.xx - self.force(p)
    def conditions(self):
        return [hp.Dirichlet(0.0)]
"""


def test_own_problems_take_part_and_are_kept(solver, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(OWN)
    request = BenchRequest([f"{file}:Mine", "heat-1d"], ["pinn"])
    for _ in range(2):
        found = bench(request, tmp_path / "out", lambda line: None)
    assert list(found.cells) == [("mine", "pinn", 0), ("heat-1d", "pinn", 0)]
    assert len(solver.ran) == 2
    with pytest.raises(UserError, match="are both called mine"):
        bench(BenchRequest([f"{file}:Mine", f"{file.parent}/./mine.py:Mine"]), tmp_path / "two")


def test_a_failing_cell_is_recorded_and_tried_again(solver, tmp_path):
    solver.ends["hyrespinn", 0] = RuntimeError("out of memory")
    found = bench(REQUEST, tmp_path, lambda line: None)
    assert solver.ran == [("hyrespinn", 0), ("pinn", 0)]
    assert found.failures == ["heat-1d, hyrespinn, seed 0: failed: RuntimeError: out of memory"]
    solver.ends.clear()
    found = bench(REQUEST, tmp_path, lambda line: None)
    assert solver.ran[2:] == [("hyrespinn", 0)]
    assert not found.failed


def test_a_stop_keeps_what_is_finished(solver, tmp_path):
    solver.ends["pinn", 0] = KeyboardInterrupt()
    request = BenchRequest(["heat-1d"], ["hyrespinn", "pinn", "respinn"], settings=QUICK)
    found = bench(request, tmp_path, lambda line: None)
    assert found.signal == 2
    assert list(found.cells) == [("heat-1d", "hyrespinn", 0)]
    assert (tmp_path / "table.md").exists()
    solver.ends.clear()
    assert len(bench(request, tmp_path, lambda line: None).cells) == 3
    assert solver.ran[2:] == [("pinn", 0), ("respinn", 0)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"preset": "fast"}, "it was made with preset 'smoke', not 'fast'"),
        ({"method": "paper"}, "it was made with method 'network', not 'paper'"),
        ({"precision": "float32"}, "precision 'float64', not 'float32'"),
        ({"settings": {}}, "settings {'model.width': '6'"),
        ({"max_seconds": 5.0}, "max_seconds None, not 5.0"),
    ],
)
def test_the_directory_of_another_bench_is_refused(solver, tmp_path, change, message):
    bench(REQUEST, tmp_path, lambda line: None)
    other = BenchRequest(**{**vars(REQUEST), **change})
    with pytest.raises(UserError, match="holds another bench") as caught:
        bench(other, tmp_path, lambda line: None)
    assert message in str(caught.value)
    assert len(solver.ran) == 2


def test_other_directories_are_refused(solver, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="is not a bench directory"):
        bench(REQUEST, tmp_path, lambda line: None)
    assert not solver.ran


def test_a_run_of_another_configuration_is_set_aside_and_run_again(solver, tmp_path):
    bench(REQUEST, tmp_path, lambda line: None)
    folder = tmp_path / "heat-1d" / "pinn-seed0"
    held = json.loads((folder / "config.json").read_text())
    held["discretisation"]["points"]["interior"] = 65
    (folder / "config.json").write_text(json.dumps(held))
    before = digest(held)
    content = json.loads((tmp_path / "bench.json").read_text())
    content["cells"][1]["configuration"] = before
    (tmp_path / "bench.json").write_text(json.dumps(content))
    (folder.parent / f"pinn-seed0-{before}").mkdir()  # one that was set aside before
    found = bench(REQUEST, tmp_path, lambda line: None)
    assert solver.ran[2:] == [("pinn", 0)]
    assert (folder.parent / f"pinn-seed0-{before}-2" / "result.json").exists()
    assert found.cells["heat-1d", "pinn", 0].configuration != before


def test_finished_cells_need_no_directory(solver, tmp_path):
    """So a bench can be kept, and gone on with, without its run directories."""
    bench(REQUEST, tmp_path, lambda line: None)
    shutil.rmtree(tmp_path / "heat-1d")
    found = bench(REQUEST, tmp_path, lambda line: None)
    assert len(solver.ran) == 2
    assert {cell.status for cell in found.cells.values()} == {"completed"}
    assert all(len(cell.configuration) == 12 for cell in found.cells.values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--problems", "heat-1d", "heat-2d"], "Did you mean 'heat-1d'?"),
        (["--problems", "heat-1d", "--models", "pinn", "hyrespin"], "Did you mean 'hyrespinn'?"),
        (["--problems", "heat-1d", "--preset", "smok"], "it has smoke, fast, accurate."),
        (["--problems", "heat-1d", "--method", "papr"], "Did you mean 'paper'?"),
        (["--problems", "heat-1d", "--load", "nowhere.py"], "There is no file nowhere.py"),
        (["--problems", "heat-1d", "--precision", "float16"], "Unknown precision"),
        (["--problems", "heat-1d", "--max-seconds", "0"], "time limit must be positive"),
        (
            ["--problems", "heat-1d", "--models", "pinn", "--set", "model.kernels.count=4"],
            "'model.kernels.count'",
        ),
        (
            ["--problems", "heat-1d", "--set", "problem.epsilon=4"],
            "Unknown setting 'problem.epsilon'",
        ),
        (
            ["--problems", "heat-1d", "--set", "model.width=wide"],
            "model.width must be a whole number",
        ),
        (["--problems", "heat-1d", "--seeds", "0"], "at least one of its seeds"),
        (["--show", "nowhere"], "nowhere is not a bench directory"),
    ],
)
def test_mistakes_are_found_before_anything_runs(
    solver, capsys, tmp_path, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["bench", *arguments]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not solver.ran
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("end", "code"),
    [("completed", 0), ("time_limit", 0), ("diverged", 3), (UserError("bad"), 1), ("interrupted", 130)],
)  # fmt: skip
def test_exit_codes(solver, tmp_path, capsys, end, code):
    solver.ends["pinn", 0] = end
    out = str(tmp_path / "out")
    call = [
        "bench",
        "--problems",
        "heat-1d",
        "--models",
        "pinn",
        "hyrespinn",
        "--jobs",
        "1",
        "--out",
        out,
    ]
    assert cli.main(call) == code
    printed = capsys.readouterr()
    assert ("heat-1d, pinn, seed 0" in printed.err) == (code in (1, 3))
    assert len(solver.ran) == (1 if code == 130 else 2)
    assert cli.main(["bench", "--show", out]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == printed.out.splitlines()[-1]


def test_the_default_directory_goes_on_or_takes_the_next_number(solver, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call = ["bench", "--problems", "heat-1d", "--models", "pinn", "--jobs", "1"]
    for extra in ([], ["--seeds", "2"], ["--set", "points.interior=64"], ["--seeds", "1"]):
        assert cli.main([*call, *extra]) == 0
    runs = {p.parent.parent.relative_to(tmp_path / "runs"): p for p in tmp_path.glob("runs/*/*/*")}
    assert {str(p) for p in runs} == {"bench-network-smoke", "bench-network-smoke-2"}
    assert len(solver.ran) == 3


def test_a_real_bench_stops_goes_on_and_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(hp.problems.Heat1D, "test_grid", (9, 11))
    settings = {key: value for key, value in QUICK.items() if key != "model.kernels.count"}
    request = BenchRequest(["heat-1d"], ["pinn"], [0, 1], settings=settings)
    with monkeypatch.context() as stopped:
        stopped.setattr(Watch, "interrupted", lambda self: True)
        found = bench(request, tmp_path, lambda line: None)
    assert found.signal == 2
    (cell,) = found.cells.values()
    assert cell.status == "interrupted"
    assert 0 < cell.steps < 150
    assert column(found.grids[0], "seeds")["pinn"] == "0/1"

    found = bench(request, tmp_path, lambda line: None)
    assert found.signal is None
    assert not found.failures
    # The cell went on where it was: nothing was set aside and begun anew.
    assert {p.name for p in (tmp_path / "heat-1d").iterdir()} == {"pinn-seed0", "pinn-seed1"}
    for cell in found.cells.values():
        assert (cell.status, cell.steps) == ("completed", 150)
        assert cell.rel_l2["u"] < cell.rel_l2_initial["u"]
    cell = found.cells["heat-1d", "pinn", 0]
    assert (cell.method, cell.n_params, cell.n_params_window) == ("network", 3 * 6 + 7, 3 * 6 + 7)
    held = sorted(p for p in (tmp_path / "heat-1d").rglob("*") if p.is_file())
    before = [p.stat().st_mtime_ns for p in held]

    stored = json.loads((tmp_path / "results.json").read_text())["results"]
    (row,) = (r for r in stored if r["quantity"] == "u")
    errors = [cell.rel_l2["u"] for cell in found.cells.values()]
    assert (row["model"], row["error"]) == ("pinn", pytest.approx(np.mean(errors), rel=1e-14))
    assert all(set(r["error_until"]) == {"0.2", "0.4", "0.6", "0.8"} for r in stored)
    assert (tmp_path / "table.csv").read_text().startswith("problem,quantity,model")
    assert (tmp_path / "table.tex").read_text().endswith("\\end{tabular}\n")

    again = bench(request, tmp_path, lambda line: None)
    assert again.cells.keys() == found.cells.keys()
    assert [p.stat().st_mtime_ns for p in held] == before


METHOD = """
from hyrespinn import register
from hyrespinn.methods import Network

@register("own")
class Own(Network):
    pass
"""


@pytest.fixture
def registered(monkeypatch):
    """What a test registers is forgotten after it."""
    monkeypatch.setattr(METHODS, "_classes", dict(METHODS._classes))


@pytest.mark.slow
def test_two_cells_at_once(tmp_path, registered):
    """In processes of their own, each on one core, which know what a person adds; the figures are
    those of a single process."""
    few = {"stages": "adam(steps=3)", "points.interior": 16, "model.width": 4}
    file = tmp_path / "own.py"
    file.write_text(METHOD)
    options = {"settings": few, "jobs": 2, "method": "own", "load": [str(file)]}
    request = BenchRequest(["heat-1d"], ["pinn"], [0, 1], **options)
    found = bench(request, tmp_path / "two", lambda line: None)
    assert [cell.status for cell in found.cells.values()] == ["completed"] * 2
    environment = json.loads((tmp_path / "two/heat-1d/pinn-seed0/environment.json").read_text())
    assert environment["machine"]["cores"] == 1
    alone = hp.solve("heat-1d", model="pinn", preset="smoke", settings=few, progress=False)
    np.testing.assert_allclose(
        found.cells["heat-1d", "pinn", 0].rel_l2["u"], alone.result["rel_l2"]["u"], rtol=1e-9
    )
    one = dataclasses.replace(request, seeds=[0], jobs=1)
    with pytest.raises(UserError, match="made with jobs 2"):
        bench(one, tmp_path / "two")


def test_more_jobs_than_cores_are_refused(solver, tmp_path):
    with pytest.raises(UserError, match="number of jobs"):
        bench(BenchRequest(["heat-1d"], ["pinn"], jobs=1000), tmp_path, lambda line: None)


def test_a_hash_is_of_all_that_determines_a_run():
    """Reasons are for people: another wording of them is no other run."""
    made = configure(hp.problems.Heat1D(), method="network").to_json()
    config = json.loads(json.dumps(made))
    assert digest(config) == digest(made)  # or no run would be found again in its directory
    assert digest({**config, "why": "another", "rejected": {}}) == digest(config)
    for key, value in (("seed", 3), ("method", "own"), ("schema", 3), ("precision", "float32")):
        assert digest({**config, key: value}) != digest(config), key
    config["discretisation"]["model"]["width"] += 1
    assert digest(config) != digest(made)
