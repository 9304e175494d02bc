"""What a result depends on besides its configuration: versions, machine, commit."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("hyrespinn", "jax", "jaxlib", "equinox", "optax", "numpy", "scipy", "matplotlib")


def environment(precision: str, seed: int) -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": sys.version.split()[0],
        "packages": {name: _version(name) for name in PACKAGES},
        "commit": _commit(),
        "machine": {
            "system": platform.platform(),
            "processor": _processor(),
            "cores": len(cores()),
        },
        "precision": precision,
        "seed": seed,
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit of the source tree, with ``+`` where it has changes; none for an installed copy."""
    try:
        if not (Path(_git("rev-parse", "--show-toplevel")) / "src" / "hyrespinn").is_dir():
            return None  # installed inside somebody else's repository
        changed = _git("status", "--porcelain", "-uno")
        return _git("rev-parse", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def cores() -> list[int]:
    """The cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return sorted(affinity(0)) if affinity else list(range(os.cpu_count() or 1))


def _git(*arguments: str) -> str:
    folder = Path(__file__).parent
    run = subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return run.stdout.strip()


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
