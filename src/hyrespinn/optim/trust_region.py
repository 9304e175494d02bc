"""Gauss–Newton in a trust region that aims at a ratio.

Around a point the loss is modelled by ``‖r + Jδ‖²``. Usual rules take the step with the lowest loss, or the
step that the model predicts well. This one takes the *largest* step whose decrease of the loss is still a
small share of the predicted one (Webb, Jerad and Cartis 2026, arXiv 2607.02194): a network far from a
solution must go far, and the model need not be right for that. Only once the damping has passed its
minimum, near the end, is the model asked to be right to a half.

Steps of all lengths are looked for among a few directions (``rational_krylov.py``), in which the problem of
every radius is solved exactly.

Valleys of such losses are curved. Each step is tried straight and bent, ``δ + ½a``, where ``a`` takes
back what the rows change by in the second order along ``δ`` (geodesic acceleration, Transtrum and Sethna
2012): the curvature of the rows along one direction costs two evaluations of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from ..algebra import Columns, NormalEquations, Triangle, gram
from ..errors import UserError
from .optimiser import RoundOptimiser, Sketch, System
from .rational_krylov import Space, space_of, whole_space

Model = Callable[[Array], NormalEquations | Triangle]
Rows = Callable[[Array], Array]
Pull = Callable[[Array, Array], Array]
Value = Callable[[Array], Array]

DIFFERENCE = 0.2
"""The share of a step at which rows are evaluated for their curvature along it."""
WINDOW = 10
"""Steps after which progress is judged."""
EARLY, LATE = 50, 30
"""The damping of so many steps at first says nothing about its minimum; so many steps after that it has
passed it."""
SHORTEST, LONGEST = 1e-9, 1e5
"""Radii: at the shortest one the search ends."""


class TrustRegionState(NamedTuple):
    """A point with its loss, and how far the linear model is trusted there."""

    theta: Array
    value: Array
    radius: Array
    damping: Array  # of the last step; 0 before the first
    least: Array  # the smallest damping so far
    since: Array  # steps since then
    last: Array  # the last step
    mark: Array  # the loss at the beginning of the present ten steps
    steps: Array
    evaluations: Array
    failed: Array  # nothing worth going on for


def blank(theta: Float[Array, " n"], rule: TrustRegion) -> TrustRegionState:
    """The state at ``theta`` with nothing evaluated yet."""
    zero, count = jnp.zeros((), theta.dtype), jnp.asarray(0)
    return TrustRegionState(
        theta=theta,
        value=zero,
        radius=jnp.asarray(rule.radius, theta.dtype),
        damping=zero,
        least=jnp.full_like(zero, jnp.inf),
        since=count,
        last=jnp.zeros_like(theta),
        mark=jnp.full_like(zero, jnp.inf),
        steps=count,
        evaluations=count,
        failed=jnp.asarray(False),
    )


def renewed(value: Value, state: TrustRegionState) -> TrustRegionState:
    """The same point and radius under a loss that may be new."""
    return state._replace(
        value=value(state.theta),
        mark=jnp.full_like(state.mark, jnp.inf),
        evaluations=state.evaluations + 1,
        failed=jnp.asarray(False),
    )


def forgotten(state: TrustRegionState, rule: TrustRegion) -> TrustRegionState:
    """The same point with a far smaller radius."""
    radius = jnp.clip(1e-2 * state.radius, SHORTEST, rule.radius).astype(state.theta.dtype)
    return state._replace(
        radius=radius,
        last=jnp.zeros_like(state.last),
        mark=jnp.full_like(state.mark, jnp.inf),
        failed=jnp.asarray(False),
    )


class Candidate(NamedTuple):
    """A step of one radius, with the loss that it leads to, and its gain as a share of the promise."""

    change: Float[Array, " n"]
    value: Array
    ratio: Array


class Search(NamedTuple):
    """Among radii in rising order: the ``place`` of the last one that was tried, whether its step ``kept``
    its promise, the ``longest`` step that did, its place (−1 for none), and how many were tried."""

    place: Array
    kept: Array
    longest: Candidate
    best: Array
    tried: Array


def step(
    model: Model,
    rows: Rows,
    pull: Pull,
    value: Value,
    state: TrustRegionState,
    rule: TrustRegion,
    columns: Columns | None = None,
) -> TrustRegionState:
    """One model, steps of all radii in it, and the largest of them that keeps its promise."""
    space = _space(model(state.theta), state, columns)
    shares = rule.spread ** jnp.linspace(-1, 1, rule.probes, dtype=state.radius.dtype)
    dampings = jax.vmap(space.damping)(state.radius * shares)
    # With the smallest damping a step may be shorter than the radius: the next one begins from there.
    radii = jax.vmap(space.length)(dampings)
    promised = jax.vmap(space.predicted)(dampings)

    def lifted(change: Float[Array, " c"]) -> Float[Array, " n"]:
        return change if columns is None else columns.lifted(change[:, None])[:, 0]

    if rule.bent:
        middle = lifted(space.step(space.damping(state.radius)))
        bend = second_order(rows, pull, state.theta, middle)
        bend = bend if columns is None else columns.projected(bend)
        acceleration = -0.5 * lifted(space.solve(bend))

    def tried(place: Array) -> Candidate:
        change = lifted(space.step(dampings[place]))
        new = value(state.theta + change)
        if rule.bent:
            # Beside each other, on a core of its own each.
            other = change + (radii[place] / radii[rule.probes // 2]) ** 2 * acceleration
            there = value(state.theta + other)
            better = ~(there >= new)  # also where the straight one leads to no number
            change, new = jnp.where(better, other, change), jnp.where(better, there, new)
        ratio = (state.value - new) / promised[place]
        return Candidate(change, new, jnp.where(jnp.isfinite(ratio), ratio, -jnp.inf))

    wanted = jnp.where(state.since >= LATE, rule.late_ratio, rule.ratio)
    found_at = searched(tried, wanted, rule.probes)
    return _moved(state, found_at, radii, dampings, rule)


def _space(
    found: NormalEquations | Triangle, state: TrustRegionState, columns: Columns | None
) -> Space:
    """The directions of the next step, around the damping of the last one."""
    slope = found.rows @ found.matrix if isinstance(found, Triangle) else found.gradient
    first = jnp.linalg.norm(slope) / state.radius
    damping = jnp.where(state.damping > 0, state.damping, first)
    if isinstance(found, Triangle):
        return whole_space(found, damping)
    return space_of(
        found, damping, state.last if columns is None else columns.projected(state.last)
    )


def searched(tried: Callable[[Array], Candidate], wanted: Array, probes: int) -> Search:
    """From the radius in the middle, which is the last one, up as long as steps keep their promise; or,
    where its step does not, down to the first one that does. A step costs three trials as a rule.
    """
    middle = jnp.asarray(probes // 2)
    first = tried(middle)
    rising = first.ratio >= wanted

    def unfinished(search: Search) -> Array:
        up = rising & search.kept & (search.place < probes - 1)
        return up | (~rising & ~search.kept & (search.place > 0))

    def next_one(search: Search) -> Search:
        place = search.place + jnp.where(rising, 1, -1)
        found = tried(place)
        kept = found.ratio >= wanted
        longest = jax.tree.map(lambda a, b: jnp.where(kept, a, b), found, search.longest)
        best = jnp.where(kept, place, search.best)
        return Search(place, kept, longest, best, search.tried + 1)

    begin = Search(middle, rising, first, jnp.where(rising, middle, -1), jnp.asarray(1))
    return jax.lax.while_loop(unfinished, next_one, begin)


def second_order(
    rows: Rows, pull: Pull, theta: Float[Array, " n"], change: Float[Array, " n"]
) -> Float[Array, " n"]:
    """``Jᵀ`` times the second derivative of the rows along a step, by central differences."""
    behind, here, ahead = (rows(theta + share * DIFFERENCE * change) for share in (-1, 0, 1))
    return pull(theta, (ahead - 2 * here + behind) / DIFFERENCE**2)


def _moved(
    state: TrustRegionState, found: Search, radii: Array, dampings: Array, rule: TrustRegion
) -> TrustRegionState:
    """The state after the largest step that keeps its promise, or with a smaller radius after none."""
    moved = found.best >= 0
    best = jnp.maximum(found.best, 0)
    damping, change = dampings[best], found.longest.change
    lower = (damping < state.least) | (state.steps < EARLY)
    reached = jnp.where(moved, found.longest.value, state.value)
    shorter = state.radius / rule.spread**2
    radius = jnp.where(moved, jnp.minimum(radii[best], LONGEST), shorter)
    steps = state.steps + 1
    judged = steps % WINDOW == 0
    slow = judged & (reached > (1 - rule.progress) * state.mark)
    return TrustRegionState(
        theta=jnp.where(moved, state.theta + change, state.theta),
        value=reached,
        radius=radius,
        damping=damping,
        least=jnp.where(lower, damping, state.least),
        since=jnp.where(lower, 0, state.since + 1),
        last=jnp.where(moved, change, state.last),
        mark=jnp.where(judged, reached, state.mark),
        steps=steps,
        evaluations=state.evaluations + (2 if rule.bent else 1) * found.tried,
        failed=slow | (radius < SHORTEST) | (reached == 0),
    )


def minimise(
    rows: Rows, theta: Array, steps: int, rule: TrustRegion | None = None
) -> TrustRegionState:
    """A plain loop for small vectors of rows; training uses the stage instead.

    >>> line = lambda x: jnp.array([1.0, 2.0, 3.0]) * x[0] + x[1] - jnp.array([3.0, 5.0, 7.0])
    >>> bool(jnp.allclose(minimise(line, jnp.zeros(2), 20).theta, jnp.array([2.0, 1.0]), atol=1e-3))
    True
    """
    rule = rule or TrustRegion()

    def normal(theta: Array) -> NormalEquations:
        found, jacobian = rows(theta), jax.jacfwd(rows)(theta)
        return NormalEquations(found @ found, found @ jacobian, gram(jacobian.T))

    def pull(theta: Array, vector: Array) -> Array:
        (found,) = jax.vjp(rows, theta)[1](vector)
        return found

    def value(theta: Array) -> Array:
        return jnp.sum(rows(theta) ** 2)

    def unfinished(state: TrustRegionState) -> Array:
        return (state.steps < steps) & ~state.failed

    state = renewed(value, blank(theta, rule))
    return jax.lax.while_loop(unfinished, lambda s: step(normal, rows, pull, value, s, rule), state)


@dataclass(frozen=True)
class TrustRegion(RoundOptimiser[TrustRegionState]):
    """Gauss–Newton with the largest steps that still keep a share of what the linear model promises.

    A round of points ends where steps no longer lower the loss. Points should be many, some five to ten
    for each parameter, as all of them are used in every step.

    Args:
        radius: The length of the first step, which may be ``spread`` times longer or shorter.
        ratio: The decrease that a step must give, as a share of the predicted one.
        late_ratio: The same once the damping has passed its minimum.
        probes: The number of radii among which the longest step is looked for.
        spread: How many times longer or shorter than the last one a step may be.
        bent: Whether steps are also tried with their acceleration, along the curved valley of the loss.
        progress: A round ends where ten steps take off less than this share of the loss.
        most_rounds: After so many rounds of points it has converged.
        columns: A network of more than ``columns_above`` parameters moves along so many random
            combinations of them, new ones at every step.
        columns_above: See ``columns``.
        points: The number of points inside the domain, the first of all of them; 0 for all.
        precise: Whether the linear model is made by orthogonal transformations: steps cost two to three
            times as much, and go on where rounding errors of normal equations end them.
        rows: The curvature is that of so many random combinations of the rows; 0 for that of all of them.
    """

    steps: int = 200
    round_steps: int = 100
    radius: float = 1.0
    ratio: float = 0.075
    late_ratio: float = 0.5
    probes: int = 9
    spread: float = 3.0
    bent: bool = True
    progress: float = 0.1
    most_rounds: int = 2
    columns: int = 2000
    columns_above: int = 2500
    points: int = 0
    precise: bool = False
    rows: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.ratio <= self.late_ratio < 1:
            raise UserError(
                "The ratios of a trust region are shares with 0 < ratio ≤ late_ratio < 1, not "
                f"{self.ratio} and {self.late_ratio}."
            )
        if self.radius <= 0 or self.spread <= 1 or self.probes < 3:
            raise UserError(
                "A trust region needs a positive radius, a spread above 1 and at least 3 probes, not "
                f"{self.radius}, {self.spread} and {self.probes}."
            )
        if not 0 < self.progress < 1:
            raise UserError(f"progress is a share between 0 and 1, not {self.progress}.")
        if self.most_rounds < 1 or self.columns < 1 or min(self.points, self.rows) < 0:
            raise UserError(
                "TrustRegion needs at least one round and one column, and no negative number of points or "
                f"rows; they are {self.most_rounds}, {self.columns}, {self.points} and {self.rows}."
            )

    @property
    def look_every(self) -> int:
        return 5

    @property
    def batch_size(self) -> int | None:
        return self.points or None

    @property
    def rounds(self) -> int:
        return self.most_rounds

    @property
    def when_failed(self) -> str:
        return f"{WINDOW} steps take off less than {self.progress:.0%} of the loss"

    def init(self, system: System, theta: Array) -> TrustRegionState:
        return blank(theta, self)

    def step(self, system: System, state: TrustRegionState) -> TrustRegionState:
        columns = None
        if state.theta.size > self.columns_above:
            count = min(self.columns, state.theta.size)
            columns = system.draw_columns(count, state.theta, state.steps)

        def model(theta: Array) -> NormalEquations | Triangle:
            if self.precise:
                return system.triangle(theta, columns)
            if not self.rows:
                return system.normal_equations(theta, columns)
            return self._sketched(system, theta, columns, state.steps)

        return step(model, system.rows, system.pull, system.value, state, self, columns)

    def _sketched(
        self, system: System, theta: Array, columns: Columns | None, number: Array
    ) -> NormalEquations:
        """The curvature of a sketch of the rows, with the gradient of all of them."""
        value, slope = system.value_and_grad(theta)
        jacobian = system.linearise(theta, Sketch(self.rows, number)).jacobian.T
        gradient = 0.5 * slope
        if columns is not None:
            jacobian, gradient = columns.of(jacobian), columns.projected(gradient)
        return NormalEquations(value, gradient, gram(jacobian))

    def renew(self, system: System, state: TrustRegionState) -> TrustRegionState:
        return renewed(system.value, state)

    def forget(self, state: TrustRegionState) -> TrustRegionState:
        return forgotten(state, self)
