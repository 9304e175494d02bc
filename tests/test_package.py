"""The package as a whole: one direction of imports, documents that run, no global settings."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "hyrespinn"

# Each imports only from those before it.
ORDER = [
    "version", "phases", "errors", "metrics", "algebra", "files", "registry", "settings", "derivatives",
    "geometry", "models", "problems", "references", "losses", "optim", "training", "estimate",
    "discretise", "plots", "solution", "methods", "run", "bench", "cli", "commands",
]  # fmt: skip


def imported(path: Path) -> set[str]:
    """The top-level modules of the package that a file imports."""
    depth = len(path.relative_to(SOURCE).parts)
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        # `from ..` inside a folder, `from .` at the top: both reach the top level.
        if isinstance(node, ast.ImportFrom) and node.level == depth:
            names = [node.module] if node.module else [alias.name for alias in node.names]
            found |= {name.split(".")[0] for name in names}
    return found - {"__version__"}


@pytest.mark.parametrize(
    "path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE))
)
def test_imports_go_one_way(path):
    own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if own in ("__init__", "__main__"):
        return
    before = ORDER[: ORDER.index(own)]
    for name in imported(path) - {own}:
        assert name in before, f"{own} may not import {name}"


def test_every_module_has_its_place():
    modules = {p.name.removesuffix(".py") for p in SOURCE.iterdir() if not p.name.startswith("_")}
    assert modules - {"py.typed"} == set(ORDER)


def test_the_code_of_the_readme_is_the_example():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    example = (ROOT / "examples" / "heat.py").read_text()
    assert example in blocks
    assert len(example.splitlines()) <= 20


@pytest.mark.slow
def test_the_example_from_a_cold_start(tmp_path):
    """As a user runs it: a script, in a fresh process; then its own answer is checked."""
    code = (
        "import runpy, sys, numpy as np\n"
        f"names = runpy.run_path({str(ROOT / 'examples' / 'heat.py')!r}, run_name='__main__')\n"
        "solution = names['solution']\n"
        "t, x = np.linspace(0, 1, 101)[:, None], np.linspace(0, 1, 101)[None]\n"
        "np.save('u.npy', solution(t=t, x=x))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=500
    )
    assert run.returncode == 0, run.stderr
    t, x = np.linspace(0, 1, 101)[:, None], np.linspace(0, 1, 101)[None]
    exact = np.exp(-(np.pi**2) * 0.05 * t) * np.sin(np.pi * x)
    error = np.linalg.norm(np.load(tmp_path / "u.npy") - exact) / np.linalg.norm(exact)
    assert error <= 1e-4
    assert (tmp_path / "heat.png").is_file()


def test_importing_changes_no_jax_setting():
    code = (
        "import jax; before = dict(jax.config.values); import hyrespinn, hyrespinn.cli;"
        "assert dict(jax.config.values) == before"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_the_types_of_all_modules_can_be_checked():
    """As ``make test-all`` does while it runs: a protocol that is not runtime_checkable cannot be."""
    code = (
        "import importlib, pkgutil, jaxtyping\n"
        "jaxtyping.install_import_hook(['hyrespinn'], 'typechecker.check')\n"
        "import hyrespinn\n"
        "for module in pkgutil.walk_packages(hyrespinn.__path__, 'hyrespinn.'):\n"
        "    if not module.name.endswith('__main__'):\n"
        "        importlib.import_module(module.name)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT / "tests"
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_fast_preset_solves_allen_cahn(seed):
    """The main job: 2e-6 within 240 s of training on two cores."""
    import hyrespinn as hp

    problem = hp.problems.AllenCahnDirichlet()
    result = hp.solve(problem, seed=seed, progress=False).result
    assert result["rel_l2"]["u"] <= 2e-6
    assert result["seconds"]["training"] <= 240


def test_the_tables_of_the_documents_are_those_of_the_results():
    path = ROOT / "benchmarks" / "tables.py"
    tables = runpy.run_path(str(path))
    for page in tables["PAGES"]:
        assert tables["filled"](page.read_text()) == page.read_text(), f"run python {path}"


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda p: p.name)
def test_the_code_in_the_documents_runs(page):
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(compile(textwrap.dedent(block), str(page), "exec"), {"__name__": "__main__"})
