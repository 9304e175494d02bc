"""Boxes: points in and on them, normals, samplers, and what they refuse."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.errors import UserError
from hyrespinn.geometry import Annulus, Box, TimeBox
from hyrespinn.geometry.domain import check_side
from hyrespinn.geometry.exterior import with_exterior
from hyrespinn.geometry.patch import shares
from hyrespinn.geometry.sampling import (
    SAMPLERS,
    PoissonDisk,
    kronecker,
    latin,
    sampler_named,
    sobol,
    uniform,
)
from scipy.spatial.distance import pdist
from scipy.stats import qmc

KEY = jax.random.key(3)
F32 = jnp.dtype("float32")
# Each program runs once or twice, so it is not worth optimising.
compiled = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
DOMAINS = {
    "line": Box(x=(-1.0, 3.0)),
    "rectangle": Box(x=(0.1, 0.3), y=(-2.0, 5.0)),
    "cube": Box(x=(0.0, 1.0), y=(1.0, 2.0), z=(-1.0, 1.0)),
    "time line": TimeBox(t=(0.25, 1.0), x=(-1.0, 1.0)),
    "time square": TimeBox(t=(0.0, 2.0), x=(0.0, 1.0), y=(-3.0, 0.3)),
}
each_domain = pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS.keys())
EVERY_SAMPLER = {name: sampler_named(name) for name in SAMPLERS}
UNIT_SAMPLERS = {name: s for name, s in EVERY_SAMPLER.items() if not isinstance(s, PoissonDisk)}
each_unit_sampler = pytest.mark.parametrize(
    "sampler", UNIT_SAMPLERS.values(), ids=UNIT_SAMPLERS.keys()
)


@functools.cache
def drawn(what: str) -> dict[str, dict[str, jax.Array]]:
    """Points of every sampler in every domain that has such points, by one program."""

    @compiled
    def program(key):
        return {
            name: {m: getattr(domain, what)(key, 200, s, F32) for m, s in EVERY_SAMPLER.items()}
            for name, domain in DOMAINS.items()
            if what == "interior" or domain.has_time
        }

    return program(KEY)


@pytest.mark.parametrize("name", DOMAINS)
@pytest.mark.parametrize("method", SAMPLERS)
def test_interior_points_lie_inside(name, method):
    domain = DOMAINS[name]
    points = np.asarray(drawn("interior")[name][method], dtype=float)
    lower, upper = np.asarray(domain.bounds).T
    slack = 1e-6 * np.maximum(1, np.abs(upper))
    assert points.shape == (200, domain.dimension)
    assert np.all(points >= lower - slack)
    assert np.all(points <= upper + slack)
    assert np.all(np.ptp(points, axis=0) > 0.9 * (upper - lower)), "the whole box is covered"


@each_domain
def test_boundary_points_lie_on_their_face_with_the_outward_normal(domain, x64):
    for piece in domain.pieces:
        points, normals = domain.boundary(KEY, 12, (piece,), kronecker, jnp.dtype("float64"))
        axis, side = domain.face(piece)
        assert piece == f"{domain.coordinates[axis]}.{('min', 'max')[side]}"
        assert points.shape == normals.shape == (12, domain.dimension)
        np.testing.assert_array_equal(points[:, axis], domain.bounds[axis][side])
        expected = np.zeros(domain.dimension)
        expected[axis] = 1.0 if side else -1.0
        np.testing.assert_array_equal(normals, np.tile(expected, (12, 1)))
        assert np.all(domain.contains(np.asarray(points)))


@pytest.mark.parametrize("count", [1, 7, 1000])
def test_boundary_points_are_shared_in_proportion_to_the_faces(count):
    """Two faces of the cube's six have half the area of the others."""
    domain = DOMAINS["cube"]
    program = compiled(lambda key: domain.boundary(key, count, domain.pieces, kronecker, F32))
    points, normals = program(KEY)
    assert points.shape == normals.shape == (count, 3)
    used = np.asarray([np.flatnonzero(n)[0] * 2 + (n.sum() > 0) for n in np.asarray(normals)])
    numbers = np.bincount(used, minlength=6)
    wanted = count * np.array([2, 2, 2, 2, 1, 1]) / 10
    assert np.all(np.abs(numbers - wanted) < 1)
    assert count < 6 or numbers.min() >= 1


def test_points_of_opposite_faces_are_not_opposite():
    domain = DOMAINS["cube"]
    program = compiled(lambda key: domain.boundary(key, 20, ("x.min", "x.max"), kronecker, F32))
    points = np.asarray(program(KEY)[0])
    assert not np.isin(points[:10, 1:], points[10:, 1:]).any()


def test_no_face_is_forgotten_however_small_it_is():
    domain = DOMAINS["rectangle"]  # its short sides are 3 % of the long ones
    _, normals = domain.boundary(KEY, 5, domain.pieces, kronecker, F32)
    assert len(np.unique(np.asarray(normals), axis=0)) == 4


@pytest.mark.parametrize("seed", range(8))
def test_shares_are_the_nearest_whole_numbers_to_the_proportions(seed):
    rng = np.random.default_rng(seed)
    measures = np.exp(rng.normal(scale=[0.1, 1, 3][seed % 3], size=rng.integers(1, 9)))
    for count in (0, 1, len(measures) - 1, len(measures), 37, 1000):
        split = shares(count, measures.tolist())
        quota = count * measures / measures.sum()
        assert sum(split) == count
        assert min(split) >= (1 if count >= len(measures) else 0)
        if count < len(measures) or quota.min() >= 1:
            assert np.all(np.abs(split - quota) < 1)
        # Only what the smallest need is taken from the rest.
        lifted = np.maximum(1 - quota, 0).sum() if count >= len(measures) else 0
        assert np.all(quota - split < 1 + lifted)


def test_equal_faces_have_equal_shares():
    assert shares(12, [0.3] * 4) == [3] * 4
    assert sorted(shares(14, [0.3] * 4)) == [3, 3, 4, 4]


def test_the_boundary_of_a_line_is_its_two_ends():
    points, normals = DOMAINS["line"].boundary(KEY, 4, ("x.min", "x.max"), kronecker, F32)
    assert points[:, 0].tolist() == [-1, -1, 3, 3]
    assert normals[:, 0].tolist() == [-1, -1, 1, 1]


@pytest.mark.parametrize("name", ["time line", "time square"])
@pytest.mark.parametrize("method", SAMPLERS)
def test_initial_points_are_at_the_first_time(name, method):
    domain = DOMAINS[name]
    points = drawn("initial")[name][method]
    assert points.shape == (200, domain.dimension)
    np.testing.assert_array_equal(points[:, 0], domain.bounds[0][0])
    assert np.all(np.ptp(np.asarray(points[:, 1:]), axis=0) > 0)


def test_time_has_no_faces_and_space_leaves_it_out():
    domain = DOMAINS["time square"]
    assert domain.space == ("x", "y")
    assert domain.pieces == ("x.min", "x.max", "y.min", "y.max")
    assert Box(t=(0.0, 1.0), x=(0.0, 1.0)).space == ("t", "x"), "a plain Box has no time"


@pytest.mark.parametrize("count", [1, 2, 37, 120])
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_spread_points_are_well_apart(count, dimension):
    domain = Box(**dict.fromkeys("xyz"[:dimension], (2.0, 4.0)))
    points = domain.spread(count, np.random.default_rng(0))
    assert points.shape == (count, dimension)
    assert np.all(domain.contains(points))
    if count > 2:
        random = 2 + 2 * np.random.default_rng(1).random((count, dimension))
        assert pdist(points).min() > 2 * pdist(random).min()


def covered(domain, count, exterior, outward=None):
    outward = [True] * domain.dimension if outward is None else outward
    return with_exterior(
        domain.cover, domain.bounds, outward, count, exterior, np.random.default_rng(0)
    )


@pytest.mark.parametrize("count", [1, 2, 300])
def test_without_an_exterior_points_are_those_of_the_domain(count):
    domain = Annulus(inner=0.25, outer=1)
    points, in_box = covered(domain, count, 0.0)
    np.testing.assert_array_equal(points, domain.cover(count, np.random.default_rng(0)))
    assert in_box == count


@pytest.mark.parametrize("exterior", [1.0, 3.0])
@pytest.mark.parametrize("count", [1, 50, 900])
@pytest.mark.parametrize("inner", [0.25, 0.9])
def test_an_exterior_is_as_wide_as_it_should_be_in_units_of_the_spacing(count, exterior, inner):
    """On a ring the distance to the domain is known, and the volume of what is near it."""
    domain = Annulus(inner=inner, outer=1)
    points, in_box = covered(domain, count, exterior)
    assert points.shape == (count, 2)
    spacing = (4 / in_box) ** 0.5
    beyond = domain.level(points)
    assert beyond.max() <= min(exterior * spacing, 1.01) + 1e-9
    if count >= 900:
        width = exterior * spacing
        area = np.pi * ((1 + width) ** 2 - max(inner - width, 0) ** 2)
        np.testing.assert_allclose(spacing, (area / count) ** 0.5, rtol=0.05)
        assert beyond.max() > 0.8 * width, "and all of it has points"


def test_an_exterior_goes_outward_along_some_coordinates_and_by_their_lengths():
    domain = Box(x=(0.0, 1.0), y=(10.0, 30.0))
    points, in_box = covered(domain, 400, 3.0)
    scaled = (points - [0.5, 20.0]) / [0.5, 10.0]
    width = 3 * (4 / in_box) ** 0.5
    np.testing.assert_allclose(np.abs(scaled).max(axis=0), 1 + width, rtol=0.03)
    np.testing.assert_allclose(400 * width**2, 9 * (4 + 8 * width + np.pi * width**2), rtol=0.05)
    points, _ = covered(domain, 400, 3.0, [False, True])
    assert points[:, 0].min() >= 0
    assert points[:, 0].max() <= 1
    assert points[:, 1].max() > 31


@pytest.mark.parametrize("count", [1, 2, 100, 2500])
def test_covering_points_are_even_and_exactly_as_many(count):
    points = DOMAINS["rectangle"].cover(count, np.random.default_rng(0))
    assert points.shape == (count, 2)
    assert np.all(DOMAINS["rectangle"].contains(points))
    if count > 2:
        unit = (points - [0.1, -2.0]) / [0.2, 7.0]
        random = np.random.default_rng(1).random((count, 2))
        assert qmc.discrepancy(np.clip(unit, 0, 1)) < 0.5 * qmc.discrepancy(random)


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_kronecker_covers_more_evenly_than_uniform(dimension):
    def discrepancy(sampler, seed):
        points = sampler(jax.random.key(seed), 256, dimension, F32)
        return qmc.discrepancy(np.asarray(points, float), method="CD")

    even = max(discrepancy(kronecker, seed) for seed in range(5))
    independent = min(discrepancy(uniform, seed) for seed in range(5))
    assert even < 0.5 * independent


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_sobol_covers_more_evenly_than_uniform(dimension):
    def discrepancy(sampler, seed):
        points = sampler(jax.random.key(seed), 200, dimension, F32)
        return qmc.discrepancy(np.asarray(points, float), method="CD")

    even = max(discrepancy(sobol, seed) for seed in range(5))
    independent = min(discrepancy(uniform, seed) for seed in range(5))
    assert even < 0.5 * independent


@pytest.mark.parametrize(("count", "dimension"), [(1, 2), (7, 3), (1000, 2)])
def test_every_slice_of_a_latin_hypercube_holds_one_point(count, dimension, x64):
    program = compiled(lambda key: latin(key, count, dimension, jnp.dtype("float64")))
    points = np.asarray(program(KEY))
    assert points.shape == (count, dimension)
    slices = np.floor(points * count).astype(int)
    np.testing.assert_array_equal(np.sort(slices, axis=0).T, [np.arange(count)] * dimension)
    if dimension > 1 and count > 10:
        assert not np.array_equal(slices[:, 0], slices[:, 1]), "the axes are permuted apart"
        assert np.std(points * count - slices) > 0.2, "points are anywhere in their slice"


@each_unit_sampler
@pytest.mark.parametrize("count", [1, 100])
def test_unit_points_fill_the_unit_cube(sampler, count):
    points = np.asarray(compiled(lambda key: sampler(key, count, 3, F32))(KEY))
    assert points.shape == (count, 3)
    assert points.dtype == np.float32
    assert np.all((points >= 0) & (points <= 1))
    if count == 100:
        np.testing.assert_allclose(points.mean(axis=0), 0.5, atol=0.1)
        np.testing.assert_allclose(points.var(axis=0), 1 / 12, atol=0.03)
        np.testing.assert_allclose(np.corrcoef(points.T), np.eye(3), atol=0.3)


@each_unit_sampler
def test_a_sampler_is_decided_by_its_key(sampler):
    first, again = (sampler(KEY, 30, 2, F32) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    other = sampler(jax.random.key(4), 30, 2, F32)
    assert not np.any(np.isclose(first, other, atol=1e-6).all(axis=1))


def test_an_unknown_sampler_is_refused_with_a_hint():
    with pytest.raises(UserError, match=r"Unknown sampler 'kroneker'. Did you mean 'kronecker'"):
        sampler_named("kroneker")


@pytest.mark.parametrize(
    ("on", "pieces"),
    [
        (None, ("x.min", "x.max", "y.min", "y.max")),
        ("x", ("x.min", "x.max")),
        ("y.max", ("y.max",)),
        (("y.max", "x"), ("y.max", "x.min", "x.max")),
        (("x.min", "x"), ("x.min", "x.max")),
    ],
)
def test_expand_names_pieces_once(on, pieces):
    assert DOMAINS["rectangle"].expand(on) == pieces


@pytest.mark.parametrize("on", ["z", "x.middle", "t", ("x", "y.top"), "x."])
def test_expand_refuses_unknown_pieces(on):
    with pytest.raises(UserError, match=r"no boundary piece .*x\.min, x\.max, y\.min, y\.max"):
        TimeBox(t=(0.0, 1.0), x=(0.0, 1.0), y=(0.0, 1.0)).expand(on)


@pytest.mark.parametrize(
    ("sides", "message"),
    [
        ({"x": (1.0, 0.0)}, "side x must go from a lower to a higher number"),
        ({"x": (1.0, 1.0)}, "side x must go from a lower to a higher number"),
        ({"y": (0.0, float("nan"))}, "side y must go"),
        ({"y": (0.0, float("inf"))}, "side y must go"),
        ({"xy": (0.0, 1.0)}, "named by one letter .* not 'xy'"),
        ({"_": (0.0, 1.0)}, "named by one letter"),
        ({}, "at least one side"),
    ],
)
def test_bad_sides_are_refused(sides, message):
    with pytest.raises(UserError, match=message):
        Box(**sides)


@pytest.mark.parametrize("side", [1.0, (1.0,), (0, 1, 2), ("a", "b"), None])
def test_a_side_must_be_a_pair(side):
    with pytest.raises(UserError, match=r"side x must be a pair \(lower, upper\)"):
        check_side("x", side)


def test_grid_keeps_both_ends_unless_the_axis_is_open():
    t, x = DOMAINS["time line"].grid((4, 8), (False, True))
    np.testing.assert_allclose(t, [0.25, 0.5, 0.75, 1.0])
    np.testing.assert_allclose(x, -1 + 0.25 * np.arange(8))


def test_contains_takes_the_boundary_and_nothing_beyond():
    inside = np.array([[0.1, -2.0], [0.3, 5.0], [0.2, 0.0], [0.1 - 1e-6, 0.0], [0.2, 5.1]])
    assert DOMAINS["rectangle"].contains(inside).tolist() == [True, True, True, False, False]


@each_domain
def test_volume_and_faces_are_products_of_the_sides(domain):
    sides = np.asarray([b - a for a, b in domain.bounds])
    assert domain.volume == pytest.approx(np.prod(sides), rel=1e-12)
    for piece, face in domain.faces.items():
        others = np.delete(sides, domain.face(piece)[0])
        assert face.measure == pytest.approx(np.prod(others), rel=1e-12)


@pytest.mark.parametrize("method", SAMPLERS)
def test_the_host_samples_in_full_precision_and_by_seed(method):
    domain = DOMAINS["time square"]
    points = domain.sample(50, method, seed=1)
    assert points.shape == (50, domain.dimension)
    assert points.dtype == np.float64
    assert np.all(domain.contains(points))
    assert not np.array_equal(points, points.astype(np.float32)), "not single precision"
    np.testing.assert_array_equal(points, domain.sample(50, method, seed=1))
    assert not np.isin(domain.sample(50, method, seed=2)[:, -1], points[:, -1]).any()


@pytest.mark.parametrize("method", ["sobol", "uniform", "poisson"])
def test_the_host_samples_the_pieces_it_is_asked_for(method):
    domain = DOMAINS["time square"]
    points, normals = domain.sample_boundary(40, ("y.max", "x.min"), method)
    upper = normals[:, 2] == 1
    np.testing.assert_array_equal(points[upper, 2], 0.3)
    np.testing.assert_array_equal(points[~upper, 1], 0.0)
    np.testing.assert_array_equal(normals[~upper], np.tile([0, -1, 0], (np.sum(~upper), 1)))
    # The face x.min is 3.3 times as large.
    assert np.sum(upper) == pytest.approx(40 / 4.3, abs=1 if method != "poisson" else 4)


@pytest.mark.parametrize("count", [0, -3])
def test_the_number_of_points_must_be_positive(count):
    with pytest.raises(UserError, match=f"number of points must be at least 1, not {count}"):
        DOMAINS["line"].sample(count)
    with pytest.raises(UserError, match="number of points must be at least 1"):
        DOMAINS["line"].sample_boundary(count)


def test_the_host_refuses_an_unknown_method_and_piece():
    with pytest.raises(UserError, match=r"Unknown sampler 'poison'\. Did you mean 'poisson'"):
        DOMAINS["line"].sample(3, "poison")
    with pytest.raises(UserError, match=r"no boundary piece 'y'; this domain has x\.min, x\.max"):
        DOMAINS["line"].sample_boundary(3, on="y")


def test_only_a_domain_with_time_has_initial_points():
    with pytest.raises(UserError, match=r"Box\(x=\(-1, 3\)\) has no time; use TimeBox or .over"):
        DOMAINS["line"].initial(KEY, 3, uniform, F32)


@each_domain
def test_quadrature_is_exact_for_polynomials(domain):
    points, weights = domain.body.quadrature(6**domain.dimension)
    assert weights.sum() == pytest.approx(1, rel=1e-12)
    for power in (1, 4, 11):
        exact = 1.0
        for a, b in domain.bounds:
            exact *= (b ** (power + 1) - a ** (power + 1)) / ((power + 1) * (b - a))
        np.testing.assert_allclose(weights @ np.prod(points**power, axis=1), exact, 1e-10, 1e-14)


def test_quadrature_on_a_face_stays_on_it():
    points, weights = DOMAINS["cube"].faces["y.max"].quadrature(16)
    np.testing.assert_array_equal(points[:, 1], 2.0)
    assert weights @ (points[:, 0] ** 2 * points[:, 2] ** 4) == pytest.approx(1 / 15, rel=1e-12)


def test_quadrature_on_the_end_of_a_line_is_that_point():
    points, weights = DOMAINS["line"].faces["x.max"].quadrature(5)
    assert weights.sum() == pytest.approx(1)
    np.testing.assert_array_equal(points, np.full((len(weights), 1), 3.0))


@pytest.mark.parametrize("axis", ["x", "y"])
def test_a_cut_is_a_plane_across_the_box_and_all_times(axis):
    domain = DOMAINS["time square"]
    i = domain.coordinates.index(axis)
    cut = domain.cut(axis, 0.2)
    placed = cut.scatter(100, np.random.default_rng(0))
    np.testing.assert_array_equal(placed.points[:, i], 0.2)
    np.testing.assert_array_equal(placed.normals, np.tile(np.eye(3)[i], (100, 1)))
    assert np.all(domain.contains(placed.points))
    sides = np.array([2.0, 1.0, 3.3])
    assert cut.measure == pytest.approx(np.prod(sides) / sides[i], rel=1e-12)


@pytest.mark.parametrize(
    ("axis", "at", "message"),
    [
        ("x", 1.0, r"plane x = 1 lies outside the domain TimeBox"),
        ("x", -0.5, r"plane x = -0.5 lies outside"),
        ("x", float("nan"), r"plane x = nan lies outside"),
        ("t", 0.5, r"no axis 't' to cut; there are x, y"),
        ("z", 0.5, r"no axis 'z' to cut; there are x, y"),
    ],
)
def test_a_cut_must_go_through_the_box(axis, at, message):
    with pytest.raises(UserError, match=message):
        DOMAINS["time square"].cut(axis, at)


def test_repr_is_the_call_that_makes_it():
    assert repr(DOMAINS["time line"]) == "TimeBox(t=(0.25, 1), x=(-1, 1))"
