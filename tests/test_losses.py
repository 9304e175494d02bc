"""Every residual vector against nested reverse mode, the total, and how points are drawn."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.derivatives import lift
from hyrespinn.geometry.sampling import PoissonDisk, sampler_named, uniform
from hyrespinn.losses import blocks
from hyrespinn.losses.adaptive import Adaptivity
from hyrespinn.losses.context import first_window
from hyrespinn.losses.jacobian import pulled, weighted_rows
from hyrespinn.losses.objective import Objective
from hyrespinn.losses.terms import Counts, Sampling, Weights
from hyrespinn.models import Gates, Model, Moving
from hyrespinn.models.kernels import Gaussian
from hyrespinn.models.parameters import cast, flatten
from hyrespinn.problems.boundary import Lifted, Penalty
from hyrespinn.problems.statement import state

SCENE = hp.TimeBox(t=(0.0, 1.0), x=(0.0, 2.0), y=(-1.0, 1.0))
LINE = hp.Box(x=(0.0, 1.0))
KEY = jax.random.key(5)
PENALTY = Penalty()
WEIGHTS = Weights(2.0, 30.0, 40.0)
TINY = hp.HyResPINN(width=6, kernels=Moving(5, Gaussian()), gates=Gates(beta=0.6, penalty=0.1))


class Plain(Model):
    """The cheapest network there is: ``sin(θ·x)``, one field; it has no penalty."""

    theta: jax.Array

    def __call__(self, x):
        return lift(lambda a: jnp.sin(a @ self.theta[:, None]), x)


def objective(
    residual,
    conditions,
    domain=LINE,
    fields=("u",),
    boundary=PENALTY,
    counts=(24, 10, 12),
    config=None,
    sampler=uniform,
    weights=WEIGHTS,
):
    """The objective of a problem made for one test, and the parameters of its network."""
    body = {"domain": domain, "fields": fields, "conditions": lambda self: list(conditions)}
    body["residual"] = lambda self, *arguments: residual(*arguments)
    problem = type("Made", (hp.Problem,), body)()
    with jax.enable_x64(True):
        statement = state(problem)
        theta, assemble = jnp.linspace(1.0, 2.0, domain.dimension), Plain
        if config is not None:
            model = config.build(boundary.inputs(statement), jax.random.key(0))
            theta, assemble = flatten(cast(model, "float64"))
        sampling = Sampling(Counts(*counts), sampler, jnp.dtype("float64"))
        made = Objective(statement, assemble, boundary, sampling=sampling, weights=weights)
    return made, theta


@cache
def everything():
    """One problem with every kind of condition, all of them left to the loss."""
    conditions = [
        hp.Initial(lambda p: jnp.sin(p.x) * p.y, "u"),
        hp.Initial(0.5, "v", derivative="t", weight=7.0),
        hp.Dirichlet(lambda p: p.t * p.y, "x.min", "u"),
        hp.Neumann(lambda p: p.t + p.nx, ("x.max", "y"), "v", weight=0.5),
        hp.Boundary(lambda u, v, p: p.nx * u.x + p.ny * u.y + 2 * v - p.t, on="x", name="robin"),
        hp.Boundary(lambda u, v, p: (u * v, u.ty), on="y.min"),
        hp.Periodic("y"),
        hp.MeanValue(0.3, "v"),
        hp.Interface(lambda u, v, p: p.ny * u.y - v.x * p.t, axis="y", at=(-0.5, 0.25)),
    ]
    residual = lambda u, v, p: (u.t - u.xx * v + p.x, v.yy + u.xy - u**2)  # noqa: E731
    return objective(residual, conditions, SCENE, ("u", "v"), config=TINY)


def oracle(points, normals):
    """Every residual vector by hand, from nested reverse mode of the network alone."""
    made, theta = everything()
    model = made.assemble(theta)
    one = lambda x: model(x[None])[0]  # noqa: E731
    orders = [one, jax.jacrev(one), jax.jacrev(jax.jacrev(one))]
    # A mean over the domain is that of Gauss's formula: 3³ nodes are nearest to 24 points.
    nodes, share = np.polynomial.legendre.leggauss(3)
    cube = np.stack(np.meshgrid(nodes, nodes, nodes, indexing="ij"), -1).reshape(-1, 3)
    weights = np.einsum("i,j,k->ijk", share, share, share).ravel() / 8
    gauss = jnp.asarray([0.5, 1.0, 0.0] + np.array([0.5, 1.0, 1.0]) * cube)
    points = {**points, "top": points["periodic_y"].at[:, 2].set(1.0), "meanvalue_v": gauss}
    every = jax.jit(jax.vmap(lambda x: [f(x) for f in orders]))(jnp.concatenate([*points.values()]))
    ends = np.cumsum([len(v) for v in points.values()])
    known = {
        k: [e[n - len(v) : n] for e in every]
        for (k, v), n in zip(points.items(), ends, strict=True)
    }

    def d(field, name, where):
        axes = tuple("txy".index(c) for c in name)
        return known[where][len(axes)][(slice(None), "uv".index(field), *axes)]

    t, x, y = ({k: v[:, i] for k, v in points.items()} for i in range(3))
    nx, ny = ({k: v[:, i] for k, v in normals.items() if v is not None} for i in (1, 2))
    jumps = [d(f, n, "top") - d(f, n, "periodic_y") for n in ("", "y") for f in "uv"]
    i, w, b, r, f = "interior", "neumann_v", "boundary", "robin", "interface"
    return {
        "residual_1": d("u", "t", i) - d("u", "xx", i) * d("v", "", i) + x[i],
        "residual_2": d("v", "yy", i) + d("u", "xy", i) - d("u", "", i) ** 2,
        "initial_u": d("u", "", "initial_u") - np.sin(x["initial_u"]) * y["initial_u"],
        "initial_v_t": d("v", "t", "initial_v_t") - 0.5,
        "dirichlet_u": d("u", "", "dirichlet_u") - t["dirichlet_u"] * y["dirichlet_u"],
        w: nx[w] * d("v", "x", w) + ny[w] * d("v", "y", w) - t[w] - nx[w],
        r: nx[r] * d("u", "x", r) + ny[r] * d("u", "y", r) + 2 * d("v", "", r) - t[r],
        "boundary_1": d("u", "", b) * d("v", "", b),
        "boundary_2": d("u", "ty", b),
        "periodic_y": np.concatenate([np.stack(jumps[k : k + 2], 1).ravel() for k in (0, 2)]),
        "meanvalue_v": np.array([weights @ d("v", "", "meanvalue_v") - 0.3]),
        f: d("u", "y", f) - d("v", "x", f) * t[f],
    }


@cache
def evaluated():
    """Its points, residual vectors and losses, compiled once."""
    made, theta = everything()
    with jax.enable_x64(True):
        samples = made.draw(KEY)
        both = jax.jit(lambda *a: (made.residuals(*a), made.losses(*a)))
        return samples, *both(theta, samples)


def test_every_residual_vector_equals_nested_reverse_mode(x64):
    samples, vectors, _ = evaluated()
    points = {k: s.points for k, s in samples.items()}
    expected = oracle(points, {k: s.normals for k, s in samples.items()})
    assert set(vectors) == set(expected)
    for name, vector in expected.items():
        np.testing.assert_allclose(vectors[name], vector, rtol=1e-9, atol=1e-9, err_msg=name)


def test_the_total_is_the_weighted_sum_and_the_penalty(x64):
    """A condition's own weight (here of ``initial_v_t``, ``neumann_v``) wins over the default."""
    made, theta = everything()
    _, vectors, losses = evaluated()
    weights = {"residual_1": 2, "residual_2": 2, "initial_u": 30, "initial_v_t": 7,
               "dirichlet_u": 40, "neumann_v": 0.5, "robin": 40, "boundary_1": 40,
               "boundary_2": 40, "periodic_y": 40, "meanvalue_v": 40, "interface": 40}  # fmt: skip
    for name in weights:
        np.testing.assert_allclose(losses[name], np.mean(np.square(vectors[name])), rtol=1e-12)
    block = made.assemble(theta).blocks[0]
    penalty = 0.1 * (block.alpha**2 + block.beta**2)
    np.testing.assert_allclose(losses["penalty"], penalty, rtol=1e-12)
    total = sum(w * losses[name] for name, w in weights.items()) + penalty
    np.testing.assert_allclose(losses["total"], total, rtol=1e-12)
    assert set(losses) == {*weights, "penalty", "total"}


@pytest.mark.parametrize("time", [False, True], ids=["steady", "in time"])
def test_conditions_weigh_by_how_far_they_are_below_the_equation(time, x64):
    """k^2(p − q), with k² = 3 here and 40 for one order; derivatives by time are none by space."""
    conditions = {
        hp.Dirichlet(0.0, "x.min"): 40 * 3.0**3,
        hp.Dirichlet(0.0, "x.max", weight=5.0): 5.0,
        hp.Neumann(0.0, "x.min"): 40 * 3.0**2,
        hp.Boundary(lambda u, p: u.xx - u, on="x.max"): 40 * 3.0,
        hp.Boundary(lambda u, p: u.xxx, on="x.min", name="force"): 40,
        hp.Boundary(lambda u, p: u.xxxxx, on="x.max", name="above the equation"): 40,
        hp.Boundary(lambda u, p: u - p.x, on="x.max", name="value"): 40 * 3.0**3,
        hp.Interface(lambda u, p: u.x, axis="x", at=(0.5,)): 40 * 3.0**2,
        hp.Periodic("x"): 40,
        hp.MeanValue(0.0): 40,
    }
    started = {hp.Initial(0.0): 30} if time else {}
    made, _ = objective(
        (lambda u, p: u.t + u.txxxx) if time else (lambda u, p: u.xxxx),
        [*started, *conditions],
        domain=hp.TimeBox(t=(0.0, 1.0), x=(0.0, 1.0)) if time else LINE,
        weights=replace(WEIGHTS, per_order=3.0),
    )
    wanted = [2.0, *started.values(), *conditions.values()]
    assert [term.weight for term in made.terms] == pytest.approx(wanted)


def test_draws_follow_their_key_and_lie_where_the_condition_holds(x64):
    made, _ = everything()
    one, again, other = made.draw(KEY), made.draw(KEY), made.draw(jax.random.key(6))
    counts = {"interior": 24, "initial_u": 10, "initial_v_t": 10, "meanvalue_v": 27}
    for name, samples in one.items():
        assert len(samples.points) == counts.get(name, 12)
        np.testing.assert_array_equal(samples.points, again[name].points)
        same = np.array_equal(samples.points, other[name].points)
        assert same is (name == "meanvalue_v"), "the nodes of a mean are fixed, all others fresh"
    for name, axis, value in (("initial_u", 0, 0), ("dirichlet_u", 1, 0), ("periodic_y", 2, -1)):
        np.testing.assert_array_equal(one[name].points[:, axis], value)


def test_an_interface_has_points_on_all_its_planes(x64):
    made, _ = everything()
    samples = made.draw(KEY)["interface"]
    heights, numbers = np.unique(samples.points[:, 2], return_counts=True)
    assert heights.tolist() == [-0.5, 0.25]
    assert numbers.tolist() == [6, 6]
    np.testing.assert_array_equal(samples.normals, np.tile([0.0, 0.0, 1.0], (12, 1)))
    t, x = samples.points[:, 0], samples.points[:, 1]
    assert np.all((t >= 0) & (t <= 1) & (x >= 0) & (x <= 2))
    assert np.ptp(x) > 0.5


RING = hp.Annulus(0.25, 1.0)


def test_an_interface_stays_inside_a_ring(x64):
    """The plane y = 0.1 runs through the hole, where there is no field."""
    jump = hp.Interface(lambda u, p: 3 * u.y + p.ny, axis="y", at=0.1, name="seam", weight=2.0)
    made, theta = objective(lambda u, p: u.xx, [jump], RING, counts=(24, 1, 40))
    samples, vectors, losses = jax.jit(
        lambda s: (s["seam"], made.residuals(theta, s), made.losses(theta, s))
    )(made.draw(KEY))
    x, y = np.asarray(samples.points).T
    np.testing.assert_array_equal(y, 0.1)
    assert np.all((np.hypot(x, y) >= 0.25) & (np.hypot(x, y) <= 1))
    assert {-1.0, 1.0} == set(np.sign(x)), "on both sides of the hole"
    slope = theta[1] * np.cos(np.asarray(samples.points) @ np.asarray(theta))
    np.testing.assert_allclose(vectors["seam"], 3 * slope + 1, rtol=1e-12)
    np.testing.assert_allclose(losses["total"] - 2 * losses["residual"], 2 * losses["seam"])


@pytest.mark.parametrize(
    ("function", "mean"),
    [
        (lambda x, y: 1 + 0 * x, 1.0),
        (lambda x, y: x, 0.0),
        (lambda x, y: x**2, (1 + 0.25**2) / 4),
        (lambda x, y: x**2 * y**2, (1 - 0.25**6) / (1 - 0.25**2) / 24),
    ],
)
def test_the_mean_over_a_ring_is_a_quadrature(function, mean, x64):
    """To many digits, with 400 points: a few random ones would move the whole solution."""
    made, _ = objective(lambda u, p: u.xx, [hp.MeanValue(0.75)], RING, counts=(400, 1, 1))
    term = made.terms[1]
    solution = lambda points: function(points[:, 0], points[:, 1])[:, None]  # noqa: E731
    vector = term.residuals(solution, term.draw(KEY))["meanvalue"]
    assert vector.shape == (1,)
    np.testing.assert_allclose(vector, mean - 0.75, atol=1e-10)


MOVIE_OF_A_RING = RING.over(t=(0.0, 0.5))
PLACES = [
    hp.Initial(0.0),
    hp.Dirichlet(0.0, "outer"),
    hp.Neumann(0.0, "inner"),
    hp.Interface(lambda u, p: u.y, axis="y", at=(0.1, -0.6)),
    hp.MeanValue(0.0),
]


@pytest.mark.parametrize(
    "sampler", ["sobol", "poisson", pytest.param("latin", marks=pytest.mark.slow)]
)
def test_every_sampler_draws_where_each_term_holds(sampler, x64):
    made, theta = objective(
        lambda u, p: u.t - u.laplacian,
        PLACES,
        MOVIE_OF_A_RING,
        counts=(50, 20, 30),
        sampler=sampler_named(sampler),
    )
    by = Adaptivity(pool=4, power=1.0, floor=0.1)
    both = jax.jit(lambda key: (made.draw(key), made.draw_adaptive(theta, key, by=by)))
    samples, adaptive = both(KEY)
    counts = {"interior": 50, "initial": 20, "dirichlet": 30, "neumann": 30, "interface": 30}
    assert {k: len(s.points) for k, s in samples.items() if k != "meanvalue"} == counts
    t, x, y = ({k: np.asarray(s.points[:, i]) for k, s in samples.items()} for i in range(3))
    for name in samples:
        assert np.all(MOVIE_OF_A_RING.contains(np.asarray(samples[name].points)))
        if name != "interior":
            assert len(np.unique(np.asarray(samples[name].points), axis=0)) == t[name].size
    np.testing.assert_array_equal(t["initial"], 0)
    np.testing.assert_allclose(np.hypot(x["dirichlet"], y["dirichlet"]), 1)
    np.testing.assert_allclose(np.hypot(x["neumann"], y["neumann"]), 0.25)
    assert set(y["interface"]) == {0.1, -0.6}
    assert np.all(MOVIE_OF_A_RING.contains(np.asarray(adaptive["interior"].points)))
    assert adaptive["interior"].points.shape == (50, 3)


def ordered(points):
    return np.array(sorted(np.asarray(points).tolist()))


def test_poisson_disk_points_are_one_set_in_any_order(x64):
    """Fresh or adaptive, the same points for every term; a part of them makes a batch."""
    made, theta = objective(
        lambda u, p: u.t - peak(p) * u.laplacian,
        PLACES,
        MOVIE_OF_A_RING,
        counts=(50, 20, 30),
        sampler=PoissonDisk(),
    )
    one, two = made.draw(KEY), made.draw(jax.random.key(6))
    by = Adaptivity(pool=8, power=1.0, floor=0.1)
    chosen = made.draw_adaptive(theta, jax.random.key(7), by=by)
    for name in one:
        np.testing.assert_array_equal(ordered(one[name].points), ordered(two[name].points))
        np.testing.assert_array_equal(ordered(one[name].points), ordered(chosen[name].points))
    assert not np.array_equal(one["interior"].points, two["interior"].points)
    assert not np.array_equal(one["interior"].points, chosen["interior"].points)


@pytest.mark.parametrize("conditions", [
    [hp.Boundary(lambda u, p: (u, u.x)), hp.Boundary(lambda u, p: u.xx)],
    [hp.Boundary(lambda u, p: u, name="residual")],
    [hp.Boundary(lambda u, p: u, name="interior"), hp.Boundary(lambda u, p: u, name="penalty")],
    [hp.Neumann(0.0, "x.min"), hp.Neumann(1.0, "x.max"), hp.Neumann(0.0)],
    [hp.Dirichlet(0.0, "x.min"), hp.Boundary(lambda u, p: u.x, name="dirichlet")],
])  # fmt: skip
def test_no_two_vectors_share_a_name(conditions, x64):
    made, theta = objective(lambda u, p: u.xx, conditions)
    samples, solution = made.draw(KEY), made.solution(theta)
    names = [n for term in made.terms for n in term.residuals(solution, samples[term.name])]
    assert len({term.name for term in made.terms}) == len(made.terms)
    assert len({*names, "total", "penalty"}) == len(names) + 2


@pytest.mark.parametrize(
    ("boundary", "own", "is_built_in"),
    [
        (Lifted(), None, True),
        (Penalty(), None, False),
        (Lifted(), False, False),
        (Penalty(), True, True),
    ],
)
def test_periodicity_is_built_in_or_a_term_never_neither(boundary, own, is_built_in, x64):
    condition = hp.Periodic("x", exact=own)
    made, theta = objective(lambda u, p: u.xx, [condition], boundary=boundary, config=TINY)
    left, right = made.solution(theta)(jnp.array([[0.0], [1.0]]))[:, 0]
    assert [term.name for term in made.terms[1:]] == ([] if is_built_in else ["periodic_x"])
    assert bool(abs(left - right) < 1e-12) is is_built_in


def peak(p):
    return jnp.exp(-(((p.x - 0.3) / 0.03) ** 2))


def adaptive(residual, pool=8):
    made, theta = objective(residual, [hp.Neumann(0.0)], counts=(50, 1, 4))
    by = Adaptivity(pool=pool, power=1.0, floor=0.1)
    samples = jax.jit(lambda theta: made.draw_adaptive(theta, KEY, by=by))(theta)
    points = np.asarray(samples["interior"].points[:, 0])
    assert points.shape == (50,)
    assert np.all((points >= 0) & (points <= 1))
    assert len(np.unique(points)) == 50, "no point is drawn twice"
    return made, samples, np.mean(np.abs(points - 0.3) < 0.1)


def test_adaptive_points_gather_where_the_residual_is_large(x64):
    """A fifth of the interval holds nearly all of the residual, and most of the points."""
    assert adaptive(lambda u, p: 1e-6 * u.x + peak(p))[2] > 0.7
    assert adaptive(lambda u, p: 0 * u.x + 1.0)[2] < 0.4


@pytest.mark.parametrize("window", [None, (0.5, 0.25)])
def test_points_of_the_start_gather_at_what_is_missed_of_it(window, x64):
    """A narrow peak of the initial data, in all of the time or where a window begins."""
    movie = hp.TimeBox(t=(0.0, 1.0), x=(0.0, 1.0))
    conditions = [hp.Initial(peak), hp.Neumann(0.0)]
    made, theta = objective(lambda u, p: 0 * u.t, conditions, movie, counts=(50, 40, 4))
    last = jnp.zeros_like(theta)
    context = made.context(first_window(last, *window) if window else None)
    by = Adaptivity(pool=8, power=1.0, floor=0.1)
    flat = jax.jit(lambda key: made.draw_adaptive(last, key, context, by=by))
    t, x = np.asarray(flat(KEY)["initial"].points).T
    np.testing.assert_array_equal(t, window[0] if window else 0)
    assert np.mean(np.abs(x - 0.3) < 0.1) > 0.6
    assert len(np.unique(x)) == 40


def test_adaptive_points_bear_residuals_that_are_not_finite(x64):
    """Where the residual is NaN the floor decides; elsewhere its size still does."""
    nan = lambda u, p: jnp.where(p.x > 0.95, jnp.nan, u.x * 1e-6 + peak(p))  # noqa: E731
    assert adaptive(nan)[2] > 0.7


def test_a_pool_of_one_is_a_plain_draw(x64):
    made, samples, _ = adaptive(lambda u, p: u.x + peak(p), pool=1)
    plain = made.draw(jax.random.split(KEY, 3)[0])
    for name in plain:
        np.testing.assert_array_equal(samples[name].points, plain[name].points)


@pytest.mark.parametrize("boundary", [Lifted(), Penalty()])
def test_one_point_is_enough_for_a_finite_loss_and_gradient(boundary, x64):
    conditions = [hp.Initial(lambda p: p.x), hp.Dirichlet(0.0, "x.min"), hp.Neumann(1.0, "x.max")]
    movie = hp.TimeBox(t=(0.0, 1.0), x=(0.0, 1.0))
    made, theta = objective(
        lambda u, p: u.t - u.xx, conditions, movie, ("u",), boundary, (1, 1, 1), TINY
    )
    value, gradient = jax.jit(made.value_and_grad(made.draw(KEY)))(theta)
    assert np.isfinite(value)
    assert np.all(np.isfinite(gradient))
    assert np.any(gradient != 0)


@pytest.mark.slow
@pytest.mark.parametrize("count", [3000, 1000, 2003])
def test_the_gradient_by_blocks_is_that_of_the_whole_loss(count, x64, monkeypatch):
    """In three pairs of blocks, in one, and where no number of blocks fits."""
    monkeypatch.setattr(blocks, "LARGEST", 500)
    conditions = [hp.Dirichlet(lambda p: p.x, "x"), hp.MeanValue(0.3)]
    made, theta = objective(
        lambda u, p: u.xx - u**2 + p.x, conditions, counts=(count, 10, 12), config=TINY
    )
    samples = made.draw(KEY)
    value, gradient = jax.jit(made.value_and_grad(samples))(theta)
    whole, slope = jax.jit(jax.value_and_grad(made.value))(theta, samples)
    assert float(value) == pytest.approx(float(whole), rel=1e-12)
    np.testing.assert_allclose(gradient, slope, rtol=1e-9, atol=1e-11 * np.abs(slope).max())
    context = made.context()
    rows = weighted_rows(made, theta, samples, context)
    again = jax.jit(lambda v: pulled(made, theta, samples, context, v))(rows)
    np.testing.assert_allclose(2 * again, slope, rtol=1e-9, atol=1e-11 * np.abs(slope).max())


# Points that follow the residual, in a loss that does not.


def test_factors_make_up_for_the_density_of_points():
    """Drawn many times, the mean square with its factors is that over all candidates."""
    by = Adaptivity(pool=8, power=1.0, floor=1.0, even_loss=True)
    size = jnp.asarray(np.random.default_rng(0).exponential(size=800) ** 2)
    density = by.density(size)
    factors = by.factors(density, 100)

    def found(key):
        chosen = by.choose(key, density, 100)
        return jnp.mean((factors[chosen] * size[chosen]) ** 2), jnp.mean(factors[chosen] ** 2)

    squares, ones = jax.vmap(found)(jax.random.split(jax.random.key(0), 2000))
    assert float(jnp.mean(ones)) == pytest.approx(1, rel=0.01)
    assert float(jnp.mean(squares)) == pytest.approx(float(jnp.mean(size**2)), rel=0.02)
    drawn = size[jax.random.randint(jax.random.key(1), (2000, 100), 0, 800)]
    assert float(jnp.std(squares)) < 0.5 * float(jnp.std(jnp.mean(drawn**2, axis=1)))


def test_an_even_loss_is_that_of_evenly_spread_points(x64):
    """Though most of the points lie in a fifth of the interval."""
    residual = lambda u, p: 1e-6 * u.x + peak(p)  # noqa: E731
    made, theta = objective(residual, [hp.Neumann(0.0)], counts=(50, 1, 4))
    by = Adaptivity(pool=8, power=1.0, floor=0.1, even_loss=True)
    samples = jax.jit(lambda key: made.draw_adaptive(theta, key, by=by))(KEY)
    plain = made.draw(KEY)
    assert jax.tree.structure(made.with_factors(plain, by)) == jax.tree.structure(samples)
    x = np.linspace(0, 1, 100_001)
    known = float(np.mean(np.asarray(peak(SimpleNamespace(x=jnp.asarray(x)))) ** 2))
    even = [
        float(made.losses(theta, made.draw_adaptive(theta, key, by=by))["residual"])
        for key in jax.random.split(KEY, 20)
    ]
    assert np.mean(even) == pytest.approx(known, rel=0.1)
    uneven = made.draw_adaptive(theta, KEY, by=replace(by, even_loss=False))
    assert float(made.losses(theta, uneven)["residual"]) > 2 * known
