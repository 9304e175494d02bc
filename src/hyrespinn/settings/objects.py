"""How objects are read, shown and written: frozen dataclasses, alone, by kind, in sequences."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass
from typing import ClassVar

from ..errors import UserError, unknown
from ..registry import registry_of
from .forms import (
    JSON,
    Changes,
    Choice,
    Either,
    Entry,
    Fixed,
    Flag,
    Form,
    Free,
    Number,
    Optional,
    Several,
    Text,
    short,
)  # fmt: skip
from .kinds import default_of, doc_of, explicit_kind, fields_of, kind_of, made, values_of
from .text import Written, flattened, joined, parse_kind, split

PLAIN: dict[object, Form] = {int: Number(int), float: Number(float), bool: Flag(), str: Text()}


def form_of(hint: object) -> Form:
    """What a type hint admits."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return Choice(arguments)
    if origin in (typing.Union, types.UnionType):
        return _union(arguments)
    if origin is tuple and arguments:
        return _tuple(arguments)
    if origin is list:
        return Several(form_of(arguments[0]), list)
    if isinstance(hint, type) and hint in PLAIN:
        return PLAIN[hint]
    cls = _class_of_objects(hint)
    if cls is None:
        return Free()
    return Object(cls) if registry_of(cls) is None else OneOf((cls,))


def _union(members: tuple[object, ...]) -> Form:
    some = tuple(member for member in members if member is not types.NoneType)
    classes = tuple(cls for cls in map(_class_of_objects, some) if cls is not None)
    form: Form
    if len(classes) == len(some):
        form = OneOf(classes)
    elif classes:  # objects or plain values: set in Python
        form = Free()
    else:
        form = form_of(some[0]) if len(some) == 1 else Either(tuple(map(form_of, some)))
    return Optional(form) if len(some) < len(members) else form


def _tuple(arguments: tuple[object, ...]) -> Form:
    if len(arguments) != 2 or arguments[1] is not Ellipsis:
        return Fixed(tuple(map(form_of, arguments)))
    item = form_of(arguments[0])
    if isinstance(item, Object):
        item = OneOf((item.cls,))
    return Items(item) if isinstance(item, OneOf) else Several(item)


def _class_of_objects(hint: object) -> type | None:
    cls = typing.get_origin(hint) or hint
    if isinstance(cls, type) and (registry_of(cls) is not None or dataclasses.is_dataclass(cls)):
        return cls
    return None


def forms_of(cls: type) -> dict[str, Form]:
    """The settings of a class, in their order."""
    try:
        hints = typing.get_type_hints(cls)
    except NameError as error:
        raise UserError(
            f"The type hints of {cls.__qualname__} cannot be read ({error}); define the classes that "
            "they name at the top of the module."
        ) from error
    return {f.name: form_of(hints[f.name]) for f in fields_of(cls)}


@dataclass(frozen=True)
class Object(Form):
    """An object of one class."""

    cls: type
    nothing: ClassVar[object] = "none"

    @property
    def expected(self) -> str:
        return f"a {kind_of(self.cls)}, or be set by its own keys"

    def read(self, key: str, value: object) -> object:
        return self.change(key, MISSING, {"": value})

    def change(self, key: str, value: object, changes: Changes) -> object:
        changes = _opened(changes)
        new = changes.get("", MISSING)
        if isinstance(new, self.cls):
            value = new
        elif new is not MISSING and new != kind_of(self.cls):
            raise self.refused(key, new)
        present = {} if value is MISSING else values_of(value)
        cls = self.cls if value is MISSING else type(value)
        changes = {name: change for name, change in changes.items() if name}
        if not changes and value is not MISSING:
            return value
        return assembled(key, cls, present, changes)

    def load(self, key: str, data: object) -> object:
        where = key or "the content"
        if not isinstance(data, dict):
            raise UserError(f"{where} must be a table of settings, not {short(data)}.")
        kind = explicit_kind(self.cls)
        if kind is not None and "kind" in data and data["kind"] != kind:
            raise UserError(f"the kind of {where} must be {kind!r}, not {short(data['kind'])}.")
        tagged = {"kind"} if kind is not None else set()
        forms = forms_of(self.cls)
        for name in data.keys() - tagged - forms.keys():
            raise unknown("setting", joined(key, str(name)), [joined(key, f) for f in forms])
        for name in forms:
            if name not in data:
                raise UserError(f"{joined(key, name)} is missing.")
        return made(
            key, self.cls, {n: form.load(joined(key, n), data[n]) for n, form in forms.items()}
        )

    def dump(self, key: str, value: object) -> dict[str, JSON]:
        forms = forms_of(type(value))
        return {n: forms[n].dump(joined(key, n), v) for n, v in values_of(value).items()}

    def entries(self, key: str, value: object, doc: str) -> Iterator[Entry]:
        if not isinstance(value, self.cls):  # a parameter that is not what its hint says
            yield Entry(key, value, doc)
            return
        forms, values = forms_of(type(value)), values_of(value)
        for field in fields_of(type(value)):
            name, doc = field.name, doc_of(field, type(value))
            yield from forms[name].entries(joined(key, name), values[name], doc)


@dataclass(frozen=True)
class OneOf(Form):
    """An object of one of several kinds: those of a registry, of a closed union, or of both."""

    members: tuple[type, ...]
    nothing: ClassVar[object] = "none"

    @property
    def kinds(self) -> dict[str, type]:
        found: dict[str, type] = {}
        for member in self.members:
            registry = registry_of(member)
            new = {kind_of(member): member} if registry is None else dict(registry)
            if taken := new.keys() & found.keys():
                raise TypeError(f"two classes of {self.members} have the kind {min(taken)!r}")
            found |= new
        return found

    @property
    def expected(self) -> str:
        return f"one of {', '.join(self.kinds)}"

    def _what(self, key: str) -> str:
        """The word for one of them at a key: ``optimiser in stages``, ``points.sampler``."""
        registries = (registry_of(member) for member in self.members)
        word = next((r.what for r in registries if r is not None), "")
        if not word or key.rpartition(".")[2] == word:
            return key or "kind"
        return f"{word} in {key}" if key else word

    def kind(self, value: object) -> str:
        """The kind of an object; one that none of the classes made has no kind here."""
        for name, cls in self.kinds.items():
            if type(value) is cls:
                return name
        for member in self.members:
            registry = registry_of(member)
            if registry is not None and isinstance(value, member):
                return registry.name_of(value)  # says how a class gets a name
        raise self.refused("The kind", value)

    def read(self, key: str, value: object) -> object:
        return self.change(key, MISSING, {"": value})

    def change(self, key: str, value: object, changes: Changes) -> object:
        changes = _opened(changes)
        value, cls, written = self._chosen(key, value, changes.get("", MISSING))
        changes = written | {name: change for name, change in changes.items() if name}
        if not changes and value is not MISSING:
            return value
        self._refuse_others(key, cls, changes)
        return assembled(key, cls, {} if value is MISSING else values_of(value), changes)

    def _chosen(
        self, key: str, value: object, new: object
    ) -> tuple[object, type, dict[str, object]]:
        """The object to start from, or MISSING for the defaults; its class; settings with it."""
        if new is MISSING and value is MISSING:
            kinds = ", ".join(self.kinds)
            raise UserError(
                f"{key} is none and has no settings yet; set {key} too, to one of {kinds}."
            )
        if new is MISSING:
            return value, type(value), {}
        if type(new) in self.kinds.values():
            return new, type(new), {}
        if not isinstance(new, str):
            raise self.refused(key, new)
        written = parse_kind(key, new)
        cls = self._class(key, written.kind)
        if written.settings is None and type(value) is cls:
            return value, cls, {}
        return MISSING, cls, dict(written.settings or {})

    def _class(self, key: str, kind: str) -> type:
        if kind not in self.kinds:
            raise unknown(self._what(key), kind, self.kinds)
        return self.kinds[kind]

    def _refuse_others(self, key: str, cls: type, changes: Changes) -> None:
        """Settings of other kinds, with the kind to choose for them."""
        own = forms_of(cls)
        for full in changes:
            name = full.partition(".")[0]
            others = [k for k, other in self.kinds.items() if name in forms_of(other)]
            if name not in own and others:
                here = next((k for k, c in self.kinds.items() if c is cls), kind_of(cls))
                error = unknown(
                    "setting", joined(key, full), [joined(key, n) for n in own] or [key]
                )
                raise UserError(
                    f"{error} It is one of {key}={others[0]}, and {key} is {here}; set {key} too."
                )

    def load(self, key: str, data: object) -> object:
        where = key or "the content"
        if not isinstance(data, dict) or not isinstance(data.get("kind"), str):
            raise UserError(
                f"{where} must be a table of settings with its kind, not {short(data)}."
            )
        cls = self._class(f"kind of {where}", data["kind"])
        return Object(cls).load(key, {n: item for n, item in data.items() if n != "kind"})

    def dump(self, key: str, value: object) -> dict[str, JSON]:
        return {"kind": self.kind(value), **Object(type(value)).dump(key, value)}

    def entries(self, key: str, value: object, doc: str) -> Iterator[Entry]:
        yield Entry(key, self.kind(value), doc)
        yield from Object(type(value)).entries(key, value, doc)


@dataclass(frozen=True)
class Items(Form):
    """A sequence of objects, each addressed by its kind, a second of the kind as ``kind-2``."""

    item: OneOf
    nothing: ClassVar[object] = "none"

    @property
    def expected(self) -> str:
        return f"a sequence of {', '.join(self.item.kinds)}"

    def addressed(self, items: Sequence[object]) -> dict[str, object]:
        found: dict[str, object] = {}
        for item in items:
            kind, number = self.item.kind(item), 1
            address = kind
            while address in found:
                number += 1
                address = f"{kind}-{number}"
            found[address] = item
        return found

    def read(self, key: str, value: object) -> object:
        return self.change(key, MISSING, {"": value})

    def change(self, key: str, value: object, changes: Changes) -> object:
        present = value if isinstance(value, tuple) else ()
        if "" in changes:
            present = self._replaced(key, present, changes[""])
        items = self.addressed(present)
        for address, own in _by_name(changes).items():
            if address not in items:
                known = [e.key for e in self.entries(key, present, "")]
                raise unknown("setting", joined(key, joined(address, next(iter(own)))), known)
            items[address] = self.item.change(joined(key, address), items[address], own)
        return tuple(items.values())

    def _replaced(self, key: str, present: tuple[object, ...], new: object) -> tuple[object, ...]:
        """The new sequence; the present kinds alone keep their settings."""
        if isinstance(new, str):
            parts = split(key, new)
            if [parse_kind(key, part) for part in parts] == [
                Written(self.item.kind(item), None) for item in present
            ]:
                return present
            return tuple(self.item.read(key, part) for part in parts)
        several = new if isinstance(new, list | tuple) else [new]
        return tuple(self.item.read(key, item) for item in several)

    def load(self, key: str, data: object) -> object:
        if not isinstance(data, list):
            raise UserError(f"{key} must be a list of tables, not {short(data)}.")
        return tuple(self.item.load(f"{key}[{i}]", item) for i, item in enumerate(data))

    def dump(self, key: str, value: object) -> JSON:
        return [self.item.dump(key, item) for item in _tuple_of(value)]

    def entries(self, key: str, value: object, doc: str) -> Iterator[Entry]:
        items = self.addressed(_tuple_of(value))
        yield Entry(key, ",".join(self.item.kind(item) for item in items.values()), doc)
        for address, item in items.items():
            yield from Object(type(item)).entries(joined(key, address), item, "")


def _tuple_of(value: object) -> tuple[object, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def assembled(key: str, cls: type, present: Mapping[str, object], changes: Changes) -> object:
    """An object of the class with these values, or its defaults, and the changes."""
    forms, values = forms_of(cls), dict(present)
    defaults = {f.name: default_of(f) for f in fields_of(cls)}
    for name, own in _by_name(changes).items():
        if name not in forms:
            full = joined(key, joined(name, next(iter(own))))
            raise unknown("setting", full, _known(key, forms, defaults | values) or [key])
        old = values.get(name, defaults[name])
        values[name] = forms[name].change(joined(key, name), old, own)
    missing = [n for n, default in defaults.items() if default is MISSING and n not in values]
    if missing:
        keys = ", ".join(joined(key, name) for name in missing)
        raise UserError(f"{key or kind_of(cls)} of the kind {kind_of(cls)} needs {keys} too.")
    return made(key, cls, values)


def _known(key: str, forms: Mapping[str, Form], values: Mapping[str, object]) -> list[str]:
    """The keys of an object that need not exist yet."""
    keys: list[str] = []
    for name, form in forms.items():
        here = joined(key, name)
        missing = values[name] is MISSING
        keys += [here] if missing else [e.key for e in form.entries(here, values[name], "")]
    return keys


def _opened(changes: Changes) -> Changes:
    """The changes where a table among them has become the keys of its entries."""
    own = changes.get("")
    if not isinstance(own, Mapping):
        return changes
    return flattened(own) | {name: value for name, value in changes.items() if name}


def _by_name(changes: Changes) -> dict[str, dict[str, object]]:
    """The changes below a key, by the first part of their names."""
    groups: dict[str, dict[str, object]] = {}
    for full, value in changes.items():
        if full:
            name, _, rest = full.partition(".")
            groups.setdefault(name, {})[rest] = value
    return groups
