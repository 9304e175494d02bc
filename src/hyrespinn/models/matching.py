"""Networks of as many parameters as another, for comparisons on equal terms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil, floor
from typing import Any, Protocol, TypeVar, runtime_checkable

from ..errors import UserError
from .inputs import Inputs
from .spec import Knob, ModelSpec

NEIGHBOURS = 4  # so many widths on either side are tried when the width alone does not do
LARGEST = 10**6  # no layer is wider


@runtime_checkable
class Sized(Protocol):
    """A frozen dataclass with a width, whose number of parameters is known and grows with it."""

    @property
    def width(self) -> int: ...

    def count(self, inputs: Inputs) -> int: ...


S = TypeVar("S")
W = TypeVar("W", bound=Sized)


def tolerance(target: int) -> float:
    """How far the number of parameters may be from its target, relatively.

    >>> tolerance(10_000), tolerance(9_999)
    (0.02, 0.05)
    """
    return 0.02 if target >= 10_000 else 0.05


def match_parameters(spec: S, target: int, inputs: Inputs) -> S:
    """The specification with another width, so that the network has about ``target`` parameters.

    "About" is :func:`tolerance`. Where no width alone comes as close, the model's fine knob is
    tuned too, as little as possible: the last hidden width, an ExpertPINN's number of Fourier
    features, a HyResPINN's number of kernels. A model without a width has its knob alone.
    """
    if target < 1:
        raise UserError(f"The number of parameters to match must be at least 1, not {target}.")
    if isinstance(spec, Sized):
        return _by_width(spec, target, inputs)
    if isinstance(spec, ModelSpec) and (knob := spec.knob(inputs)) is not None:
        changed: Any = _by_knob(spec, knob, target, inputs)
        return changed
    raise UserError(
        f"The size of {type(spec).__name__} cannot be matched: give it a field `width` and a "
        "method `count(inputs)` for its number of trained parameters, or set its size by hand."
    )


def _by_knob(spec: ModelSpec, knob: Knob, target: int, inputs: Inputs) -> ModelSpec:
    """The specification whose only knob brings it nearest to the target."""
    above = _first_reaching(
        target, lambda v: knob.turned(v).count(inputs), knob.smallest, knob.step
    )
    settings = [v for v in (above - knob.step, above) if v >= knob.smallest]
    nearest = min(map(knob.turned, settings), key=lambda c: abs(c.count(inputs) - target))
    if not _close(nearest.count(inputs), target):
        smallest = knob.turned(knob.smallest).count(inputs)
        raise UserError(
            f"No {type(spec).__name__} with these settings has {target:,} parameters within "
            f"{tolerance(target):.0%}: the nearest has {nearest.count(inputs):,}, the smallest has "
            f"{smallest:,}."
        )
    return nearest


def _by_width(spec: W, target: int, inputs: Inputs) -> W:
    """The specification with another width and, where it must be, another setting of its knob."""
    sized = [_resized(spec, w) for w in _widths_around(spec, target, inputs)]
    nearest = min(sized, key=lambda c: abs(c.count(inputs) - target))
    if _close(nearest.count(inputs), target):
        return nearest
    tuned = _tuned(spec, target, inputs, nearest.width)
    if tuned is None:
        raise _unreachable(spec, target, inputs, nearest)
    return tuned


def _resized(spec: W, width: int) -> W:
    changed: Any = spec  # a dataclass, which no protocol can say
    return replace(changed, width=width)


def _step(spec: Sized) -> int:
    """The width is a multiple of this; specifications of others need not say."""
    return spec.width_step if isinstance(spec, ModelSpec) else 1


def _knob(spec: Sized, inputs: Inputs) -> Knob | None:
    return spec.knob(inputs) if isinstance(spec, ModelSpec) else None


def _close(count: int, target: int) -> bool:
    return abs(count - target) <= tolerance(target) * target


def _widths_around(spec: Sized, target: int, inputs: Inputs) -> list[int]:
    """The two possible widths whose counts are on either side of the target."""
    step = _step(spec)
    above = _first_reaching(target, lambda w: _resized(spec, w).count(inputs), step, step)
    return [w for w in (above - step, above) if w >= step]


def _first_reaching(bound: int, count: Callable[[int], int], start: int, step: int) -> int:
    """The first of ``start, start + step, …`` whose count, which grows, is at least the bound."""
    below, above = -1, 0
    while count(start + above * step) < bound:
        if above > LARGEST:
            raise UserError(f"The number of parameters stays below {bound:,} whatever the width.")
        below, above = above, 2 * above + 1
    while above - below > 1:
        middle = (below + above) // 2
        if count(start + middle * step) < bound:
            below = middle
        else:
            above = middle
    return start + above * step


def _tuned(spec: Any, target: int, inputs: Inputs, near: int) -> Any | None:
    """The specification with a width near this one and the least change of the fine knob."""
    found = []
    for width in range(max(1, near - NEIGHBOURS), near + NEIGHBOURS + 1):
        knob = _knob(_resized(spec, width), inputs)
        if knob is None or width % knob.turned(knob.smallest).width_step:
            continue
        setting = _least_change(knob, target, inputs)
        if setting is not None:
            turned = knob.turned(setting)
            change = abs(setting - knob.value)
            found.append((change, abs(turned.count(inputs) - target), width, turned))
    return min(found, key=lambda one: one[:3])[-1] if found else None


def _least_change(knob: Knob, target: int, inputs: Inputs) -> int | None:
    """The setting nearest to the present one that is close to the target, if any is."""

    def first_reaching(bound: int) -> int:
        return _first_reaching(
            bound, lambda v: knob.turned(v).count(inputs), knob.smallest, knob.step
        )

    margin = tolerance(target) * target
    least = first_reaching(ceil(target - margin))
    most = first_reaching(floor(target + margin) + 1) - knob.step
    if least > most:
        return None
    steps = round((knob.value - knob.smallest) / knob.step)
    return min(max(knob.smallest + steps * knob.step, least), most)


def _unreachable(spec: Sized, target: int, inputs: Inputs, nearest: Sized) -> UserError:
    name, count = type(spec).__name__, nearest.count(inputs)
    smallest = _smallest(spec, inputs)
    if target < smallest:
        return UserError(
            f"No {name} with these settings has as few as {target:,} parameters: the smallest has "
            f"{smallest:,}. Ask for more parameters, or take fewer layers, blocks or levels."
        )
    return UserError(
        f"No {name} with these settings has {target:,} parameters within {tolerance(target):.0%}: "
        f"the nearest has {count:,} with width {nearest.width}, the smallest {smallest:,}. Ask for "
        f"{count:,} parameters, or change the number of layers, blocks or levels."
    )


def _smallest(spec: Sized, inputs: Inputs) -> int:
    narrow = _resized(spec, _step(spec))
    knob = _knob(narrow, inputs)
    fewest = narrow.count(inputs)
    return min(fewest, knob.turned(knob.smallest).count(inputs)) if knob else fewest
