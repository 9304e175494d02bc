"""Shared settings of the tests: shapes and types are checked."""

from __future__ import annotations

import os
from pathlib import Path

# Programs compiled by one test are reused by others and by the processes they start.
ROOT = Path(__file__).parents[1]
CACHE = ROOT / ".pytest_cache" / "compiled"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")
# Most of the time of the tests is compilation: less effort there, at the price of slower code.
FLAGS = " ".join(
    (
        "--xla_backend_optimization_level=0",
        "--xla_llvm_disable_expensive_passes=true",
        "--xla_cpu_use_fusion_emitters=false",
        "--xla_cpu_parallel_codegen_split_count=1",
    )
)
os.environ.setdefault("XLA_FLAGS", FLAGS)
# References are made once and shared likewise; a person's own cache is not touched.
os.environ["HYRESPINN_CACHE"] = str(CACHE.with_name("references"))

import jax
import matplotlib
import pytest
from jaxtyping import install_import_hook

matplotlib.use("Agg")


def checked() -> list[str]:
    """The modules whose calls are checked: those with annotated shapes. All of them take a fifth of
    the time of the tests more, and `make test-all` spends it."""
    if os.environ.get("HYRESPINN_CHECK_ALL"):
        return ["hyrespinn"]
    source = ROOT / "src"
    shaped = (p for p in source.rglob("*.py") if "from jaxtyping import" in p.read_text())
    return [".".join(p.relative_to(source).with_suffix("").parts) for p in shaped]


install_import_hook(checked(), "typechecker.check")


@pytest.fixture
def unhurried(monkeypatch):
    """A tiny limit on the time of training is none on that of compilation, however slow it is."""
    monkeypatch.setattr("hyrespinn.training.limits.LEAST", 600.0)


@pytest.fixture
def x64():
    """Double precision for one test; the package itself sets nothing globally."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(autouse=True, scope="module")
def registries():
    """What the tests of one file register beside the package's own, those of others do not meet."""
    yield
    from hyrespinn.registry import _REGISTRIES

    for registry in _REGISTRIES.values():
        for name, cls in list(registry.items()):
            if cls.__module__.partition(".")[0] != "hyrespinn":
                del registry._classes[name]
