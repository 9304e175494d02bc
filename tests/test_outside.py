"""Parts of one's own in a file outside of the package, from Python and from the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import hyrespinn as hp
import jax
import pytest
from hyrespinn.cli import main
from hyrespinn.run.loading import load_file

FILE = Path(__file__).parent / "outside" / "parts.py"


@pytest.fixture(scope="module")
def parts():
    return load_file(FILE)


def test_a_method_of_ones_own_solves_with_all_other_parts(parts):
    solution = hp.solve(parts.Cooling(), method=parts.OwnWay(width=4), progress=False)
    result = solution.result
    assert (result["method"], result["why"]) == ("own-way", "it was asked for")
    assert result["model"] == "hyrespinn"
    assert result["steps"] == 40
    assert result["losses"]["total"] < 100
    assert set(result["losses"]) >= {"residual", "neumann", "robin"}
    with jax.enable_x64(True):
        assert 0 < float(solution.model.diagnostics()["phi_alpha_1"]) < 1


def test_a_method_of_ones_own_says_why_not(parts):
    with pytest.raises(hp.UserError, match="own-way does not suit heat-1d: it knows no time"):
        hp.solve("heat-1d", method="own-way", progress=False)


def test_a_condition_of_ones_own_holds_with_collocation(parts):
    """u = x + 1: the Robin condition is what fixes the constant."""
    solution = hp.solve(parts.Cooling(), method="collocation", progress=False)
    assert solution.result["rel_l2"]["u"] < 1e-6


def test_a_model_of_ones_own_and_an_optimiser(parts):
    settings = {"stages": (parts.Descent(steps=20, rate=1e-4),), "points.sampler": parts.Jitter()}
    solution = hp.solve(
        parts.Cooling(), model=parts.OneLayerSpec(5), settings=settings, progress=False
    )
    assert solution.result["model"] == "one-layer"
    assert solution.result["n_params"] == 5 * 3


def test_all_of_it_from_the_command_line(parts, tmp_path, capsys):
    out = tmp_path / "run"
    arguments = [
        "solve", f"{FILE}:Cooling", "--load", str(FILE), "--method", "own-way", "--out", str(out),
        "--quiet", "--set", "stages.descent.rate=1e-4", "model.gates.gate.width=2",
        "model.kernels.kernel=gaussian", "points.sampler=uniform",
    ]  # fmt: skip
    assert main(arguments) == 4  # forty steps do not solve it
    found = json.loads((out / "config.json").read_text())["discretisation"]
    assert found["stages"] == [{"kind": "descent", "steps": 40, "rate": 1e-4}]
    assert found["model"]["gates"]["gate"] == {"kind": "arctan", "width": 2.0}
    assert json.loads((out / "result.json").read_text())["method"] == "own-way"

    out = tmp_path / "network"
    arguments = [
        "solve", "cooling", "--load", str(FILE), "--model", "one-layer", "--out", str(out),
        "--preset", "smoke", "--quiet", "--set", "stages=descent(steps=5, rate=1e-5)",
        "points.sampler=jitter",
    ]  # fmt: skip
    assert main(arguments) == 0
    assert json.loads((out / "result.json").read_text())["steps"] == 5
    assert main(["list", "--keys", "cooling", "--load", str(FILE), "--method", "own-way"]) == 0
    shown = capsys.readouterr().out
    assert "stages.descent.rate=0.001" in shown
    assert "# What multiplies the gradient." in shown


def test_a_saved_solution_of_ones_own_parts_is_read_again(parts, tmp_path):
    solution = hp.solve(parts.Cooling(), method="own-way", preset="smoke", progress=False)
    solution.save(tmp_path / "own.hyres")
    again = hp.Solution.load(tmp_path / "own.hyres", problem=parts.Cooling())
    assert again(x=0.3) == solution(x=0.3)
    assert again.spec == solution.spec


def test_nothing_of_it_is_in_the_package():
    assert not any("outside" in name for name in sys.modules if name.startswith("hyrespinn."))
