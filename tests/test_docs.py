"""The documents: pages that are up to date, links and names that lead somewhere.

That their code runs and their tables are those of the results is in ``test_package.py``.
"""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "benchmarks" / "rivals" / "README.md",
]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_the_page_of_settings_is_that_of_the_docstrings():
    path = ROOT / "docs" / "scripts" / "settings.py"
    made = runpy.run_path(str(path))["page"]()
    assert made == (ROOT / "docs" / "settings.md").read_text(), f"run python {path}"
    assert not re.findall(r"^\|.*\|\s*\|$", made, re.MULTILINE), "a setting has no meaning"


def test_the_figure_of_the_modules_has_a_word_for_each():
    names = runpy.run_path(str(ROOT / "docs" / "scripts" / "modules.py"))
    assert set(names["imports"]()) == set(names["WHAT"])


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
        if not re.match(r"https?:", target):
            assert (page.parent / target).exists(), f"{name_of(page)} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_file_that_is_named_exists(page):
    """Benchmarks, results and modules between backticks; those of a run to come may be missing."""
    to_come = {"results/collocation-fast", "results/collocation-accurate"}
    text = page.read_text()
    for name in re.findall(r"(?:benchmarks|results|examples|docs)/[\w./-]*\w\b(?![-\w]*<)", text):
        where = page.parent if (page.parent / name).exists() else ROOT
        assert name in to_come or (where / name).exists(), f"{name_of(page)} names {name}"
    for name in re.findall(
        r"`((?:methods|training|run|problems|models|optim|losses)/\w+\.py)`", text
    ):
        assert (ROOT / "src" / "hyrespinn" / name).exists(), f"{name_of(page)} names {name}"
