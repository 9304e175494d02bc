"""Networks of as many parameters as another, for comparisons on equal terms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil, floor
from typing import Any

from ..errors import UserError
from .inputs import Inputs
from .settings import Knob

NEIGHBOURS = 4  # so many widths on either side are tried when the width alone does not do
LARGEST = 10**6  # no layer is wider


def tolerance(target: int) -> float:
    """How far the number of parameters may be from its target, relatively.

    >>> tolerance(10_000), tolerance(9_999)
    (0.02, 0.05)
    """
    return 0.02 if target >= 10_000 else 0.05


def match_parameters(config: Any, target: int, inputs: Inputs) -> Any:
    """The settings with another width, so that the network has about ``target`` parameters.

    "About" is :func:`tolerance`. Where no width alone comes as close, the model's fine knob is
    tuned too, as little as possible: the last hidden width, an ExpertPINN's number of Fourier
    features, a HyResPINN's number of centres.
    """
    _check(config, target)
    sized = [replace(config, width=w) for w in _widths_around(config, target, inputs)]
    nearest = min(sized, key=lambda c: abs(c.count(inputs) - target))
    if _close(nearest.count(inputs), target):
        return nearest
    tuned = _tuned(config, target, inputs, nearest.width)
    if tuned is None:
        raise _unreachable(config, target, inputs, nearest)
    return tuned


def _check(config: Any, target: int) -> None:
    name = type(config).__name__
    for what in ("count", "width"):
        if not hasattr(config, what):
            raise UserError(
                f"{name} has no {what}, so its size cannot be matched: give it a field `width` and "
                "a method `count(inputs)` for its number of trained parameters, or set its size "
                "by hand."
            )
    if target < 1:
        raise UserError(f"The number of parameters to match must be at least 1, not {target}.")


def _close(count: int, target: int) -> bool:
    return abs(count - target) <= tolerance(target) * target


def _step(config: Any) -> int:
    """The width is a multiple of this; models of others need not say."""
    return getattr(config, "width_step", 1)


def _widths_around(config: Any, target: int, inputs: Inputs) -> list[int]:
    """The two possible widths whose counts are on either side of the target."""
    step = _step(config)
    above = _first_reaching(target, lambda w: replace(config, width=w).count(inputs), step, step)
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


def _tuned(config: Any, target: int, inputs: Inputs, near: int) -> Any | None:
    """The settings with a width near this one and the least change of the fine knob."""
    found = []
    for width in range(max(1, near - NEIGHBOURS), near + NEIGHBOURS + 1):
        sized = replace(config, width=width)
        knob = sized.knob(inputs) if hasattr(config, "knob") else None
        if knob is None or width % _step(_turned(sized, knob, knob.smallest)):
            continue
        setting = _least_change(sized, knob, target, inputs)
        if setting is not None:
            turned = _turned(sized, knob, setting)
            change = abs(setting - knob.value)
            found.append((change, abs(turned.count(inputs) - target), width, turned))
    return min(found, key=lambda one: one[:3])[-1] if found else None


def _turned(config: Any, knob: Knob, setting: int) -> Any:
    return replace(config, **{knob.name: setting})


def _least_change(config: Any, knob: Knob, target: int, inputs: Inputs) -> int | None:
    """The setting nearest to the present one that is close to the target, if any is."""

    def first_reaching(bound: int) -> int:
        return _first_reaching(
            bound, lambda v: _turned(config, knob, v).count(inputs), knob.smallest, knob.step
        )

    margin = tolerance(target) * target
    least = first_reaching(ceil(target - margin))
    most = first_reaching(floor(target + margin) + 1) - knob.step
    if least > most:
        return None
    steps = round((knob.value - knob.smallest) / knob.step)
    return min(max(knob.smallest + steps * knob.step, least), most)


def _unreachable(config: Any, target: int, inputs: Inputs, nearest: Any) -> UserError:
    name, count = type(config).__name__, nearest.count(inputs)
    smallest = _smallest(config, inputs)
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


def _smallest(config: Any, inputs: Inputs) -> int:
    narrow = replace(config, width=_step(config))
    knob = narrow.knob(inputs) if hasattr(config, "knob") else None
    variants = [narrow] if knob is None else [narrow, _turned(narrow, knob, knob.smallest)]
    return min(variant.count(inputs) for variant in variants)
