"""Compiled programs are kept on disk between runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import jax
import pytest
from hyrespinn.run import compiled

RUN = """
import json
import hyrespinn as hp
solution = hp.solve(
    "heat-1d", method="network", preset="smoke", progress=False, reference=False,
    settings={"stages": "adam:3", "points.interior": 64},
)
print(json.dumps({"loss": solution.result["losses"]["total"], **solution.result["seconds"]}))
"""


@pytest.fixture
def no_cache():
    """As a user has it: JAX knows of no folder."""
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    yield
    jax.config.update("jax_compilation_cache_dir", before)


@pytest.mark.slow
def test_a_second_process_finds_the_programs_of_the_first(tmp_path):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    environment["HYRESPINN_CACHE"] = str(tmp_path)

    def run(**more: str) -> dict[str, float]:
        done = subprocess.run(
            [sys.executable, "-c", RUN], env=environment | more, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    first = run()
    programs = list((tmp_path / "compiled").rglob("*-cache"))
    assert programs
    second = run()
    assert second["loss"] == first["loss"]
    assert second["compilation"] < 0.7 * first["compilation"]
    assert len(list((tmp_path / "compiled").rglob("*-cache"))) == len(programs)


def test_jaxs_own_settings_are_put_back(tmp_path, monkeypatch, no_cache):
    monkeypatch.setenv("HYRESPINN_CACHE", str(tmp_path))
    least = jax.config.jax_persistent_cache_min_compile_time_secs
    with compiled.kept_programs():
        assert str(tmp_path) in jax.config.jax_compilation_cache_dir
    assert jax.config.jax_compilation_cache_dir is None
    assert jax.config.jax_persistent_cache_min_compile_time_secs == least


def test_a_folder_of_ones_own_stays(tmp_path, monkeypatch, no_cache):
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    with compiled.kept_programs():
        assert jax.config.jax_compilation_cache_dir == str(tmp_path)


def test_it_can_be_turned_off(monkeypatch, no_cache):
    monkeypatch.setenv("HYRESPINN_COMPILED", "off")
    with compiled.kept_programs():
        assert jax.config.jax_compilation_cache_dir is None


def test_a_folder_that_cannot_be_made_is_no_reason_to_fail(tmp_path, monkeypatch, no_cache):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HYRESPINN_CACHE", str(tmp_path / "file"))
    with compiled.kept_programs():
        assert jax.config.jax_compilation_cache_dir is None


def test_the_oldest_programs_go_first(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled, "MOST_BYTES", 25)
    for i in range(4):
        path = tmp_path / str(i)
        path.write_bytes(bytes(10))
        os.utime(path, (i, i))
    compiled._prune(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["2", "3"]
