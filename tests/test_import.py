"""What is imported when: names on first use, and nothing heavy for texts of help."""

from __future__ import annotations

import subprocess
import sys

import hyrespinn as hp
import pytest
from hyrespinn import cli
from hyrespinn.bench.plan import COMPARED
from hyrespinn.methods import METHODS

HEAVY = ("jax", "scipy", "matplotlib", "equinox", "optax")


def loaded_by(code: str) -> set[str]:
    program = f"import sys\n{code}\nprint(*[n for n in {HEAVY!r} if n in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(found.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "code",
    [
        "import hyrespinn",
        "import hyrespinn as hp; hp.__version__, hp.UserError, hp.register",
        "from hyrespinn.cli import build_parser; build_parser().format_help()",
    ],
)
def test_nothing_heavy_is_imported_before_it_is_used(code):
    assert not loaded_by(code)


def test_solving_imports_what_it_needs_alone():
    assert loaded_by("import hyrespinn as hp; hp.solve") == {"jax", "equinox", "scipy"}
    submodules = "import hyrespinn as hp; hp.solve; assert 'scipy.stats' not in sys.modules"
    assert "matplotlib" not in loaded_by(submodules)


def test_every_public_name_is_there():
    assert set(hp.__all__) == {*hp._HOMES, *hp._MODULES} - {"__version__"}
    for name in hp.__all__:
        assert getattr(hp, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = hp.nothing
    assert set(hp.__all__) < set(dir(hp))


def test_the_names_in_the_help_are_those_of_the_registries():
    own = {name for name, cls in METHODS.items() if cls.__module__.startswith("hyrespinn.methods")}
    assert set(cli.METHODS) == {"auto", *own}
    assert cli.COMPARED == COMPARED
