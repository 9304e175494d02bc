"""Compiled programs on disk, so that a second run of the same kind does not compile again."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import jax
from jax.experimental.compilation_cache import compilation_cache

from ..references.cache import folder

MOST_BYTES = 2 * 1024**3
"""What the programs may take on disk; beyond it those that were not used for longest go."""


@contextmanager
def kept_programs() -> Iterator[None]:
    """Inside, JAX keeps what it compiles in a folder of hyrespinn's cache.

    Whoever has set ``jax_compilation_cache_dir`` keeps that one. ``HYRESPINN_COMPILED=off`` turns
    it off. JAX's settings are put back at the end.
    """
    wanted = os.environ.get("HYRESPINN_COMPILED", "on") != "off"
    if jax.config.values["jax_compilation_cache_dir"] or not wanted:
        yield
        return
    place = folder() / "compiled" / _processor()
    try:
        place.mkdir(parents=True, exist_ok=True)
        _prune(place)
    except OSError:  # a folder that cannot be written is no reason to fail
        yield
        return
    least = jax.config.values["jax_persistent_cache_min_compile_time_secs"]
    _use(str(place), 0.0)
    try:
        yield
    finally:
        _use(None, least)


def _use(place: str | None, least_seconds: float) -> None:
    jax.config.update("jax_compilation_cache_dir", place)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", least_seconds)
    compilation_cache.reset_cache()  # else JAX stays with the folder it has seen first


def _processor() -> str:
    """A name for the kind of processor: code compiled for one may not run on another."""
    text = ""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        text = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return hashlib.sha256(f"{platform.machine()} {text}".encode()).hexdigest()[:12]


def _prune(place: Path) -> None:
    """Remove the oldest programs until the others fit."""
    found = sorted(
        ((p.stat().st_atime, p.stat().st_size, p) for p in place.iterdir()), reverse=True
    )
    total = 0
    for _, size, path in found:
        total += size
        if total > MOST_BYTES:
            path.unlink(missing_ok=True)
