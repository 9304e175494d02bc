"""The compiled programs of a training, made in the background before they are needed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import jax

from .records import Clock
from .waiting import Wait, directly, worker

Shapes = tuple[Any, ...]


class Function(NamedTuple):
    """What is to be compiled; the arguments in ``donate`` are used up by a call."""

    call: Callable[..., Any]
    donate: tuple[int, ...] = ()


class Programs:
    """Every program is compiled once, by its name; waiting for it counts as compilation.

    ``ahead`` compiles some of them in the background, one after the other and beside those of other
    calls: while the first stage is trained, the programs of the next become ready.

    Args:
        clock: Measures compilation and training.
        wait: Waits for programs to be compiled, and to end.
    """

    def __init__(self, clock: Clock, wait: Wait = directly):
        self.clock, self.wait = clock, wait
        self._codes: dict[Hashable, Any] = {}
        self._early: dict[Hashable, Future[tuple[Shapes, Any]]] = {}
        self._calls: dict[Hashable, Callable[..., Any]] = {}
        self._workers: list[ThreadPoolExecutor] = []

    def ahead(self, several: Sequence[tuple[Hashable, Function, Callable[[], Shapes]]]) -> None:
        """Compile these, one after the other, for arguments of the shapes that are worked out."""
        # The precision is a setting of each thread.
        precise = bool(jax.config.values["jax_enable_x64"])

        def compiled(function: Function, shapes: Callable[[], Shapes]) -> tuple[Shapes, Any]:
            with jax.enable_x64(precise):
                arguments = shapes()
                return arguments, _compile(function, arguments)

        behind = worker()
        self._workers.append(behind)
        for name, function, shapes in several:
            self._early[name] = behind.submit(compiled, function, shapes)

    def get(self, name: Hashable, function: Function) -> Callable[..., Any]:
        """The program of this name, ready to be called."""
        if name not in self._calls:
            self._calls[name] = self._program(name, function)
        return self._calls[name]

    def _program(self, name: Hashable, function: Function) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            code = self.compiled(name, function, arguments)
            with self.clock.measure("training"):
                return self.wait(lambda: jax.block_until_ready(code(*arguments)))

        return call

    def is_compiled(self, name: Hashable) -> bool:
        """Whether nobody has to wait for this program."""
        return name in self._codes or (name in self._early and self._early[name].done())

    def compiled(self, name: Hashable, function: Function, arguments: Shapes) -> Any:
        """The code of a program, waited for or made where it is not there yet."""
        if name not in self._codes:
            with self.clock.measure("compilation"):
                self._codes[name] = self.wait(lambda: self._code(name, function, arguments))
        return self._codes[name]

    def _code(self, name: Hashable, function: Function, arguments: Shapes) -> Any:
        if name in self._early and not self._early[name].cancelled():
            expected, code = self._early[name].result()
            if _described(expected) == _described(arguments):
                return code
        return _compile(function, arguments)

    def close(self) -> None:
        """Leave out what was not begun."""
        for behind in self._workers:
            behind.shutdown(wait=False, cancel_futures=True)


def _compile(function: Function, arguments: Shapes) -> Any:
    jitted = jax.jit(function.call, donate_argnums=function.donate)
    return jitted.lower(*arguments).compile()


def _described(arguments: Shapes) -> Any:
    """The structure and the types of arguments, as far as a program depends on them."""
    leaves, structure = jax.tree.flatten(arguments)
    types = [jax.typeof(x) if isinstance(x, jax.Array) else x for x in leaves]
    return structure, [(t.shape, t.dtype, getattr(t, "weak_type", False)) for t in types]
