"""Mistakes in a statement, each told in one sentence with the line to write, before anything is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import UserError
from ..geometry import Box, Domain
from ..geometry.sampling import kronecker
from .calls import call
from .conditions import Condition, Start, Wall, evaluate
from .equation import Equation
from .problem import Problem


@dataclass(frozen=True)
class Caution:
    """Something that a run can do with, but that is seldom meant."""

    code: str
    text: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.text} {self.remedy}"


# Types.


def check_parts(problem: Problem) -> None:
    """The domain and the fields are what they must be."""
    cls = type(problem).__name__
    for name, example in (("domain", "hp.Box(x=(0, 1))"), ("fields", '("u",)')):
        if not hasattr(problem, name):
            raise UserError(f"{cls} has no {name}; write {name} = {example}.")
    domain, fields = problem.domain, problem.fields
    if not isinstance(domain, Domain):
        raise UserError(
            f"{cls}.domain must be a domain, not {domain!r}; write domain = hp.Box(x=(0, 1)), or "
            "hp.TimeBox(t=(0, 1), x=(0, 1)) with time."
        )
    if isinstance(fields, str):
        raise UserError(f'{cls}.fields must be a tuple of names; write fields = ("{fields}",).')
    if not isinstance(fields, (tuple, list)) or not fields:
        raise UserError(f'{cls}.fields must name at least one field; write fields = ("u",).')
    for field in fields:
        if not isinstance(field, str) or not field.isidentifier():
            raise UserError(f"{cls}.fields must be names such as u or T1, and one is {field!r}.")
        if field in (*domain.coordinates, "p"):
            what = "the point" if field == "p" else "a coordinate"
            raise UserError(
                f"{cls} has a field {field!r}, which is the name of {what}; call the field something "
                f"else, such as {field.upper() if field != field.upper() else 'u'}."
            )
    for field, count in Counter(fields).items():
        if count > 1:
            raise UserError(
                f"{cls}.fields names {field!r} {count} times; each field is named once."
            )


def conditions_of(problem: Problem) -> tuple[Condition, ...]:
    """What ``conditions()`` returned, if that is a list of conditions."""
    cls = type(problem).__name__
    found = call(problem.conditions, (), "")
    example = "return [hp.Initial(0.0), hp.Dirichlet(0.0)]"
    if isinstance(found, Condition):
        raise UserError(
            f"{cls}.conditions() returned a single {type(found).__name__}; return a list of "
            f"conditions: {example}."
        )
    if not isinstance(found, (list, tuple)):
        what = "nothing (is there a return?)" if found is None else repr(found)
        raise UserError(f"{cls}.conditions() returned {what}; write {example}.")
    for condition in found:
        if isinstance(condition, type) and issubclass(condition, Condition):
            name = condition.__name__
            raise UserError(
                f"{cls}.conditions() holds the class {name}; make a condition of it: {name}(0.0)."
            )
        if not isinstance(condition, Condition):
            raise UserError(
                f"{cls}.conditions() must return a list of conditions; it holds {condition!r}. Write "
                f"{example}."
            )
    return tuple(found)


def check_exact(problem: Problem, equation: Equation) -> None:
    """``exact`` gives one array, or number, for each field; it is called at three points."""
    if type(problem).exact is Problem.exact:
        return
    cls, fields = type(problem).__name__, equation.fields
    dtype = jnp.zeros(()).dtype
    points = equation.domain.interior(jax.random.key(0), 3, kronecker, dtype)
    with jax.debug_nans(False):
        found = call(problem.exact, (equation.point(points),), "p")
    if found is None:
        return
    if isinstance(found, dict):
        raise UserError(
            f"{cls}.exact returned a dict; return the fields in their order: "
            f"return {', '.join(map(str, found)) or 'u'}."
        )
    several = found if isinstance(found, (tuple, list)) else (found,)
    if len(several) != len(fields):
        raise UserError(
            f"{cls}.exact returned {len(several)} values for the fields {', '.join(fields)}; return "
            "one for each, in their order."
        )
    for field, value in zip(fields, several, strict=True):
        shape = jnp.shape(value)
        if shape not in ((), (3,)):
            raise UserError(
                f"{cls}.exact returned an array of shape {shape} for {field} at 3 points; expected "
                "one number for each point, made of p.x, … with jax.numpy."
            )


# Conditions together.


def check_together(equation: Equation, conditions: Sequence[Condition]) -> None:
    """Conditions do not contradict each other, and are there wherever an equation needs some."""
    obstacles = chain(_contradictions(equation, conditions), _missing(equation, conditions))
    obstacle = next(obstacles, None)
    if obstacle is not None:
        raise UserError(obstacle)


def _contradictions(equation: Equation, conditions: Sequence[Condition]) -> Iterator[str]:
    seams = Counter(seam for c in conditions if (seam := c.seam()) is not None)
    for axis, count in seams.items():
        if count > 1:
            yield f'Periodic("{axis}") is there {count} times; keep one.'
    walls = [wall for c in conditions if (wall := c.wall(equation)) is not None]
    for wall in walls:
        for piece in wall.pieces:
            axis = piece.partition(".")[0]
            if axis in seams:
                yield _torn(equation, wall, axis)
    yield from _twice(walls)
    starts = Counter(
        (start.field, start.derivative)
        for c in conditions
        if (start := c.start(equation)) is not None
    )
    for (field, derivative), count in starts.items():
        if count > 1:
            what = f"{field}_{derivative}" if derivative else field
            yield f"{what} has {count} initial conditions; keep one of them."


def _torn(equation: Equation, wall: Wall, axis: str) -> str:
    kind = "slope" if wall.normal_order else "value"
    others = [p for p in equation.domain.pieces if p.partition(".")[0] != axis]
    keep = f", or say where it holds: on={tuple(others)!r}" if others else ""
    return (
        f'Periodic("{axis}") makes the two ends of {axis} one place, and there is a {kind} of '
        f"{wall.field} on them too. Leave one of the two conditions out{keep}."
    )


def _twice(walls: Sequence[Wall]) -> Iterator[str]:
    places = Counter((w.field, w.normal_order, piece) for w in walls for piece in w.pieces)
    for (field, order, piece), count in places.items():
        if count > 1:
            kind = "Neumann" if order else "Dirichlet"
            yield (
                f"{field} has {count} {kind} conditions on {piece}; keep one, or give each its own "
                f"part of the boundary with on=…"
            )


def _missing(equation: Equation, conditions: Sequence[Condition]) -> Iterator[str]:
    """Where nothing can single out a solution."""
    orders = _orders(equation)
    beside = [c for c in conditions if c.start(equation) is None]
    if not beside and max(orders.values(), default=0) > 1:
        name = next(name for name, order in orders.items() if order > 1)
        yield (
            f"The equation has derivatives along {name}, and no condition says what happens at its "
            "ends, so that there are many solutions. Add hp.Dirichlet(0.0), hp.Neumann(0.0) or "
            f'hp.Periodic("{name}") to the conditions.'
        )
    elif not conditions and equation.order:
        yield (
            "There are no conditions, so that there are many solutions. Return at least one from "
            "conditions(): return [hp.Dirichlet(0.0)]."
        )
    if isinstance(equation.domain, Box):
        yield from _missing_along(equation, conditions)


def _missing_along(equation: Equation, conditions: Sequence[Condition]) -> Iterator[str]:
    """The axes at whose ends nothing is said, where all conditions are of a known kind."""
    if not all(c.start(equation) or c.wall(equation) or c.seam() for c in conditions):
        return
    beside = [c for c in conditions if c.start(equation) is None]
    touched = set().union(*(_axes(c, equation) for c in beside))
    for name, order in _orders(equation).items():
        if order > 1 and name not in touched:
            yield (
                f"The equation has second derivatives along {name}, and no condition holds at "
                f'{name}.min or {name}.max. Add hp.Dirichlet(0.0, on="{name}"), '
                f'hp.Neumann(0.0, on="{name}") or hp.Periodic("{name}").'
            )


def _orders(equation: Equation) -> dict[str, int]:
    """The highest derivative along each coordinate of space."""
    first = int(equation.has_time)
    return {
        name: max(index[first + i] for index in equation.requested)
        for i, name in enumerate(equation.domain.space)
    }


def _axes(condition: Condition, equation: Equation) -> set[str]:
    """The axes at whose ends a condition says something."""
    seam, wall = condition.seam(), condition.wall(equation)
    walls = () if wall is None else wall.pieces
    return {piece.partition(".")[0] for piece in walls} | ({seam} if seam else set())


# What is possible and seldom meant.


def cautions(equation: Equation, conditions: Sequence[Condition]) -> Iterator[Caution]:
    """Starts that do not fit the walls: the solution jumps where they meet."""
    domain = equation.domain
    if not equation.has_time or not isinstance(domain, Box):
        return
    starts = [s for c in conditions if (s := c.start(equation)) and not s.derivative]
    walls = [w for c in conditions if (w := c.wall(equation)) and not w.normal_order]
    for start in starts:
        for wall in walls:
            if wall.field == start.field:
                yield from _jumps(equation, start, wall)


def _jumps(equation: Equation, start: Start, wall: Wall) -> Iterator[Caution]:
    domain = equation.domain
    rng = np.random.default_rng(0)
    lower, upper = np.asarray(domain.bounds).T
    for piece in wall.pieces:
        name, side = piece.split(".")
        points = lower + (upper - lower) * rng.random((16, domain.dimension))
        points[:, 0] = lower[0]
        axis = domain.coordinates.index(name)
        points[:, axis] = domain.bounds[axis][side == "max"]
        with jax.enable_x64(True), jax.debug_nans(False):
            where = jnp.asarray(points)
            at = equation.point(where)
            begun, held = (
                np.asarray(evaluate(value, at, where[:, 0])) for value in (start.value, wall.value)
            )
            inside = jnp.asarray(lower + (upper - lower) * rng.random((64, domain.dimension)))
            inside = inside.at[:, 0].set(lower[0])
            all_of_it = np.asarray(evaluate(start.value, equation.point(inside), inside[:, 0]))
        gap = np.abs(begun - held)
        scale = max(np.abs(values).max() for values in (begun, held, all_of_it))
        if np.isfinite(gap).all() and gap.max() > 1e-6 * scale:
            worst = int(gap.argmax())
            yield Caution(
                "incompatible-start",
                f"{start.field} starts at {begun[worst]:.4g} and is held at {held[worst]:.4g} at "
                f"{name} = {points[worst, axis]:g}: the solution jumps there, and near it no smooth "
                "model is accurate.",
                "Let the start go to the value at the wall over a short distance, or the wall's value "
                "begin at that of the start.",
            )
            return
