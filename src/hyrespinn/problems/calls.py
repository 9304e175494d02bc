"""Calling the functions that a person wrote, and telling what goes wrong in them."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import UserError


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
            f"{name} raised {type(error).__name__}: {error} ({_where(function, error)}). It is called "
            f"as {name.split('.')[-1]}({expected}) and works on whole arrays of points: use "
            "jax.numpy, and jnp.where instead of if."
        ) from error


def _where(function: Callable[..., Any], error: Exception) -> str:
    """The last line of the function's own file that was reached, else the function itself."""
    inner = inspect.unwrap(getattr(function, "__func__", function))
    code = getattr(inner, "__code__", None)
    frames = traceback.extract_tb(error.__traceback__)
    if code is None:
        return f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}"
    own = [frame.lineno for frame in frames if frame.filename == code.co_filename]
    line = own[-1] if own else code.co_firstlineno
    return f"{Path(code.co_filename).name}, line {line}"
