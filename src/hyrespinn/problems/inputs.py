"""What a network must know of a problem."""

from __future__ import annotations

from ..models.inputs import Inputs
from .conditions import Periodic, embedded
from .mirror import mirrored
from .problem import Anatomy, Problem


def inputs_of(problem: Problem, found: Anatomy, exact: bool, mirror: bool = False) -> Inputs:
    """What a network must know of this problem, or of the one that its walls make by mirroring it."""
    if mirror:
        problem = mirrored(problem)
    built_in = {
        condition.axis
        for condition in problem.conditions()
        if isinstance(condition, Periodic) and embedded(condition, exact)
    }
    return Inputs(
        bounds=problem.domain.bounds,
        periodic=tuple(c in built_in for c in problem.domain.coordinates),
        outputs=len(problem.fields),
        order=found.order,
        spread=problem.domain.spread,
        cover=problem.domain.cover,
        has_time=problem.domain.has_time,
    )
