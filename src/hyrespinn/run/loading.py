"""A problem by name, or from a person's own file."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from ..errors import UserError
from ..problems.calls import described
from ..problems.problem import Problem, problem_named


def load_problem(text: str) -> Problem:
    """The problem of a registered name, or of ``FILE.py:CLASS``."""
    path, colon, name = text.rpartition(":")
    if not colon and text.endswith(".py"):
        raise UserError(f"Say which class of {text} to solve, as {text}:CLASS.")
    if not colon or not path.endswith(".py"):
        return problem_named(text)()
    cls = getattr(load_file(Path(path)), name, None)
    if not (isinstance(cls, type) and issubclass(cls, Problem)):
        raise UserError(f"{path} has no Problem class named {name!r}.")
    try:
        return cls()
    except TypeError as error:
        raise UserError(f"{name} cannot be made without arguments: {error}.") from error


def load_file(path: Path) -> ModuleType:
    """Run a person's own file; what it registers is known from then on."""
    if not path.is_file():
        raise UserError(f"There is no file {path}.")
    module_name = f"hyrespinn_user_{path.stem}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{path} cannot be loaded: {described(error)}.") from error
    return module
