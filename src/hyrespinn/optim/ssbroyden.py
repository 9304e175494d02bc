"""Self-scaled quasi-Newton methods with a dense inverse Hessian.

SSBroyden takes a member of Broyden's family and a scaling of the whole matrix from formulas of
Al-Baali; on physics-informed losses it is far ahead of BFGS. A step costs one matrix–vector
product; the updates are collected, and worked into the matrix a number of them at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from .line_search import ValueAndGrad, search_along
from .optimiser import GrowingRounds, OptimiserState, System

TRUST = 0.03
"""How far, as a share of their length, a matrix of another window may move the parameters at first."""


RIDGE = 1e-13
"""Of the trace of ``JᵀJ``, added to it before it is inverted."""


class QuasiNewtonState(NamedTuple):
    """A point with its value and gradient, and the model of the inverse Hessian there."""

    theta: Array
    value: Array
    decrease: Array  # of the value in the last step; 0 where there was none
    gradient: Array
    inverse_hessian: Array
    direction: Array
    fresh: Array  # no curvature has been seen since the matrix was last the identity
    steps: Array
    evaluations: Array
    failed: Array  # the last line search found no lower point


class Scalars(NamedTuple):
    """What an update rule sees of a step; ``a`` is the step length, ``n`` the dimension."""

    ys: Array
    yHy: Array
    sg: Array
    a: Array
    n: int


Rule = Callable[[Scalars], tuple[Array, Array]]
"""Gives the scaling ``τ`` and Broyden's parameter ``φ``."""


def bfgs_rule(q: Scalars) -> tuple[Array, Array]:
    return jnp.ones_like(q.ys), jnp.ones_like(q.ys)


def _self_scaled(q: Scalars) -> tuple[Array, Array, Array, Array]:
    h = q.yHy / q.ys
    b = -q.a * q.sg / q.ys
    c = jnp.maximum(b * h - 1, 0)
    return h, b, c, jnp.minimum(1, 1 / b)


def ssbfgs_rule(q: Scalars) -> tuple[Array, Array]:
    """BFGS with the scaling ``τ = min(1, 1/b)``."""
    *_, scaling = _self_scaled(q)
    return scaling, jnp.ones_like(q.ys)


def ssbroyden_rule(q: Scalars) -> tuple[Array, Array]:
    """``θ`` between its bounds, as near to ``(1−b)/b`` as they allow."""
    if q.n == 1:  # the exponent 1/(n−1) has no meaning
        return bfgs_rule(q)
    h, b, c, rho_k = _self_scaled(q)
    rho = jnp.minimum(1, h * (1 - jnp.sqrt(c / (1 + c))))
    wanted = jnp.minimum(1 / rho, (1 - b) / b)
    # On a quadratic c is 0 up to rounding: θ⁻ would be 0/0, and it does not bind there.
    proper = c >= jnp.sqrt(jnp.finfo(c.dtype).eps)
    safe_c = jnp.where(proper, c, 1)
    theta = jnp.where(proper, jnp.maximum((rho - 1) / safe_c, wanted), wanted)
    sigma = jnp.where(proper, 1 + c * theta, 1)
    root = jnp.abs(sigma) ** (-1 / (q.n - 1))
    positive = theta > 0
    safe_theta = jnp.where(positive, theta, 1)
    tau = jnp.where(
        positive,
        rho_k * jnp.minimum(root, 1 / safe_theta),
        jnp.minimum(rho_k * root, sigma),
    )
    return tau, (1 - theta) / sigma


def blank(theta: Float[Array, " n"]) -> QuasiNewtonState:
    """The identity at ``theta``, with nothing evaluated yet."""
    zero = jnp.asarray(0)
    return QuasiNewtonState(
        theta=theta,
        value=jnp.zeros((), theta.dtype),
        decrease=jnp.zeros((), theta.dtype),
        gradient=jnp.zeros_like(theta),
        inverse_hessian=jnp.eye(theta.size, dtype=theta.dtype),
        direction=jnp.zeros_like(theta),
        fresh=jnp.asarray(True),
        steps=zero,
        evaluations=zero,
        failed=jnp.asarray(False),
    )


def start(
    function: ValueAndGrad, theta: Float[Array, " n"], inverse_hessian: Float[Array, "n n"]
) -> QuasiNewtonState:
    """The state at ``theta`` under a loss that may be new, keeping a matrix."""
    value, gradient = function(theta)
    return blank(theta)._replace(
        value=value,
        gradient=gradient,
        inverse_hessian=inverse_hessian,
        direction=-inverse_hessian @ gradient,
        fresh=jnp.asarray(False),
    )


def gauss_newton(system: System, theta: Float[Array, " n"]) -> Float[Array, "n n"]:
    """``(2JᵀJ + λI)⁻¹`` with a ``λ`` above rounding: the inverse Hessian where the rows are small.

    A quasi-Newton method that begins with it goes on where Gauss–Newton creeps along a curved valley, with
    a gradient for a step in place of a Jacobian.
    """
    found = system.normal_equations(theta)
    places = jnp.arange(theta.size)
    shift = RIDGE * jnp.trace(found.matrix)
    factor = jnp.linalg.cholesky(
        2 * found.matrix.at[places, places].add(shift), symmetrize_input=False
    )
    eye = jnp.eye(theta.size, dtype=theta.dtype)
    inverse = jax.scipy.linalg.cho_solve((factor, True), eye)
    return jnp.where(jnp.all(jnp.isfinite(inverse)), 0.5 * (inverse + inverse.T), eye)


def trusted(
    inverse_hessian: Float[Array, "n n"], gradient: Float[Array, " n"], radius: Array
) -> Float[Array, "n n"]:
    """``(H⁻¹ + λI)⁻¹`` with about the least ``λ`` for which its first step is within a radius.

    A matrix that was learnt at the bottom of one loss has long steps along directions that were
    flat there; on the slope of another loss these lead far away. The step ``−(H⁻¹ + λI)⁻¹g`` is the
    minimum of the quadratic model in a ball, which ``λ`` (found within a factor of 2) makes smaller.

    >>> H, g = jnp.diag(jnp.array([1e6, 1.0])), jnp.array([1.0, 1.0])
    >>> bool(jnp.linalg.norm(trusted(H, g, jnp.asarray(2.0)) @ g) <= 2)
    True
    """
    H, n = inverse_hessian, gradient.size
    direct = H @ gradient

    def factor(shift: Array) -> Array:
        return jnp.linalg.cholesky(jnp.eye(n, dtype=H.dtype) + shift * H)

    def length(shift: Array) -> Array:
        step = jax.scipy.linalg.cho_solve((factor(shift), True), direct)
        return jnp.where(jnp.all(jnp.isfinite(step)), jnp.linalg.norm(step), jnp.inf)

    def shifted() -> Array:
        # With the largest shift the step is within the radius whatever H is.
        largest = jnp.linalg.norm(gradient) / radius

        def halved(_: Array, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = bounds
            middle = 0.5 * (low + high)
            fits = length(largest * 2.0**middle) <= radius
            return jnp.where(fits, low, middle), jnp.where(fits, middle, high)

        ends = jnp.asarray(-64.0, H.dtype), jnp.asarray(0.0, H.dtype)
        _, exponent = jax.lax.fori_loop(0, 6, halved, ends)
        found = jax.scipy.linalg.cho_solve((factor(largest * 2.0**exponent), True), H)
        return 0.5 * (found + found.T)

    return jax.lax.cond(jnp.linalg.norm(direct) > radius, shifted, lambda: H)


class Change(NamedTuple):
    """``H₊ = scale·H + Σ column · rowᵀ`` with two columns and rows."""

    scale: Float[Array, ""]
    columns: Float[Array, "2 n"]
    rows: Float[Array, "2 n"]

    def times(self, Hx: Float[Array, " n"], x: Float[Array, " n"]) -> Float[Array, " n"]:
        """``H₊x`` from ``Hx``."""
        return self.scale * Hx + (self.rows @ x) @ self.columns


def update(
    s: Float[Array, " n"],
    y: Float[Array, " n"],
    Hy: Float[Array, " n"],
    sg: Float[Array, ""],
    a: Float[Array, ""],
    rule: Rule,
) -> Change:
    """The update of ``H`` for a step ``s`` over which the gradient has changed by ``y``.

    ``H₊ = (H − HyyᵀH/yᵀHy + φ(yᵀHy)vvᵀ)/τ + ssᵀ/yᵀs`` with ``v = s/yᵀs − Hy/yᵀHy``, multiplied
    out into two outer products; no change at all where ``y`` and ``s`` do not allow one.
    """
    ys, yHy = jnp.vdot(y, s), jnp.vdot(y, Hy)
    tau, phi = rule(Scalars(ys, yHy, sg, a, s.size))
    c_ss = (1 + phi * yHy / (tau * ys)) / ys
    c_sq = -phi / (tau * ys)
    c_qq = (phi - 1) / (tau * yHy)
    eps = jnp.finfo(s.dtype).eps
    usable = (ys > eps * jnp.linalg.norm(y) * jnp.linalg.norm(s)) & (yHy > 0)
    usable &= jnp.isfinite(tau) & (tau > 0) & jnp.isfinite(phi)
    coefficients = jnp.where(usable, jnp.stack([c_ss, c_sq, c_sq, c_qq]), 0).reshape(2, 2)
    columns = jnp.stack([s, Hy])
    return Change(jnp.where(usable, 1 / tau, 1), columns, coefficients @ columns)


COLLECTED = 16
"""Updates that are collected before they are worked into the matrix."""
ROWS = 128
"""Rows of the matrix that are changed at a time."""


class Collected(NamedTuple):
    """A matrix with updates not worked in yet: ``scale·matrix + Σ column · rowᵀ``.

    One update at a time would read and write the whole matrix at every step; a product of thin
    matrices does as much for many of them at once. ``benchmarks/ssbroyden.py`` has the figures.
    """

    matrix: Float[Array, "n n"]
    scale: Float[Array, ""]
    columns: Float[Array, "k n"]
    rows: Float[Array, "k n"]
    used: Int[Array, ""]  # updates collected so far

    @classmethod
    def of(cls, matrix: Float[Array, "n n"]) -> Collected:
        empty = jnp.zeros((2 * COLLECTED, matrix.shape[0]), matrix.dtype)
        return cls(matrix, jnp.ones((), matrix.dtype), empty, empty, jnp.asarray(0))

    def __matmul__(self, x: Float[Array, " n"]) -> Float[Array, " n"]:
        return self.scale * (self.matrix @ x) + (self.rows @ x) @ self.columns

    def with_change(self, change: Change) -> Collected:
        place = (2 * self.used, 0)
        return Collected(
            self.matrix,
            change.scale * self.scale,
            jax.lax.dynamic_update_slice(self.columns, change.columns, place),
            jax.lax.dynamic_update_slice(change.scale * self.rows, change.rows, place),
            self.used + 1,
        )

    def whole(self) -> Float[Array, "n n"]:
        """All updates worked in, some rows at a time: in place, and in the cache of a core."""
        n = self.matrix.shape[0]

        def with_rows(matrix: Array, first: Array | int, count: int) -> Array:
            old = jax.lax.dynamic_slice_in_dim(matrix, first, count)
            columns = jax.lax.dynamic_slice_in_dim(self.columns, first, count, axis=1)
            new = self.scale * old + jnp.matmul(columns.T, self.rows, precision="highest")
            return jax.lax.dynamic_update_slice_in_dim(matrix, new, first, axis=0)

        matrix, rest = self.matrix, n % ROWS
        if n >= ROWS:
            matrix = jax.lax.fori_loop(
                0, n // ROWS, lambda i, matrix: with_rows(matrix, i * ROWS, ROWS), matrix
            )
        return with_rows(matrix, n - rest, rest) if rest else matrix


def _step(
    function: ValueAndGrad, state: QuasiNewtonState, H: Collected, rule: Rule
) -> tuple[QuasiNewtonState, Collected]:
    """One line search and one update of ``H``, the matrix of the state."""
    g, p = state.gradient, state.direction
    found = search_along(function, state, p)
    s, y = found.step * p, found.gradient - g
    success = found.success

    # A fresh identity is given the scale of the first curvature seen (Nocedal and Wright 6.20).
    gamma = jnp.where(state.fresh & success, jnp.vdot(y, s) / jnp.vdot(y, y), 1)
    gamma = jnp.where((gamma > 0) & jnp.isfinite(gamma), gamma, 1)
    w = gamma * (H @ found.gradient)
    Hy = w + gamma * p
    s, y, Hy = (jnp.where(success, v, 0) for v in (s, y, Hy))
    change = update(s, y, Hy, jnp.vdot(s, g), found.step, rule)
    new = state._replace(
        theta=state.theta + s,
        value=jnp.where(success, found.value, state.value),
        decrease=jnp.where(success, state.value - found.value, 0),
        gradient=jnp.where(success, found.gradient, g),
        direction=jnp.where(success, -change.times(w, found.gradient), p),
        fresh=state.fresh & ~success,
        steps=state.steps + 1,
        evaluations=state.evaluations + found.evaluations,
        failed=~success,
    )
    return new, H.with_change(change._replace(scale=gamma * change.scale))


def advance(
    function: ValueAndGrad,
    state: QuasiNewtonState,
    rule: Rule,
    unfinished: Callable[[QuasiNewtonState], Array],
) -> QuasiNewtonState:
    """Steps as long as ``unfinished`` says so; after a failed search the point stays as it was."""
    Pair = tuple[QuasiNewtonState, Collected]
    nothing = jnp.zeros((0, 0), state.theta.dtype)  # the matrix is not carried twice

    def some_steps(state: QuasiNewtonState) -> QuasiNewtonState:
        matrix = state.inverse_hessian

        def going_on(pair: Pair) -> Array:
            return unfinished(pair[0]) & (pair[1].used < COLLECTED)

        def step(pair: Pair) -> Pair:
            return _step(function, pair[0], pair[1], rule)

        start = state._replace(inverse_hessian=nothing), Collected.of(matrix)
        end, collected = jax.lax.while_loop(going_on, step, start)
        return end._replace(inverse_hessian=collected.whole())

    return jax.lax.while_loop(unfinished, some_steps, state)


def is_positive_definite(matrix: Array) -> Array:
    """Whether a Cholesky factorisation of the symmetrised matrix succeeds."""
    return jnp.all(jnp.isfinite(jnp.diagonal(jnp.linalg.cholesky(0.5 * (matrix + matrix.T)))))


def on_identity(state: QuasiNewtonState) -> QuasiNewtonState:
    """The same point with the identity in place of the matrix."""
    n = state.theta.size
    return state._replace(
        inverse_hessian=jnp.eye(n, dtype=state.theta.dtype),
        direction=-state.gradient,
        fresh=jnp.asarray(True),
        failed=jnp.asarray(False),
    )


def minimise(
    function: ValueAndGrad, theta: Array, steps: int, rule: Rule = ssbroyden_rule
) -> QuasiNewtonState:
    """A plain loop for small functions; training uses the stages instead.

    >>> quadratic = jax.value_and_grad(lambda x: jnp.sum(jnp.array([1.0, 100.0]) * x**2))
    >>> bool(jnp.all(jnp.abs(minimise(quadratic, jnp.ones(2), 30).theta) < 1e-3))
    True
    """
    eye = jnp.eye(theta.size, dtype=theta.dtype)
    state = start(function, theta, eye)._replace(fresh=jnp.asarray(True))

    def unfinished(state: QuasiNewtonState) -> Array:
        return (state.steps < steps) & ~state.failed & jnp.any(state.gradient != 0)

    return advance(function, state, rule, unfinished)


@dataclass(frozen=True)
class SSBroyden(GrowingRounds[QuasiNewtonState]):
    """Self-scaled Broyden with the whole inverse Hessian and a strong-Wolfe line search.

    Args:
        begin: The first inverse Hessian: the ``identity``, or that of ``gauss-newton`` where other stages
            have come near a solution.
    """

    begin: Literal["identity", "gauss-newton"] = "identity"

    @staticmethod
    def rule(q: Scalars) -> tuple[Array, Array]:
        """The scaling and Broyden's parameter of a step."""
        return ssbroyden_rule(q)

    def init(self, system: System, theta: Array) -> QuasiNewtonState:
        return blank(theta)

    def step(self, system: System, state: QuasiNewtonState) -> QuasiNewtonState:
        last = state.steps + 1
        return self.advance(system, state, lambda s: s.steps < last)

    @property
    def cut_every(self) -> int:
        return COLLECTED  # after which the matrix is whole

    def advance(
        self,
        system: System,
        state: QuasiNewtonState,
        unfinished: Callable[[OptimiserState], Array],
    ) -> QuasiNewtonState:
        return advance(system.value_and_grad, state, self.rule, unfinished)

    def renew(self, system: System, state: QuasiNewtonState) -> QuasiNewtonState:
        """The matrix made symmetric, or the identity where it is not positive definite any more."""
        H = 0.5 * (state.inverse_hessian + state.inverse_hessian.T)
        good = is_positive_definite(H)
        new, identity = state.fresh | ~good, jnp.eye(state.theta.size, dtype=H.dtype)
        if self.begin == "gauss-newton":
            H, fresh = jnp.where(new, gauss_newton(system, state.theta), H), jnp.asarray(False)
        else:
            H, fresh = jnp.where(good, H, identity), new
        return start(system.value_and_grad, state.theta, H)._replace(
            steps=state.steps, evaluations=state.evaluations, fresh=fresh
        )

    def forget(self, state: QuasiNewtonState) -> QuasiNewtonState:
        return on_identity(state)

    def carry(
        self, system: System, state: QuasiNewtonState, before: QuasiNewtonState
    ) -> QuasiNewtonState:
        carried = super().carry(system, state, before)
        _, gradient = system.value_and_grad(carried.theta)
        radius = TRUST * jnp.linalg.norm(carried.theta)
        return carried._replace(inverse_hessian=trusted(carried.inverse_hessian, gradient, radius))


@dataclass(frozen=True)
class SSBFGS(SSBroyden):
    """BFGS with a self-scaling."""

    @staticmethod
    def rule(q: Scalars) -> tuple[Array, Array]:
        """The scaling and Broyden's parameter of a step."""
        return ssbfgs_rule(q)


@dataclass(frozen=True)
class BFGS(SSBroyden):
    """BFGS with the whole inverse Hessian."""

    @staticmethod
    def rule(q: Scalars) -> tuple[Array, Array]:
        """The scaling and Broyden's parameter of a step."""
        return bfgs_rule(q)
