"""Run directories: complete, atomic, and resumable to the same bits after any end."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import hyrespinn as hp
import jax
import numpy as np
import pytest
from hyrespinn import cli
from hyrespinn.problems.statement import state
from hyrespinn.run.config import configure
from hyrespinn.run.run_directory import RunDirectory
from hyrespinn.run.solve import solve_configured

from helpers import TINY, Heat

ROOT = Path(__file__).parents[1]
SETTINGS = {**TINY, "stages.ssbroyden.steps": 400}
ONLY_ADAM = {
    "model.width": 6, "model.kernels.count": 5, "points.interior": 64, "points.initial": 16,
    "stages": "adam(steps=40, batch=32)",
}  # fmt: skip
NETWORK = ["allen-cahn-dirichlet", "--method", "network", "--seed", "5", "--quiet"]
ARGUMENTS = [*NETWORK, "--checkpoint-seconds", "0"]
ASSIGNMENTS = ["--set", *(f"{key}={value}" for key, value in SETTINGS.items())]
RESULT_KEYS = {
    "schema", "problem", "method", "why", "rejected", "model", "preset", "seed", "precision",
    "n_params", "n_params_window", "steps", "seconds", "steps_per_second", "rel_l2", "eta_params",
    "eta_comp", "eta_dof", "status", "verdict", "tolerance", "estimated_error", "fresh_gap", "warnings",
    "trained",
}  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run that was never interrupted."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    assert cli.main(["solve", *ARGUMENTS, "--out", str(out), *ASSIGNMENTS]) == 4  # a few steps
    return out


def bits(run: Path) -> list[bytes]:
    return [
        np.asarray(a).tobytes()
        for a in jax.tree.leaves(hp.Solution.load(run / "solution.hyres").model)
    ]


def rows(run: Path) -> list[dict[str, str]]:
    with (run / "history.csv").open() as file:
        return list(csv.DictReader(file))


def test_a_run_directory_is_complete(finished):
    for name in ("config.json", "environment.json", "history.csv", "result.json", "solution.hyres"):
        assert (finished / name).is_file()
    assert (finished / "checkpoint" / "state.npz").is_file()
    assert {p.name for p in (finished / "figures").iterdir()} == {"solution.png", "history.png"}
    assert not list(finished.rglob("*.tmp"))
    result = json.loads((finished / "result.json").read_text())
    assert result.keys() >= RESULT_KEYS
    assert (result["schema"], result["method"]) == (2, "network")
    assert (result["why"], result["rejected"]) == ("it was asked for", {})
    assert (result["model"], result["preset"]) == ("hyrespinn", "fast")
    assert result["n_params"] == result["n_params_window"] > 0
    assert result["rel_l2"].keys() == result["eta_dof"].keys() == {"u"}
    assert 0 < result["seconds"]["training"] < result["seconds"]["total"]
    environment = json.loads((finished / "environment.json").read_text())
    assert environment["precision"] == "float64"
    assert environment["seed"] == 5
    assert environment["packages"]["jax"]


def test_the_configuration_is_read_as_it_was_written(finished):
    content = json.loads((finished / "config.json").read_text())
    assert content["schema"] == 2
    directory, config = RunDirectory.open(finished)
    assert config.to_json() == content
    assert config.discretisation.steps == 440
    assert directory.origin.keys() == {"commit", "processor"}


def test_a_result_says_why_and_counts_the_parameters_of_all_windows():
    settings = {"marching.count": 3, "marching.growth": 0.0}
    solution = hp.solve("heat-1d", preset="smoke", settings=settings, progress=False)
    result = solution.result
    assert result["method"] == "collocation"
    assert result["model"] == "kernel-expansion"
    assert result["why"].startswith("walls that reflect the solution smoothly")
    assert result["rejected"] == {"network": "slower and less accurate where collocation suits"}
    of_window = result["n_params_window"]
    assert of_window == solution.spec.count(solution.boundary.inputs(state(solution.problem)))
    assert result["n_params"] == 3 * of_window
    assert len(result["windows"]) == 3
    error, params = result["rel_l2"]["u"], result["n_params"]
    assert result["eta_params"]["u"] == pytest.approx(1 / (error * params))


def test_history_has_losses_gates_and_error(finished):
    table = rows(finished)
    steps = [int(row["step"]) for row in table]
    assert steps == sorted(steps)
    assert steps[-1] == 440
    columns = {"seconds", "stage", "loss_total", "loss_residual", "loss_initial", "loss_penalty"}
    assert table[0].keys() >= columns | {"phi_alpha_1", "phi_beta_1", "rel_l2_u"}


SOFT = (signal.SIGINT, signal.SIGTERM)


@pytest.mark.parametrize(
    "number",
    [*(pytest.param(s, marks=pytest.mark.slow) for s in SOFT), signal.SIGKILL],
)
def test_a_stopped_run_resumes_to_the_same_bits(finished, tmp_path, number):
    out = tmp_path / "run"
    command = [sys.executable, "-m", "hyrespinn", "solve", *ARGUMENTS, "--out", str(out)]
    process = subprocess.Popen([*command, *ASSIGNMENTS], env=dict(os.environ))
    checkpoint, begin = out / "checkpoint" / "state.npz", time.monotonic()
    while not (checkpoint.exists() and len(rows(out)) >= 3):
        assert time.monotonic() - begin < 300
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    code = process.wait(timeout=120)
    if number != signal.SIGKILL:
        assert code == 128 + number
        assert json.loads((out / "result.json").read_text())["status"] == "interrupted"
    assert len(rows(out)) < len(rows(finished))
    assert cli.main(["resume", str(out), "--quiet"]) == 4
    assert bits(out) == bits(finished)
    kept = [(r["step"], r["loss_total"], r["rel_l2_u"]) for r in rows(out)]
    assert kept == [(r["step"], r["loss_total"], r["rel_l2_u"]) for r in rows(finished)]
    assert json.loads((out / "result.json").read_text())["status"] == "completed"


@pytest.mark.slow
def test_a_run_stopped_by_its_time_limit_resumes(finished, tmp_path, capsys, unhurried):
    """Without another limit it gets another allotment; one that is given counts from now."""
    out = tmp_path / "run"
    limited = ["solve", *ARGUMENTS, "--out", str(out), "--max-seconds", "0.001", *ASSIGNMENTS]
    assert cli.main(limited) == 5
    first = json.loads((out / "result.json").read_text())
    said = f"it came to {first['steps']} of at most 440 steps; go on with `hyrespinn resume {out}`"
    assert said in capsys.readouterr().out
    assert (first["status"], 0 < first["steps"] < 440) == ("time_limit", True)
    assert cli.main(["resume", str(out), "--quiet"]) == 5
    assert json.loads((out / "result.json").read_text())["steps"] > first["steps"]
    assert cli.main(["resume", str(out), "--quiet", "--max-seconds", "1e9"]) == 4
    assert bits(out) == bits(finished)


def test_a_finished_run_is_not_resumed(finished, capsys):
    assert cli.main(["resume", str(finished)]) == 2
    assert "is over (status completed)" in capsys.readouterr().err


def test_a_damaged_checkpoint_is_named(finished, tmp_path, capsys):
    out = copy_unfinished(finished, tmp_path)
    state = out / "checkpoint" / "state.npz"
    state.write_bytes(state.read_bytes()[:-2000])
    assert cli.main(["resume", str(out)]) == 2
    assert "is damaged" in capsys.readouterr().err


def test_a_flipped_byte_in_a_checkpoint_is_noticed(finished, tmp_path, capsys):
    out = copy_unfinished(finished, tmp_path)
    state = out / "checkpoint" / "state.npz"
    data = bytearray(state.read_bytes())
    data[len(data) // 2] ^= 1
    state.write_bytes(data)
    assert cli.main(["resume", str(out)]) == 2
    assert "is damaged" in capsys.readouterr().err


def test_a_checkpoint_of_another_problem_is_refused(finished, tmp_path, capsys):
    out = copy_unfinished(finished, tmp_path)
    config = json.loads((out / "config.json").read_text())
    config["problem_parameters"]["epsilon"] = 0.5
    (out / "config.json").write_text(json.dumps(config))
    assert cli.main(["resume", str(out)]) == 2
    assert "belongs to another problem" in capsys.readouterr().err


EARLIER = {
    "problem": "heat-1d", "problem_parameters": {}, "model": "hyrespinn", "preset": "fast", "seed": 0,
    "precision": "float64", "max_seconds": None, "model_config": {"width": 24, "centers": 12},
    "train": {"adam_steps": 1000},
}  # fmt: skip


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            EARLIER,
            "it was made by a version of hyrespinn that had other settings, and its network is",
        ),
        ({"schema": 3}, "it was made by a newer version of hyrespinn; update the package."),
    ],
)
def test_a_run_of_another_version_is_refused(tmp_path, capsys, content, message):
    """One of the first schema says none; what it holds can be read all the same."""
    (tmp_path / "config.json").write_text(json.dumps(content))
    assert cli.main(["resume", str(tmp_path)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert message in said
    assert f"The run directory {tmp_path} cannot be used" in said


def test_a_configuration_with_settings_that_do_not_exist_is_refused(finished, tmp_path, capsys):
    out = copy_unfinished(finished, tmp_path)
    config = json.loads((out / "config.json").read_text())
    config["discretisation"]["model"]["widht"] = 3
    (out / "config.json").write_text(json.dumps(config))
    assert cli.main(["resume", str(out)]) == 2
    message = " ".join(capsys.readouterr().err.split())
    assert "is damaged: Unknown setting 'model.widht'. Did you mean 'model.width'?" in message


@pytest.mark.parametrize("content", ["{", "[]", '{"problem": "heat"}', '{"schema": 2}'])
def test_a_damaged_configuration_is_named(tmp_path, capsys, content):
    (tmp_path / "config.json").write_text(content)
    assert cli.main(["resume", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err.replace("\n", "")


def test_an_existing_directory_is_not_overwritten(finished, capsys):
    before = (finished / "result.json").read_bytes()
    assert cli.main(["solve", *ARGUMENTS, "--out", str(finished)]) == 2
    message = capsys.readouterr().err
    assert "exists already" in message
    assert "allen-cahn-dirichlet" in message
    assert (finished / "result.json").read_bytes() == before


def test_a_full_disk_does_not_end_a_training(tmp_path, monkeypatch):
    """A checkpoint that cannot be written is a warning; the run goes on and is saved at its end."""

    def full(*_):
        raise hp.UserError("Cannot write state.npz: No space left on device.")

    monkeypatch.setattr("hyrespinn.run.run_directory.save_state", full)
    config = configure(Heat(), method="network", settings=ONLY_ADAM)
    solution = solve_configured(config, tmp_path / "run", progress=False, checkpoint_seconds=0)
    assert solution.result["status"] == "completed"
    assert (tmp_path / "run" / "solution.hyres").is_file()


@pytest.mark.slow
def test_own_problems_can_be_resumed_too(tmp_path, unhurried):
    settings = ONLY_ADAM | {"stages": "adam(steps=200, batch=32)"}
    options = {"method": "network", "progress": False, "settings": settings}
    whole = hp.solve(Heat(nu=0.1), out=tmp_path / "a", **options)
    hp.solve(Heat(nu=0.1), out=tmp_path / "b", max_seconds=1e-9, **options)
    again = hp.resume(tmp_path / "b", progress=False, max_seconds=1e9)
    assert again.problem.nu == 0.1
    assert again.result["losses"] == whole.result["losses"]


def copy_unfinished(finished: Path, tmp_path: Path) -> Path:
    import shutil

    out = tmp_path / "copy"
    shutil.copytree(finished, out)
    (out / "result.json").unlink()
    assert RunDirectory.open(out)[1].seed == 5
    return out
