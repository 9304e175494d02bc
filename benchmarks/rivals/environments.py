"""An environment of its own for every rival, made once with ``venv`` and plain ``pip``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def python_of(library: str) -> Path:
    """The interpreter that has a library; hyrespinn's is the one that runs this."""
    if library == "hyrespinn":
        return Path(sys.executable)
    folder = HERE / f".venv-{library}"
    python = folder / "bin" / "python"
    done = folder / "installed"
    wanted = (HERE / "requirements" / f"{library}.txt").read_text()
    if not done.exists() or done.read_text() != wanted:
        print(f"installing {library} into {folder.name}", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        names = wanted.split()
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *names], check=True)
        done.write_text(wanted)
    return python


def variables() -> dict[str, str]:
    """The variables of a worker: no compiled code from earlier ones, DeepXDE on PyTorch."""
    kept = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"}
    return {**kept, "JAX_ENABLE_COMPILATION_CACHE": "false", "DDE_BACKEND": "pytorch"}
