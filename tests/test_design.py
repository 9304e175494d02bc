"""The bounds of the design, measured by ``benchmarks/design.py``."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).parents[1] / "benchmarks" / "design.py"


@pytest.fixture(scope="module")
def design():
    spec = importlib.util.spec_from_file_location("design", FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["design"] = module
    spec.loader.exec_module(module)
    return module


def test_the_source_keeps_its_bounds(design):
    assert not design.beyond(design.measure())


def test_what_is_beyond_a_bound_is_seen(design, tmp_path):
    """A tree with too much of everything."""
    (tmp_path / "one.py").write_text(
        "from .two import b\n"
        "from typing import Any\n"
        + "".join(f"a{i}: Any\n" for i in range(251))
        + "".join(f"getattr(1, 'a{i}')\n" for i in range(21))
        + "class C:\n    def __init__(self, a, b, c, d, e, f, g, h, *, i): ...\n"
    )
    (tmp_path / "two.py").write_text(
        "from .one import a1\ndef f(x):\n"
        + "".join(f"    if x == {i}: return\n" for i in range(15))
    )
    package = tmp_path / "package"
    package.mkdir()
    for file in tmp_path.glob("*.py"):
        file.rename(package / file.name)
    found = design.beyond(design.measure(tmp_path))
    assert [line.split()[0] for line in found] == [
        "explicit_any", "reflection", "most_complex", "largest_constructor", "import",
    ]  # fmt: skip
