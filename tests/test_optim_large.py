"""The optimisers for large networks, against formulas, oracles and problems with known answers."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hyrespinn.errors import UserError
from hyrespinn.optim import adam, lbfgs
from hyrespinn.optim.soap import soap

pytestmark = pytest.mark.usefixtures("x64")


def rotation(rng, n):
    return jnp.asarray(np.linalg.qr(rng.normal(size=(n, n)))[0])


@partial(jax.jit, static_argnums=0)
def directions(transform, gradients):
    """What a transformation makes of a sequence of gradients, and its last state."""
    state = transform.init(jnp.zeros_like(gradients[0]))
    return jax.lax.scan(lambda s, g: transform.update(g, s)[::-1], state, gradients)[::-1]


def train(function, theta, transform, rate, steps):
    """The path of a compiled training loop."""

    @jax.jit
    def run(theta):
        def body(state, _):
            state = adam.step(function, state, lambda _: rate, transform)
            return state, state.theta

        return jax.lax.scan(body, adam.start(theta, transform), length=steps)[1]

    return run(theta)


# SOAP


def refreshed(P, Q, V):
    """Columns sorted by their share of P, then one power iteration; V's rows move with them."""
    order = np.argsort(-np.diag(Q.T @ P @ Q))
    return np.linalg.qr(P @ Q[:, order])[0], V[order]


def soap_by_hand(gradients, b1, b2, eps, every, sides):
    """The paper's Algorithm 3 for one matrix, with numpy; the first gradient gives the bases."""
    m, n = gradients[0].shape
    L, R, M, V = np.zeros((m, m)), np.zeros((n, n)), np.zeros((m, n)), np.zeros((m, n))
    QL, QR, out = np.eye(m), np.eye(n), []
    for t, G in enumerate(gradients):
        if t:
            M = b1 * M + (1 - b1) * G
            V = b2 * V + (1 - b2) * (QL.T @ G @ QR) ** 2
            N = (QL.T @ M @ QR) / (1 - b1**t) / (np.sqrt(V / (1 - b2**t)) + eps)
            out.append(QL @ N @ QR.T)
        L, R = b2 * L + (1 - b2) * G @ G.T, b2 * R + (1 - b2) * G.T @ G
        if t % every == 0 and "L" in sides:
            QL, V = refreshed(L, QL, V) if t else (np.linalg.eigh(L)[1][:, ::-1], V)
        if t % every == 0 and "R" in sides:
            QR, VT = refreshed(R, QR, V.T) if t else (np.linalg.eigh(R)[1][:, ::-1], V.T)
            V = VT.T
    return np.stack(out)


@pytest.mark.parametrize(("shape", "largest", "sides"), [
    ((5, 4), 9, "LR"), ((5, 4), 4, "R"), ((4, 5), 4, "L"),
])  # fmt: skip
def test_soap_follows_the_papers_algorithm(shape, largest, sides):
    rng = np.random.default_rng(0)
    gradients = rng.normal(size=(12, *shape))
    transform = soap([shape], b1=0.9, b2=0.8, every=3, largest=largest)
    got, _ = directions(transform, jnp.asarray(gradients.reshape(12, -1)))
    expected = soap_by_hand(gradients, 0.9, 0.8, 1e-8, 3, sides)
    np.testing.assert_allclose(got[1:].reshape(-1, *shape), expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(got[0], 0)


def test_soap_is_adam_on_vectors_and_scalars_and_what_is_too_large():
    rng = np.random.default_rng(1)
    gradients = jnp.asarray(rng.normal(size=(25, 15)))
    shapes = [(4,), (2, 3), (), (2, 2)]
    expected, _ = directions(optax.scale_by_adam(b1=0.9, b2=0.99, eps=1e-8), gradients)
    for largest, plain in ((1, np.r_[0:15]), (2, np.r_[0:4, 10])):
        got, _ = directions(soap(shapes, b1=0.9, b2=0.99, largest=largest), gradients)
        np.testing.assert_allclose(got[:, plain], expected[:, plain], rtol=1e-11)


def test_soap_treats_equal_shapes_as_if_each_were_alone():
    rng = np.random.default_rng(2)
    gradients = jnp.asarray(rng.normal(size=(12, 18)))
    together, state = directions(soap([(3, 2), (2, 3), (3, 2)], every=4), gradients)
    assert len(state.groups) == 2
    for k, shape in enumerate([(3, 2), (2, 3), (3, 2)]):
        part = slice(6 * k, 6 * k + 6)
        alone, _ = directions(soap([shape], every=4), gradients[:, part])
        np.testing.assert_allclose(together[:, part], alone, rtol=1e-9, atol=1e-12)


def test_soaps_bases_are_orthogonal_and_diagonalise_the_covariance():
    """Gradients of constant covariance; the bases from the first one are far off."""
    rng = np.random.default_rng(3)
    A = rotation(rng, 5) * jnp.logspace(0, -1.6, 5)
    B = rotation(rng, 4) * jnp.logspace(0, -1.2, 4)
    noise = jnp.asarray(rng.normal(size=(400, 5, 4)))
    gradients = jnp.einsum("ij,tjk,lk->til", A, noise, B).reshape(400, -1)
    _, state = directions(soap([(5, 4)], b2=0.995, every=2), gradients)
    for side, exact in ((state.groups[0].left, A), (state.groups[0].right, B)):
        Q, P = np.asarray(side.basis[0]), np.asarray(side.covariance[0])
        np.testing.assert_allclose(Q.T @ Q, np.eye(len(Q)), atol=1e-12)
        diagonal = Q.T @ P @ Q
        size = np.sqrt(np.outer(np.diag(diagonal), np.diag(diagonal)))
        assert np.abs(diagonal / size - np.eye(len(Q))).max() < 0.1
        assert np.all(np.diff(np.diag(diagonal)) < 0)
        leading = exact[:, 0] / jnp.linalg.norm(exact[:, 0])
        assert abs(float(leading @ Q[:, 0])) > 0.99


def test_second_moments_move_with_the_columns_they_belong_to():
    """Two directions whose sizes change places: each keeps its second moment through the sort."""
    big, small = jnp.array([[10.0, 0], [0, 1]]), jnp.array([[1.0, 0], [0, 10]])
    gradients = jnp.stack([big] * 10 + [small] * 30).reshape(40, 4)
    _, state = directions(soap([(2, 2)], b2=0.9, every=1), gradients)
    group = state.groups[0]
    np.testing.assert_allclose(abs(group.left.basis[0]), [[0, 1], [1, 0]], atol=1e-3)
    old = 0.9**30 * (1 - 0.9**9)  # the weight of the nine gradients before the change
    expected = [old * 1 + (1 - 0.9**30) * 100, old * 100 + (1 - 0.9**30) * 1]
    np.testing.assert_allclose(np.diag(group.second[0]), expected, rtol=0.01)


def matrix_problem(seed, n=5, condition=1e2):
    """½‖A(W − W*)B‖² with A and B in no particular basis, from W = 0."""
    rng = np.random.default_rng(seed)
    scales = jnp.asarray(np.logspace(0, -np.log10(condition), n))
    A, B = (rotation(rng, n) * scales @ rotation(rng, n) for _ in range(2))
    exact = jnp.asarray(rng.normal(size=(n, n)))
    return lambda W: 0.5 * jnp.sum((A @ (W - exact) @ B) ** 2), rng


def test_soap_does_not_see_the_basis_of_a_matrix_and_adam_does():
    loss, rng = matrix_problem(4, condition=2)
    U, V = rotation(rng, 5), rotation(rng, 5)
    plain = jax.value_and_grad(lambda x: loss(x.reshape(5, 5)))
    turned = jax.value_and_grad(lambda x: loss(U.T @ x.reshape(5, 5) @ V))

    def gap(transform):
        one = train(plain, jnp.zeros(25), transform, 0.01, 40).reshape(-1, 5, 5)
        other = train(turned, jnp.zeros(25), transform, 0.01, 40).reshape(-1, 5, 5)
        return float(jnp.abs(U @ one @ V.T - other).max() / jnp.abs(one).max())

    assert gap(soap([(5, 5)], every=5)) < 1e-6
    assert gap(optax.scale_by_adam(b1=0.95, b2=0.95)) > 0.1


def test_soap_is_far_ahead_of_adam_on_ill_conditioned_least_squares():
    """On the mean of the last iterates: with a constant rate a single one swings by a factor of two."""
    loss, _ = matrix_problem(5, n=8, condition=30)
    value = lambda x: loss(x.reshape(8, 8))  # noqa: E731
    function = jax.value_and_grad(value)
    ends = [
        jax.vmap(value)(train(function, jnp.zeros(64), transform, 0.01, 1000)[-200:]).mean()
        for transform in (soap([(8, 8)]), optax.scale_by_adam(b1=0.95, b2=0.95))
    ]
    assert ends[0] < 0.05 * ends[1]


@pytest.mark.parametrize("dtype", [pytest.param("float64", marks=pytest.mark.slow), "float32"])
def test_soap_stays_finite(dtype):
    """No gradient, of rank one, so small that its square vanishes, and one that comes late."""
    shapes = [(4, 3), (5, 1), (1, 1), (4, 3), (0, 2), (2, 2, 2), (3,), ()]
    transform = soap(shapes, every=3)
    rng = np.random.default_rng(6)
    rank_one = [
        np.multiply.outer(*map(rng.normal, (0, 0), (1, 1), (s[:1], s[1:]))) for s in shapes[:-1]
    ]
    gradient = np.concatenate([*(G.ravel() for G in rank_one), [1.0]])
    late = np.arange(20)[:, None] >= 10
    for scale in (0.0, 1.0, 1e-30, late):
        sequence = jnp.asarray(scale * np.tile(gradient, (20, 1)), dtype)
        got, state = directions(transform, sequence)
        assert got.dtype == dtype
        assert bool(jnp.all(jnp.isfinite(got)))
        assert np.any(scale) or not np.any(got)
        for side in (side for group in state.groups for side in group[2:]):
            assert side.basis.dtype == dtype
            eye = np.broadcast_to(np.eye(side.basis.shape[-1]), side.basis.shape)
            np.testing.assert_allclose(side.basis.mT @ side.basis, eye, atol=1e-5)


def test_soap_keeps_the_columns_that_no_gradient_has_touched():
    gradients = jnp.tile(jnp.asarray(np.outer([3, 4, 0.0], [1, 2, 2])).ravel(), (30, 1))
    transform = soap([(3, 3)], every=1)
    _, early = directions(transform, gradients[:1])
    _, late = directions(transform, gradients)
    for a, b in zip(early.groups[0][2:], late.groups[0][2:], strict=True):
        np.testing.assert_allclose(abs(a.basis), abs(b.basis), atol=1e-6)


def test_soap_names_what_does_not_fit():
    with pytest.raises(UserError, match=r"6 numbers .* vector of 7"):
        soap([(3, 2)]).init(jnp.zeros(7))
    with pytest.raises(UserError, match="every ≥ 1"):
        soap([(3, 2)], every=0)


# L-BFGS

step = jax.jit(lbfgs.step, static_argnums=0)
remember, apply = jax.jit(lbfgs.remember), jax.jit(lbfgs.apply)
minimise = jax.jit(lbfgs.minimise, static_argnums=(0, 2), static_argnames="memory")


def rosenbrock(x):
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


ROSENBROCK = jax.value_and_grad(rosenbrock)


def random_pairs(seed, count, n):
    """Pairs of one quadratic, so that all have curvature."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n))
    s = rng.normal(size=(count, n))
    return s, s @ (root @ root.T + np.eye(n)), rng.normal(size=n)


def filled(pairs, memory, n):
    """A memory with pairs pushed in turn."""
    state = lbfgs.empty(jnp.zeros(n), memory)
    for s, y in pairs:
        state, _ = remember(state, jnp.asarray(s), jnp.asarray(y))
    return state


def dense_inverse(pairs, n):
    """BFGS's matrix, built with numpy from a scaled identity."""
    s, y = pairs[-1]
    H = np.eye(n) * (s @ y) / (y @ y)
    for s, y in pairs:
        rho = 1 / (s @ y)
        left = np.eye(n) - rho * np.outer(s, y)
        H = left @ H @ left.T + rho * np.outer(s, s)
    return H


@pytest.mark.parametrize("count", [1, 3, 5, 12])
def test_the_memory_stands_for_the_dense_bfgs_matrix_of_its_pairs(count):
    s, y, x = random_pairs(0, count, 7)
    memory = filled(zip(s, y, strict=True), 5, 7)
    expected = dense_inverse(list(zip(s, y, strict=True))[-5:], 7) @ x
    np.testing.assert_allclose(apply(memory, jnp.asarray(x)), expected, rtol=1e-9)


def test_directions_are_those_of_optax():
    """Both are shown the points and gradients of one path."""
    gradient = jax.jit(jax.grad(rosenbrock))
    rng = np.random.default_rng(1)
    path = jnp.asarray(np.cumsum(0.02 * rng.uniform(size=(9, 6)), axis=0) + 1)
    reference = optax.scale_by_lbfgs(memory_size=4)
    update = jax.jit(reference.update)
    theirs, ours = reference.init(path[0]), lbfgs.empty(path[0], 4)
    last = None
    for x in path:
        g = gradient(x)
        expected, theirs = update(g, theirs, x)
        if last is not None:
            ours, usable = remember(ours, x - last[0], g - last[1])
            assert bool(usable)  # optax takes any pair, so all must have curvature here
            np.testing.assert_allclose(apply(ours, g), expected, rtol=1e-9)
        last = x, g


@pytest.mark.parametrize("kind", ["negative", "orthogonal", "zero", "nan", "failed"])
def test_a_pair_without_curvature_does_not_enter(kind):
    s, y, _ = random_pairs(2, 4, 3)
    memory = filled(zip(s[:3], y[:3], strict=True), 2, 3)
    bad = {
        "negative": -y[3],
        "orthogonal": np.cross(s[3], y[3]),
        "zero": 0 * y[3],
        "nan": y[3] * np.nan,
        "failed": y[3],
    }[kind]
    after, usable = remember(memory, jnp.asarray(s[3]), jnp.asarray(bad), kind != "failed")
    assert not bool(usable)
    jax.tree.map(np.testing.assert_array_equal, after, memory)


def test_the_first_step_is_steepest_descent_of_length_one_at_most():
    theta = jnp.array([3.0, -2.0, 1.0])
    for scale in (50.0, 0.2):  # a gradient longer than one, and a shorter one
        function = jax.value_and_grad(lambda x: 0.5 * scale * jnp.sum(x**2))
        state = lbfgs.start(function, theta)
        end = step(function, state)
        g = np.asarray(state.gradient)
        assert int(end.evaluations) == 1
        expected = -g / max(np.linalg.norm(g), 1)
        np.testing.assert_allclose(end.theta - theta, expected, rtol=1e-12)
        assert not bool(end.fresh)
        forgotten = lbfgs.forget(end)
        np.testing.assert_array_equal(apply(forgotten.memory, end.gradient), end.gradient)
        assert bool(forgotten.fresh)


@pytest.mark.parametrize("n", [1, 2, 10])
def test_a_quadratic_of_few_dimensions_ends_soon(n):
    scales = jnp.logspace(0, 2, n)
    function = jax.value_and_grad(lambda x: 0.5 * jnp.sum(scales * x**2))
    end = minimise(function, jnp.ones(n), 6 * n + 6)
    assert float(end.value) < 1e-10


def test_rosenbrock_is_solved():
    end = minimise(ROSENBROCK, jnp.full(10, -1.2), 300)
    np.testing.assert_allclose(end.theta, 1.0, atol=1e-6)


def test_single_precision_stays_single():
    end = minimise(ROSENBROCK, jnp.full(4, -1.2, jnp.float32), 200)
    assert {leaf.dtype for leaf in jax.tree.leaves((end.theta, end.memory[:4]))} == {
        jnp.dtype("float32")
    }
    np.testing.assert_allclose(end.theta, 1.0, atol=1e-2)


def test_renewal_keeps_the_memory_and_lets_no_false_pair_in():
    """The new function has another minimum: a difference across the change would be false."""
    A = jnp.diag(jnp.array([1.0, 4.0, 9.0]))
    old = jax.value_and_grad(lambda x: 0.5 * x @ A @ x)
    new = jax.value_and_grad(lambda x: 0.5 * (x - 5) @ A @ (x - 5))
    state = lbfgs.start(old, jnp.ones(3))
    for _ in range(2):
        state = step(old, state)
    again = lbfgs.renewed(new, state)
    jax.tree.map(np.testing.assert_array_equal, again.memory, state.memory)
    value, gradient = new(state.theta)
    np.testing.assert_allclose(again.value, value)
    np.testing.assert_allclose(again.gradient, gradient)
    assert float(again.decrease) == 0
    after = step(new, again)
    assert int(after.memory.taken) == 3
    np.testing.assert_allclose(after.memory.y[:3], after.memory.s[:3] @ A, atol=1e-12)


def test_a_failed_search_leaves_all_as_it_was():
    state = lbfgs.start(ROSENBROCK, jnp.full(3, 0.5))
    for _ in range(3):
        state = step(ROSENBROCK, state)
    after = step(lambda x: (state.value + 1, state.gradient), state)  # higher wherever it looks
    assert bool(after.failed)
    assert int(after.evaluations) > int(state.evaluations)
    for name in ("theta", "value", "gradient", "memory", "fresh"):
        jax.tree.map(np.testing.assert_array_equal, getattr(after, name), getattr(state, name))
    recovered = lbfgs.forget(after)
    assert not bool(recovered.failed)
    assert float(step(ROSENBROCK, recovered).value) < float(state.value)


def test_at_the_minimum_a_step_fails_without_an_evaluation():
    function = jax.value_and_grad(lambda x: jnp.sum(x**2))
    end = step(function, lbfgs.start(function, jnp.zeros(3)))
    assert bool(end.failed)
    assert int(end.evaluations) == 0
    np.testing.assert_array_equal(end.theta, 0)


def test_a_compiled_loop_may_reuse_its_states():
    """Donated states of both, in loops whose length is an argument."""

    def run(state, count):
        def unfinished(state):
            return (state.steps < count) & ~state.failed

        return jax.lax.while_loop(unfinished, lambda s: lbfgs.step(ROSENBROCK, s), state)

    state = lbfgs.start(ROSENBROCK, jnp.full(6, -1.2), memory=5)
    end = jax.jit(run, donate_argnums=0)(state, 25)
    assert state.memory.s.is_deleted()
    assert int(end.steps) == 25
    expected = minimise(ROSENBROCK, jnp.full(6, -1.2), 25, memory=5)
    np.testing.assert_allclose(end.theta, expected.theta, rtol=1e-6)

    transform = soap([(2, 2), (2,)])
    begun = adam.start(jnp.full(6, -1.2), transform)

    def run_soap(state, count):
        body = lambda _, s: adam.step(ROSENBROCK, s, lambda _: 0.01, transform)  # noqa: E731
        return jax.lax.fori_loop(0, count, body, state)

    after = jax.jit(run_soap, donate_argnums=0)(begun, 30)
    assert begun.theta.is_deleted()
    assert float(rosenbrock(after.theta)) < float(rosenbrock(jnp.full(6, -1.2)))


def test_an_empty_memory_is_refused():
    with pytest.raises(UserError, match="at least one pair"):
        lbfgs.blank(jnp.zeros(2), 0)
