"""Settings are the fields of frozen dataclasses, which may be nested; one parser for all of them.

A field's type hint says how its text is read. Objects of an open set of kinds belong to a
:class:`~hyrespinn.registry.Registry`, whose names are the kinds; the classes of a closed union, such
as ``Whole | Fixed``, say theirs with ``kind: ClassVar[str]``.

>>> from dataclasses import dataclass
>>> from typing import ClassVar
>>> @dataclass(frozen=True)
... class Whole:
...     kind: ClassVar[str] = "whole"
>>> @dataclass(frozen=True)
... class Fixed:
...     kind: ClassVar[str] = "fixed"
...     count: int = described("the number of windows", 4)
>>> @dataclass(frozen=True)
... class Run:
...     marching: Whole | Fixed = Whole()
...     seed: int = 0
>>> run = changed(Run(), {"marching.count": "8", "marching": "fixed"})
>>> run
Run(marching=Fixed(count=8), seed=0)
>>> flat(run)
{'marching': 'fixed', 'marching.count': 8, 'seed': 0}
>>> to_json(run)
{'marching': {'kind': 'fixed', 'count': 8}, 'seed': 0}
>>> from_json(Run, to_json(run)) == run
True
"""

import dataclasses
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar, cast, overload

from ..errors import UserError, unknown
from .forms import JSON, Entry
from .kinds import explicit_kind
from .objects import Object, form_of
from .text import as_text, flattened, parse_assignments

__all__ = [
    "JSON",
    "as_text",
    "changed",
    "described",
    "descriptions",
    "flat",
    "from_json",
    "from_toml",
    "parse_assignments",
    "to_json",
]

T = TypeVar("T")


def described(doc: str, default: T = dataclasses.MISSING, **metadata: object) -> T:  # type: ignore[assignment]
    """A field with its documentation, and perhaps a default and further metadata."""
    field: object = dataclasses.field(default=default, metadata={"doc": doc, **metadata})
    return cast(T, field)


def _entries(obj: object, prefix: str) -> list[Entry]:
    return list(Object(type(obj)).entries(prefix, obj, ""))


def flat(obj: object, prefix: str = "") -> dict[str, object]:
    """Every key that can be set, with its present value, depth first.

    The value of a key that holds an object is its kind, of a sequence the kinds with commas, and
    ``"none"`` where there is no object. :func:`as_text` writes values as they are read.
    """
    return {entry.key: entry.value for entry in _entries(obj, prefix)}


def descriptions(obj: object, prefix: str = "") -> dict[str, str]:
    """What each key of :func:`flat` is, where its field says so with :func:`described`."""
    return {entry.key: entry.doc for entry in _entries(obj, prefix)}


def changed(obj: T, changes: Mapping[str, object], prefix: str = "") -> T:
    """The object with some keys changed, whatever their order.

    Texts are read as the key's type; values of that type, and objects, are taken as they are. A key
    that is given its present kind keeps the other settings, another kind comes with its defaults.
    A sequence is replaced as a whole by ``adam:1000, lm(steps=40, damping=0.1)``.

    Args:
        changes: new values by dotted keys, as :func:`flat` lists them.
        prefix: what all keys begin with, such as ``"model"``.
    """
    own: dict[str, object] = {}
    for key, value in changes.items():
        if prefix and key != prefix and not key.startswith(f"{prefix}."):
            raise unknown("setting", key, flat(obj, prefix))
        own[key[len(prefix) :].removeprefix(".")] = value
    return cast(T, Object(type(obj)).change(prefix, obj, own))


def to_json(obj: object) -> dict[str, JSON]:
    """The object as plain data: tuples are lists, and objects that have a kind are tagged with it."""
    kind = explicit_kind(type(obj))
    tag: dict[str, JSON] = {} if kind is None else {"kind": kind}
    return tag | Object(type(obj)).dump("", obj)


@overload
def from_json(hint: type[T], data: object, what: str = ...) -> T: ...
@overload
def from_json(hint: object, data: object, what: str = ...) -> object: ...
def from_json(hint: object, data: object, what: str = "The configuration") -> object:
    """The object that :func:`to_json` wrote; data that it cannot have written is a UserError.

    Args:
        hint: the object's class, a base with a registry, or a union.
        what: what the data are, for the message, such as ``"The configuration runs/1/config.json"``.
    """
    try:
        return form_of(hint).load("", data)
    except UserError as error:
        raise UserError(f"{what} is damaged: {error}") from error


def from_toml(path: Path) -> dict[str, object]:
    """The changes in a TOML file, for :func:`changed`; a table's ``kind`` is the kind of its key."""
    try:
        return flattened(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise UserError(f"Cannot read the settings in {path}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not a TOML file of settings: {error}.") from error
