"""Objects as settings see them: the fields of a dataclass, and its kind."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Mapping
from dataclasses import MISSING
from functools import cache

from ..errors import UserError
from ..registry import registered_name


def fields_of(cls: type) -> list[dataclasses.Field]:
    assert dataclasses.is_dataclass(cls), f"{cls.__qualname__} is no dataclass"
    return [f for f in dataclasses.fields(cls) if f.init]


def doc_of(field: dataclasses.Field, cls: type) -> str:
    """What a field is: its own words, or those under ``Args:`` in the docstring of a class."""
    own = str(field.metadata.get("doc", ""))
    found = (_arguments(base).get(field.name, "") for base in cls.__mro__)
    return own or next((text for text in found if text), "")


@cache
def _arguments(cls: type) -> dict[str, str]:
    """The arguments that a class's docstring describes, in the style of Google."""
    _, _, section = inspect.cleandoc(vars(cls).get("__doc__") or "").partition("Args:\n")
    found: dict[str, list[str]] = {}
    for line in section.splitlines():
        start = re.match(r"    (\w+): (.*)", line)
        if start:
            found[start[1]] = [start[2]]
        elif line.startswith("     ") and found:
            found[list(found)[-1]].append(line.strip())
        elif line.strip():
            break
    return {name: " ".join(lines) for name, lines in found.items()}


def values_of(item: object) -> dict[str, object]:
    """The settings of an object and their values."""
    return {f.name: getattr(item, f.name) for f in fields_of(type(item))}


def explicit_kind(cls: type) -> str | None:
    """The kind that a class says, or its name in a registry."""
    said = (vars(base).get("kind") for base in cls.__mro__)
    return next((kind for kind in said if isinstance(kind, str)), None) or registered_name(cls)


def kind_of(cls: type) -> str:
    """A class's kind; without one its own name serves, in lower case with hyphens."""
    return explicit_kind(cls) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()


def default_of(field: dataclasses.Field) -> object:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default


def made(key: str, cls: type, values: Mapping[str, object]) -> object:
    try:
        return cls(**values)
    except UserError:
        raise
    # A person's class may refuse its values in its own way.
    except (TypeError, ValueError, ArithmeticError) as error:
        raise UserError(f"{key or kind_of(cls)} cannot be made: {error}.") from error
