"""Settings as people write them: assignments, kinds with their arguments, values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..errors import UserError

_OPEN, _CLOSED = "([{", ")]}"


class Written(NamedTuple):
    """A kind as it was written; ``settings`` is None where it stands alone."""

    kind: str
    settings: dict[str, str] | None


def parse_assignments(texts: Iterable[str]) -> dict[str, str]:
    """The changes that ``--set`` was given.

    >>> parse_assignments(["points.interior=512"])
    {'points.interior': '512'}
    """
    result = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise UserError(f"--set takes key=value, not {text!r}.")
        result[key.strip()] = value.strip()
    return result


def parse_kind(key: str, text: str) -> Written:
    """A kind alone, with its steps, or with any of its settings.

    >>> parse_kind("stages", "adam:500")
    Written(kind='adam', settings={'steps': '500'})
    >>> parse_kind("kernels", "moving(count=3, kernel=gaussian(order=2))")
    Written(kind='moving', settings={'count': '3', 'kernel': 'gaussian(order=2)'})
    """
    found = re.fullmatch(r"([^:(]*?)\s*(?::\s*(\d+)|\((.*)\))?", text.strip(), re.DOTALL)
    if found is None:
        raise UserError(
            f"{key} is written name, name:steps or name(setting=value, …), such as adam:1000 or "
            f"adam(steps=1000, rate=5e-3), not {text!r}."
        )
    kind, steps, inside = found.groups()
    if steps is not None:
        return Written(kind, {"steps": steps})
    if inside is None:
        return Written(kind, None)
    pairs = [part.partition("=") for part in split(key, inside)]
    for name, equals, value in pairs:
        if not equals:
            raise UserError(
                f"{key}: {kind}({inside}) takes settings as name=value, not {name + value!r}."
            )
    return Written(kind, {name.strip(): value.strip() for name, _, value in pairs})


def split(key: str, text: str) -> list[str]:
    """The parts between commas that are in no brackets, without those that are empty.

    >>> split("stages", "adam(steps=5, rate=0.1), lm:20,")
    ['adam(steps=5, rate=0.1)', 'lm:20']
    """
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in _OPEN) - (letter in _CLOSED)
        if depth < 0:
            break
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    if depth:
        raise UserError(f"The brackets of {key}={text} do not match.")
    return [part.strip() for part in parts if part.strip()]


def as_text(value: object) -> str:
    """A setting's value as ``--set`` reads it.

    >>> [as_text(value) for value in (None, True, 0.5, "tanh", (24, 40), ("a", "b"))]
    ['none', 'true', '0.5', 'tanh', '[24, 40]', 'a,b']
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        if value and all(isinstance(item, str) for item in value):
            return ",".join(map(str, value))
        return json.dumps(value, default=str)
    return str(value)


def flattened(table: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Nested tables with dotted keys; the ``kind`` of a table is the value of the table's key.

    >>> flattened({"seed": 1, "kernels": {"kind": "moving", "count": 3}})
    {'seed': 1, 'kernels': 'moving', 'kernels.count': 3}
    """
    result: dict[str, object] = {}
    for name, value in table.items():
        key = prefix if name == "kind" else joined(prefix, name)
        if isinstance(value, Mapping):
            result |= flattened(value, key)
        else:
            result[key] = value
    return result


def joined(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix and name else prefix or name
