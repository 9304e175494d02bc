"""One registry for everything that a person may add by name: problems, kernels, optimisers, …

A base class opts in by having a :class:`Registry`; :func:`register` finds it by the class's bases:

>>> class Kernel: ...
>>> KERNELS = Registry("kernel", Kernel)
>>> @register("triangle")
... class Triangle(Kernel): ...
>>> KERNELS["triangle"] is Triangle
True
>>> KERNELS.name_of(Triangle())
'triangle'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar, overload

from .errors import UserError, unknown

T = TypeVar("T")
D = TypeVar("D")
C = TypeVar("C", bound=type)

_REGISTRIES: dict[type, Registry] = {}
_PACKAGE = __name__.partition(".")[0]


class Registry(Mapping[str, type[T]]):
    """The classes derived from one base, by name, in the order of their registration.

    ``what`` is the word for one of them in messages, such as ``"kernel"``.
    """

    def __init__(self, what: str, base: type[T]) -> None:
        self.what = what
        self.base = base
        self._classes: dict[str, type[T]] = {}
        _REGISTRIES[base] = self

    def __getitem__(self, name: str) -> type[T]:
        if name not in self._classes:
            raise unknown(self.what, name, self._classes)
        return self._classes[name]

    # The mixins of Mapping expect a KeyError of __getitem__, and people a message.
    def __contains__(self, name: object) -> bool:
        return name in self._classes

    @overload
    def get(self, name: str, /) -> type[T] | None: ...
    @overload
    def get(self, name: str, /, default: type[T] | D) -> type[T] | D: ...
    def get(self, name: str, /, default: object = None) -> object:
        return self._classes.get(name, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)

    def __repr__(self) -> str:
        return f"Registry({self.what!r}: {', '.join(self)})"

    def register(self, name: str, cls: object) -> None:
        """Make a class known by a name; one that is loaded again takes its old place."""
        if not (isinstance(cls, type) and issubclass(cls, self.base)):
            raise UserError(f"A {self.what} is a class derived from {_path(self.base)}, not {cls}.")
        if not re.fullmatch(r"\w[\w-]*", name) or name == "none":
            raise UserError(
                f"{name!r} cannot be the name of a {self.what}; use letters, digits and hyphens, "
                "such as 'my-own'."
            )
        taken = self._classes.get(name)
        if taken is not None and not _loaded_again(taken, cls):
            raise UserError(
                f"The {self.what} name {name!r} is taken by {_path(taken)}; choose another one."
            )
        self._classes[name] = cls

    def name_of(self, item: type[T] | T) -> str:
        """The name of a class, or of an object's class."""
        cls = item if isinstance(item, type) else type(item)
        for name, registered in self._classes.items():
            if registered is cls:
                return name
        raise UserError(
            f'{_path(cls)} has no name as a {self.what}; write @register("name") above the class.'
        )


def _path(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _loaded_again(old: type, new: type) -> bool:
    """Whether two classes come from the same lines of code.

    A person's file may be loaded under two names of modules, the package's own may not.
    """
    if old.__module__.partition(".")[0] == _PACKAGE:
        return _path(old) == _path(new)
    return old.__qualname__ == new.__qualname__


def register(name: str) -> Callable[[C], C]:
    """Make a class known by name: to settings, the command line and the benchmark.

    One decorator serves all kinds; the base of the class says which of them it is.
    """

    def decorate(cls: C) -> C:
        registry_for(cls).register(name, cls)
        return cls

    return decorate


def registry_of(base: object) -> Registry | None:
    """The registry whose base this is, if there is one."""
    return _REGISTRIES.get(base) if isinstance(base, type) else None


def registry_for(cls: type[T]) -> Registry[T]:
    """The registry that a class belongs to, by the nearest of its bases."""
    found = (registry_of(base) for base in cls.__mro__)
    registry = next((r for r in found if r is not None), None)
    if registry is None:
        bases = ", ".join(sorted(_path(base) for base in _REGISTRIES))
        raise UserError(
            f"{_path(cls)} cannot be registered; derive it from one of the bases: {bases}."
        )
    return registry


def registered_name(cls: type) -> str | None:
    """The name under which a class is known, if it is."""
    registries = (registry_of(base) for base in cls.__mro__)
    found = (n for r in registries if r is not None for n, known in r.items() if known is cls)
    return next(found, None)
