"""Calling the functions that a person wrote, and telling what goes wrong in them."""

from __future__ import annotations

import inspect
import os
import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import UserError

PACKAGE = str(Path(__file__).parents[1])
OTHERS = tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})
"""Where the files are that are no person's own."""


def call(function: Callable[..., Any], arguments: tuple[Any, ...], expected: str) -> Any:
    """``function(*arguments)``; an exception becomes a message about that function.

    ``expected`` says how it is called, such as ``"u, v, p"``.
    """
    try:
        return function(*arguments)
    except UserError:
        raise
    except Exception as error:
        name = getattr(function, "__qualname__", repr(function))
        raise UserError(
            f"{name} raised {described(error, function)}. It is called as "
            f"{name.split('.')[-1]}({expected}) and works on whole arrays of points: use jax.numpy, "
            "and jnp.where instead of if."
        ) from error


def described(error: Exception, function: Callable[..., Any] | None = None) -> str:
    """An exception in one line: what it says first, and the line of a person's own file.

    Where none was reached, it is the first line of the function.
    """
    text = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0].rstrip(' .')}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _is_own(frame.filename)]
    if own:
        source = f": {own[-1].line}" if own[-1].line else ""
        return f"{text} ({_place(own[-1].filename, own[-1].lineno)}{source})"
    code = None if function is None else _code(function)
    if code is not None:
        return f"{text} ({_place(code[0], code[1])})"
    return f"{text} ({_place(frames[-1].filename, frames[-1].lineno)})" if frames else text


def _is_own(file: str) -> bool:
    is_package = file.startswith(PACKAGE + os.sep)
    return not (is_package or file.startswith(OTHERS) or "site-packages" in file)


def _code(function: Callable[..., Any]) -> tuple[str, int] | None:
    """The file and the first line of a function that is written in Python."""
    inner = inspect.unwrap(getattr(function, "__func__", function))
    code = getattr(inner, "__code__", None)
    return None if code is None else (code.co_filename, code.co_firstlineno)


def _place(file: str, line: int | None) -> str:
    """``FILE:LINE``, as editors read it; from here where that is shorter."""
    near = os.path.relpath(file) if os.path.isabs(file) else file
    return f"{near if len(near) < len(file) else file}:{line}"
