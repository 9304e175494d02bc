"""How the values of one type hint are read from text, shown, and written as JSON: plain values."""

from __future__ import annotations

import json
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass
from typing import ClassVar, NamedTuple, TypeAlias

from ..errors import UserError, unknown
from .text import joined, split

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"
Changes: TypeAlias = Mapping[str, object]
"""New values by their dotted keys; the empty key is the value itself."""


class Entry(NamedTuple):
    """One key that can be set: its present value, and what it is."""

    key: str
    value: object
    doc: str


class Form(ABC):
    """What a type hint admits. A plain value is changed as a whole."""

    nothing: ClassVar[object] = None  # how None is shown

    @property
    @abstractmethod
    def expected(self) -> str:
        """What a value must be, in words."""

    @abstractmethod
    def read(self, key: str, value: object) -> object:
        """The value that a text or a Python value stands for."""

    def load(self, key: str, data: object) -> object:
        """The value that :meth:`dump` wrote."""
        return self.read(key, data)

    def dump(self, key: str, value: object) -> JSON:
        return _plain(key, self.read(key, value))

    def entries(self, key: str, value: object, doc: str) -> Iterator[Entry]:
        """All keys at and below this one."""
        yield Entry(key, value, doc)

    def change(self, key: str, value: object, changes: Changes) -> object:
        """The value with some of it changed; ``value`` may be MISSING."""
        for name in changes:
            if name:
                raise unknown("setting", joined(key, name), [key])
        return self.read(key, changes[""])

    def refused(self, key: str, value: object) -> UserError:
        return UserError(f"{key} must be {self.expected}, not {short(value)}.")


def short(value: object) -> str:
    """A value in a message, of which there may be a lot."""
    return repr(value) if isinstance(value, str) and len(value) < 80 else reprlib.repr(value)


@dataclass(frozen=True)
class Number(Form):
    kind: type[int] | type[float]

    @property
    def expected(self) -> str:
        return "a whole number" if self.kind is int else "a number"

    def read(self, key: str, value: object) -> int | float:
        if self.kind is int and isinstance(value, int) and not isinstance(value, bool):
            return value  # exact, however large
        number = self._float(key, value)
        if number != number or abs(number) == float("inf"):
            raise UserError(f"{key} must be finite, not {short(value)}.")
        if self.kind is float:
            return number
        if number != int(number):
            raise self.refused(key, value)
        return int(value) if isinstance(value, str) and value.strip().isdigit() else int(number)

    def _float(self, key: str, value: object) -> float:
        if isinstance(value, bool):
            raise self.refused(key, value)
        try:
            return float(value)  # type: ignore[arg-type]  # numbers of other libraries too
        except (TypeError, ValueError, OverflowError):
            raise self.refused(key, value) from None

    def load(self, key: str, data: object) -> int | float:
        if not isinstance(data, int | float):
            raise self.refused(key, data)
        return self.read(key, data)


class Flag(Form):
    expected = "true or false"
    WORDS: ClassVar = {
        "true": True,
        "false": False,
        "1": True,
        "0": False,
        "yes": True,
        "no": False,
    }

    def read(self, key: str, value: object) -> bool:
        word = str(value).lower()
        if not isinstance(value, bool | int | str) or word not in self.WORDS:
            raise self.refused(key, value)
        return self.WORDS[word]

    def load(self, key: str, data: object) -> bool:
        if not isinstance(data, bool):
            raise self.refused(key, data)
        return data


class Text(Form):
    expected = "a text"

    def read(self, key: str, value: object) -> str:
        if not isinstance(value, str | int | float):
            raise self.refused(key, value)
        return str(value)

    def load(self, key: str, data: object) -> str:
        if not isinstance(data, str):
            raise self.refused(key, data)
        return data


@dataclass(frozen=True)
class Choice(Form):
    choices: tuple[object, ...]

    @property
    def expected(self) -> str:
        return f"one of {', '.join(map(str, self.choices))}"

    def read(self, key: str, value: object) -> object:
        for choice in self.choices:
            same = type(choice) is type(value) and choice == value
            if same or (isinstance(value, str) and str(choice) == value):
                return choice
        raise self.refused(key, value)

    def load(self, key: str, data: object) -> object:
        if not any(type(choice) is type(data) and choice == data for choice in self.choices):
            raise self.refused(key, data)
        return data


@dataclass(frozen=True)
class Optional(Form):
    form: Form

    @property
    def expected(self) -> str:
        return f"{self.form.expected} or none"

    def read(self, key: str, value: object) -> object:
        return None if is_none(value) else self.form.read(key, value)

    def load(self, key: str, data: object) -> object:
        return None if data is None else self.form.load(key, data)

    def dump(self, key: str, value: object) -> JSON:
        return None if value is None else self.form.dump(key, value)

    def entries(self, key: str, value: object, doc: str) -> Iterator[Entry]:
        if value is None:
            yield Entry(key, self.form.nothing, doc)
        else:
            yield from self.form.entries(key, value, doc)

    def change(self, key: str, value: object, changes: Changes) -> object:
        if is_none(changes.get("", MISSING)):
            for name in changes:
                if name:
                    raise unknown("setting", joined(key, name), [key])
            return None
        return self.form.change(key, MISSING if value is None else value, changes)


def is_none(value: object) -> bool:
    return value is None or (isinstance(value, str) and value.strip().lower() == "none")


@dataclass(frozen=True)
class Either(Form):
    """The first of several forms that a value has."""

    forms: tuple[Form, ...]

    @property
    def expected(self) -> str:
        return " or ".join(form.expected for form in self.forms)

    def read(self, key: str, value: object) -> object:
        return self._first(key, value, (form.read for form in self.forms))

    def load(self, key: str, data: object) -> object:
        return self._first(key, data, (form.load for form in self.forms))

    def _first(
        self, key: str, value: object, readers: Iterable[Callable[[str, object], object]]
    ) -> object:
        for reader in readers:
            try:
                return reader(key, value)
            except UserError:
                continue
        raise self.refused(key, value)


@dataclass(frozen=True)
class Several(Form):
    """A tuple or list of any length; one number alone is a list of one."""

    item: Form
    make: type[tuple] | type[list] = tuple

    @property
    def expected(self) -> str:
        return "a list"

    def read(self, key: str, value: object) -> object:
        if isinstance(value, str):
            value = _listed(key, value) if self._of_numbers else split(key, value)
        several = value if isinstance(value, list | tuple) else [value]
        return self.make(self.item.read(key, item) for item in several)

    @property
    def _of_numbers(self) -> bool:
        return isinstance(self.item, Number | Several | Fixed)

    def load(self, key: str, data: object) -> object:
        if not isinstance(data, list):
            raise self.refused(key, data)
        return self.make(self.item.load(key, item) for item in data)


@dataclass(frozen=True)
class Fixed(Form):
    """A tuple of so many items, such as a pair of bounds."""

    items: tuple[Form, ...]

    @property
    def expected(self) -> str:
        return f"a list of {len(self.items)}"

    def read(self, key: str, value: object) -> object:
        value = _listed(key, value) if isinstance(value, str) else value
        if not isinstance(value, list | tuple) or len(value) != len(self.items):
            raise self.refused(key, value)
        return tuple(form.read(key, item) for form, item in zip(self.items, value, strict=True))

    def load(self, key: str, data: object) -> object:
        if not isinstance(data, list) or len(data) != len(self.items):
            raise self.refused(key, data)
        return tuple(form.load(key, item) for form, item in zip(self.items, data, strict=True))


class Free(Form):
    """Whatever is set in Python; as text, numbers and lists of them. Lists in JSON are tuples."""

    expected = "plain data"

    def read(self, key: str, value: object) -> object:
        return _listed(key, value) if isinstance(value, str) else value

    def load(self, key: str, data: object) -> object:
        return tuple(self.load(key, item) for item in data) if isinstance(data, list) else data

    def dump(self, key: str, value: object) -> JSON:
        return _plain(key, value)


def _listed(key: str, text: str) -> object:
    """A number, a list or a matrix, such as ``[[1, 0.5], [0.5, 2]]``; ``1, 2`` is a list too."""
    for attempt in (text, f"[{text}]") if text.strip() else ():
        try:
            return json.loads(attempt)
        except (json.JSONDecodeError, RecursionError):
            continue
    raise UserError(
        f"{key} as text must be a number or a list of numbers, such as 2 or [[1, 0], [0, 2]], "
        f"not {short(text)}; anything else is set in Python."
    )


def _plain(key: str, value: object) -> JSON:
    """A value as JSON has it: tuples become lists."""
    if isinstance(value, list | tuple):
        return [_plain(key, item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): _plain(key, item) for name, item in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise UserError(f"{key} cannot be written as JSON: {short(value)} is not plain data.")
