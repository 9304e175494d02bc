"""Levenberg–Marquardt for a loss that is the squared norm of a vector of rows.

Each step linearises the rows, ``r(θ+δ) ≈ r + Jδ``, factorises ``JᵀJ + λI`` once and probes many
dampings on the true loss. The steps of all dampings are nearly contained in a few vectors
``(JᵀJ+λI)⁻ᵏ Jᵀr``, each one more pair of triangular solves; in their span the damped problem is
solved exactly for every damping, with the Jacobian itself (a rational Krylov space with one pole,
Ruhe 1984). With fewer rows than parameters the same is done with ``JJᵀ + λI``. Rounding in ``JᵀJ``
costs half of the digits, so that QR of ``[J; √λI]`` takes over where the loss has become small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import solve_triangular
from jaxtyping import Float

from ..errors import UserError
from .optimiser import GrowingRounds, Sketch, System

TILE = 256


class Local(NamedTuple):
    """The rows near a point, as an optimiser needs them.

    ``jacobian`` may be that of a sketch, of fewer rows; ``gradient`` is ``Jᵀr`` of all rows (half
    the gradient of the loss), and ``forward`` multiplies vectors, the rows of its argument, with
    the Jacobian of all rows.
    """

    rows: Float[Array, " m"]
    jacobian: Float[Array, "s n"]
    gradient: Float[Array, " n"]
    forward: Callable[[Float[Array, "k n"]], Float[Array, "k m"]]
    sketched: bool


def exact(rows: Float[Array, " m"], jacobian: Float[Array, "m n"]) -> Local:
    """The rows with all of their Jacobian."""
    return Local(rows, jacobian, rows @ jacobian, lambda v: v @ jacobian.T, False)


Linearise = Callable[[Array, Array], Local]
"""Rows near a point; the second argument is the number of the step, for random sketches."""
Value = Callable[[Array], Array]


@dataclass(frozen=True)
class Rule:
    """How the damping is chosen.

    ``damping`` is relative to the mean of the diagonal of ``JᵀJ``; each step tries its products
    with ``probes``. ``marquardt`` scales every parameter by the root of its own diagonal entry.
    A ratio of actual to predicted decrease above ``good`` divides the damping further by
    ``factor``, one below ``poor`` multiplies it. ``space`` is the number of vectors that the steps
    are made of. QR is used where the loss is below ``precise`` times the largest seen.
    """

    damping: float = 1e-2
    probes: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0)
    scaling: Literal["identity", "marquardt"] = "identity"
    space: int = 5
    factor: float = 2.0
    good: float = 0.75
    poor: float = 0.25
    smallest: float = 1e-14
    largest: float = 1e8
    growth: float = 30.0
    precise: float | None = None

    def precise_below(self, dtype: jnp.dtype) -> float:
        """The share of the largest loss at which √loss is near the root of the rounding error."""
        return 100 * float(jnp.finfo(dtype).eps) if self.precise is None else self.precise


class LmState(NamedTuple):
    """A point with its loss, and how far the linear model was trusted there."""

    theta: Array
    value: Array
    decrease: Array  # of the value in the last step; 0 where there was none
    damping: Array
    ratio: Array  # of actual to predicted decrease in the last step
    last: Array  # the last step, a direction that sketched steps may use again
    scale: Array  # the largest value seen
    precise: Array  # the last step used QR
    steps: Array
    evaluations: Array
    failed: Array  # no damping gave a lower value


def blank(theta: Float[Array, " n"], rule: Rule) -> LmState:
    """The state at ``theta`` with nothing evaluated yet."""
    zero = jnp.zeros((), theta.dtype)
    return LmState(
        theta=theta,
        value=zero,
        decrease=zero,
        damping=jnp.asarray(rule.damping, theta.dtype),
        ratio=zero,
        last=jnp.zeros_like(theta),
        scale=zero,
        precise=jnp.asarray(False),
        steps=jnp.asarray(0),
        evaluations=jnp.asarray(0),
        failed=jnp.asarray(False),
    )


def renewed(value: Value, state: LmState) -> LmState:
    """The same point and damping under a loss that may be new."""
    found = value(state.theta)
    return state._replace(
        value=found,
        decrease=jnp.zeros_like(found),
        scale=jnp.maximum(state.scale, found),
        evaluations=state.evaluations + 1,
        failed=jnp.asarray(False),
    )


def forgotten(state: LmState, rule: Rule) -> LmState:
    """The same point with the damping of the beginning after a failure, otherwise with a larger one."""
    first = jnp.asarray(rule.damping, state.theta.dtype)
    larger = jnp.clip(100 * state.damping, first, rule.largest)
    return state._replace(
        damping=jnp.where(state.failed, first, larger),
        last=jnp.zeros_like(state.theta),
        failed=jnp.asarray(False),
    )


def gram(matrix: Float[Array, "m n"]) -> Float[Array, "n n"]:
    """The lower triangle of ``BᵀB``, tile by tile: half the work of the whole product."""
    n = matrix.shape[1]
    result = jnp.zeros((n, n), matrix.dtype)
    for a in range(0, n, TILE):
        for b in range(0, a + 1, TILE):
            tile = matrix[:, a : a + TILE].T @ matrix[:, b : b + TILE]
            result = jax.lax.dynamic_update_slice(result, tile, (a, b))
    return result


class Factor(NamedTuple):
    """``S = LLᵀ`` with ``S = BᵀB + λI``, and ``S⁻¹b``."""

    lower: Array
    solved: Array

    def solve(self, vector: Array) -> Array:
        half = solve_triangular(self.lower, vector, lower=True)
        return solve_triangular(self.lower, half, lower=True, trans=1)


def by_cholesky(products: Array, shift: Array, right: Array) -> Factor:
    """The factor from the normal equations; not a number where they are not positive definite."""
    n = products.shape[0]
    shifted = products.at[jnp.arange(n), jnp.arange(n)].add(shift)
    lower = jnp.linalg.cholesky(shifted, symmetrize_input=False)
    return Factor(lower, Factor(lower, right).solve(right))


def by_qr(matrix: Array, shift: Array, right: Array, target: Array | None) -> Factor:
    """The factor from ``[B; √λI]`` itself; with ``target = t``, ``right`` is ``Bᵀt``.

    ``t`` then goes through the same reflections, which squares no condition number.
    """
    n = matrix.shape[1]
    below = jnp.sqrt(shift) * jnp.eye(n, dtype=matrix.dtype)
    stacked = jnp.concatenate([matrix, below])
    if target is None:
        upper = jnp.linalg.qr(stacked, mode="r")
        lower = _positive_diagonal(upper).T
        return Factor(lower, Factor(lower, right).solve(right))
    column = jnp.concatenate([target, jnp.zeros(n, matrix.dtype)])
    upper = jnp.linalg.qr(jnp.concatenate([stacked, column[:, None]], axis=1), mode="r")
    lower = upper[:n, :n].T
    return Factor(lower, solve_triangular(lower, upper[:n, n], lower=True, trans=1))


def _positive_diagonal(upper: Array) -> Array:
    signs = jnp.where(jnp.diagonal(upper) < 0, -1, 1).astype(upper.dtype)
    return upper * signs[:, None]


class Space(NamedTuple):
    """A few orthonormal directions and the damped problem in them, solved for any damping.

    ``J·directions`` has the singular values ``s``; ``c`` are the rows seen by its left vectors.
    """

    directions: Array  # (k, n)
    s: Array
    c: Array

    def step(self, shift: Array) -> Array:
        """``argmin ‖r + Jδ‖² + λ‖δ‖²`` in the span of the directions."""
        damped = self.s**2 + shift
        return -jnp.where(damped > 0, self.s * self.c / jnp.where(damped > 0, damped, 1), 0)

    def predicted(self, shift: Array) -> Array:
        """``‖r‖² − ‖r + Jδ‖²``, written without a difference of large numbers."""
        damped = self.s**2 + shift
        left = jnp.where(damped > 0, shift / jnp.where(damped > 0, damped, 1), 1)
        return jnp.sum(self.c**2 * (1 - left) * (1 + left))


def space_of(local: Local, vectors: Float[Array, "k n"]) -> Space:
    """The damped problem of all rows in the span of some vectors, the most important first."""
    size = jnp.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / jnp.where(size > 0, size, 1)
    basis, _ = jnp.linalg.qr(unit.T)
    image = local.forward(basis.T)
    left, triangle = jnp.linalg.qr(image.T)
    inner, s, outer = jnp.linalg.svd(triangle, full_matrices=False)
    return Space(outer @ basis.T, s, inner.T @ (left.T @ local.rows))


def krylov(local: Local, factor: Factor, shift: Array, count: int) -> Float[Array, "count n"]:
    """``(JᵀJ+λI)⁻ᵏ Jᵀr`` for ``k = 1…count``, up to their lengths."""
    J = local.jacobian
    dual = J.shape[0] < J.shape[1]

    def inverse(vector: Array) -> Array:
        if not local.sketched:
            return factor.solve(vector)
        # Woodbury: (JᵀJ+λI)⁻¹ = (I − Jᵀ(JJᵀ+λI)⁻¹J)/λ.
        return vector - factor.solve(J @ vector) @ J if dual else factor.solve(vector)

    first = inverse(local.gradient) if local.sketched and dual else factor.solved
    vectors = [first / _length(first)]
    for _ in range(count - 1):
        following = inverse(vectors[-1])
        vectors.append(following / _length(following))
    stacked = jnp.stack(vectors)
    return stacked @ J if dual and not local.sketched else stacked


def _length(vector: Array) -> Array:
    size = jnp.linalg.norm(vector)
    return jnp.where(size > 0, size, 1)


class Trial(NamedTuple):
    """What a damping, and those around it, have given."""

    damping: Array
    change: Array
    value: Array
    predicted: Array
    precise: Array
    evaluations: Array
    found: Array


def step(linearise: Linearise, value: Value, state: LmState, rule: Rule) -> LmState:
    """One linearisation, and dampings from small to large until one gives a lower value."""
    local = linearise(state.theta, state.steps)
    scales = _scales(local.jacobian, rule)
    if scales is not None:
        local = _scaled(local, scales)
    J = local.jacobian
    dual = J.shape[0] < J.shape[1]
    matrix = J.T if dual else J
    products = gram(matrix)
    unit = jnp.sum(jnp.diagonal(products)) / J.shape[1]
    precise = state.value <= rule.precise_below(state.theta.dtype) * state.scale

    def factorise(shift: Array) -> tuple[Factor, Array]:
        right = local.rows if dual and not local.sketched else local.gradient
        if local.sketched:
            right = J @ right if dual else right
        factor = by_cholesky(products, shift, right)
        poor = precise | ~jnp.all(jnp.isfinite(jnp.diagonal(factor.lower)))
        target = None if dual or local.sketched else local.rows
        careful = lambda: by_qr(matrix, shift, right, target)  # noqa: E731
        return jax.lax.cond(poor, careful, lambda: factor), poor

    def attempt(trial: Trial) -> Trial:
        shift = trial.damping * unit
        factor, poor = factorise(shift)
        vectors = krylov(local, factor, shift, rule.space)
        if local.sketched:
            old = state.last if scales is None else state.last * scales
            # Without a last step, a vector of zeros would become an arbitrary direction.
            old = jnp.where(jnp.any(old != 0), old, local.gradient)
            vectors = jnp.concatenate([vectors, old[None]])
        space = space_of(local, vectors)
        dampings = jnp.clip(
            trial.damping * jnp.asarray(rule.probes, shift.dtype), rule.smallest, rule.largest
        )
        dampings = jnp.where(trial.damping > 0, dampings, 0)
        changes = jax.vmap(space.step)(dampings * unit) @ space.directions
        if scales is not None:
            changes = changes / scales
        values = jax.lax.map(value, state.theta + changes)
        values = jnp.where(jnp.isfinite(values), values, jnp.inf)
        best = jnp.argmin(values)
        found = values[best] < state.value
        return Trial(
            damping=jnp.where(found, dampings[best], rule.growth * trial.damping),
            change=changes[best],
            value=values[best],
            predicted=space.predicted(dampings[best] * unit),
            precise=poor,
            evaluations=trial.evaluations + len(rule.probes),
            found=found,
        )

    def hopeful(trial: Trial) -> Array:
        untried = trial.evaluations == state.evaluations
        more = (trial.damping <= rule.largest) & (trial.damping > 0)
        return untried | (~trial.found & more)

    trial = jax.lax.while_loop(hopeful, attempt, _untried(state))
    return _moved(state, trial, rule)


def _untried(state: LmState) -> Trial:
    zero = jnp.zeros_like(state.value)
    no = jnp.asarray(False)
    return Trial(state.damping, jnp.zeros_like(state.theta), zero, zero, no, state.evaluations, no)


def _scales(jacobian: Array, rule: Rule) -> Array | None:
    """The roots of the diagonal of ``JᵀJ``, not less than a small share of their mean square."""
    if rule.scaling == "identity":
        return None
    squares = jnp.sum(jacobian**2, axis=0)
    floor = 1e-8 * jnp.mean(squares)
    return jnp.sqrt(jnp.where(floor > 0, jnp.maximum(squares, floor), 1))


def _scaled(local: Local, scales: Array) -> Local:
    """The same rows as a function of the parameters times their scales."""
    forward = local.forward
    return local._replace(
        jacobian=local.jacobian / scales,
        gradient=local.gradient / scales,
        forward=lambda v: forward(v / scales),
    )


def _moved(state: LmState, trial: Trial, rule: Rule) -> LmState:
    """The state after a trial: moved where it found a lower value, with the next damping."""
    found = trial.found
    decrease = jnp.where(found, state.value - trial.value, 0)
    positive = trial.predicted > 0
    ratio = jnp.where(positive, decrease / jnp.where(positive, trial.predicted, 1), 0)
    damping = next_damping(trial.damping, ratio, rule)
    return state._replace(
        theta=jnp.where(found, state.theta + trial.change, state.theta),
        value=jnp.where(found, trial.value, state.value),
        decrease=decrease,
        damping=jnp.where(found, damping, jnp.minimum(trial.damping, rule.largest)),
        ratio=ratio,
        last=jnp.where(found, trial.change, state.last),
        precise=trial.precise,
        steps=state.steps + 1,
        evaluations=trial.evaluations,
        failed=~found,
    )


def next_damping(damping: Array, ratio: Array, rule: Rule) -> Array:
    """The trust-region rule: less damping after a step as good as predicted, more after a poor one."""
    change = jnp.where(ratio > rule.good, 1 / rule.factor, 1)
    change = jnp.where(ratio < rule.poor, rule.factor, change)
    return jnp.clip(damping * change.astype(damping.dtype), rule.smallest, rule.largest)


def minimise(
    rows: Callable[[Array], Array], theta: Array, steps: int, rule: Rule | None = None
) -> LmState:
    """A plain loop for small vectors of rows; training uses the stage instead.

    >>> line = lambda x: jnp.array([1.0, 2.0, 3.0]) * x[0] + x[1] - jnp.array([3.0, 5.0, 7.0])
    >>> bool(jnp.allclose(minimise(line, jnp.zeros(2), 20).theta, jnp.array([2.0, 1.0]), atol=1e-3))
    True
    """
    rule = rule or Rule()

    def linearise(theta: Array, _: Array) -> Local:
        return exact(rows(theta), jax.jacfwd(rows)(theta))

    def value(theta: Array) -> Array:
        return jnp.sum(rows(theta) ** 2)

    def unfinished(state: LmState) -> Array:
        return (state.steps < steps) & ~state.failed & (state.value > 0)

    state = renewed(value, blank(theta, rule))
    return jax.lax.while_loop(unfinished, lambda s: step(linearise, value, s, rule), state)


@dataclass(frozen=True)
class LevenbergMarquardt(GrowingRounds[LmState]):
    """Levenberg–Marquardt with the exact Jacobian, or a sketch of it for large networks.

    A step is worth some fifty of SSBroyden's, in time and in progress.

    Args:
        damping: The first damping, relative to the mean of the diagonal of ``JᵀJ``.
        scaling: ``identity`` damps all parameters alike, ``marquardt`` each by the root of its own
            diagonal entry.
        sketch: A network of more than ``sketch_above`` parameters takes its curvature from so many
            random combinations of the rows, new ones at every step; gradient, accepted loss and
            predicted decrease are those of all points.
        sketch_above: See ``sketch``.
    """

    steps: int = 100
    round_steps: int = 25
    damping: float = 1e-2
    scaling: Literal["identity", "marquardt"] = "identity"
    sketch: int = 1000
    sketch_above: int = 5000

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sketch < 1:
            raise UserError(f"A sketch has at least one row, not {self.sketch}.")

    @property
    def look_every(self) -> int:
        return 5

    @property
    def rule(self) -> Rule:
        return Rule(damping=self.damping, scaling=self.scaling)

    def init(self, system: System, theta: Array) -> LmState:
        return blank(theta, self.rule)

    def step(self, system: System, state: LmState) -> LmState:
        large = state.theta.size > self.sketch_above

        def whole(theta: Array, number: Array) -> Local:
            return exact(*system.linearise(theta))

        def sketched(theta: Array, number: Array) -> Local:
            found = system.linearise(theta, Sketch(self.sketch, number))
            vector, pull = jax.vjp(system.rows, theta)
            # Jv as the derivative of u ↦ Jᵀu: some layers have rules for reverse mode alone.
            gradient, push = jax.vjp(lambda u: pull(u)[0], vector)
            forward = jax.vmap(lambda v: push(v)[0])
            return Local(vector, found.jacobian, gradient, forward, True)

        return step(sketched if large else whole, system.value, state, self.rule)

    def renew(self, system: System, state: LmState) -> LmState:
        return renewed(system.value, state)

    def forget(self, state: LmState) -> LmState:
        return forgotten(state, self.rule)
