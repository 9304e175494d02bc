"""Boxes: points in and on them, normals, samplers, and what they refuse."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.errors import UserError
from hyrespinn.geometry import Box, TimeBox
from hyrespinn.geometry.domain import check_side
from hyrespinn.geometry.sampling import SAMPLERS, kronecker, sampler_named, uniform
from scipy.spatial.distance import pdist
from scipy.stats import qmc

KEY = jax.random.key(3)
F32 = jnp.dtype("float32")
DOMAINS = {
    "line": Box(x=(-1.0, 3.0)),
    "rectangle": Box(x=(0.1, 0.3), y=(-2.0, 5.0)),
    "cube": Box(x=(0.0, 1.0), y=(1.0, 2.0), z=(-1.0, 1.0)),
    "time line": TimeBox(t=(0.25, 1.0), x=(-1.0, 1.0)),
    "time square": TimeBox(t=(0.0, 2.0), x=(0.0, 1.0), y=(-3.0, 0.3)),
}
each_domain = pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS.keys())
each_sampler = pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS.keys())


@each_domain
@each_sampler
def test_interior_points_lie_inside(domain, sampler):
    points = np.asarray(domain.interior(KEY, 200, sampler, F32), dtype=float)
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


@pytest.mark.parametrize("count", [1, 2, 7, 16])
def test_boundary_points_are_shared_between_the_faces(count):
    domain = DOMAINS["cube"]
    points, normals = domain.boundary(KEY, count, domain.pieces, kronecker, F32)
    assert points.shape == (count, 3)
    used = np.asarray([np.flatnonzero(n)[0] * 2 + (n.sum() > 0) for n in np.asarray(normals)])
    shares = np.bincount(used, minlength=6)
    assert shares.max() - shares.min() <= 1


def test_the_boundary_of_a_line_is_its_two_ends():
    points, normals = DOMAINS["line"].boundary(KEY, 4, ("x.min", "x.max"), kronecker, F32)
    assert points[:, 0].tolist() == [-1, -1, 3, 3]
    assert normals[:, 0].tolist() == [-1, -1, 1, 1]


@pytest.mark.parametrize("name", ["time line", "time square"])
@each_sampler
def test_initial_points_are_at_the_first_time(name, sampler):
    domain = DOMAINS[name]
    points = domain.initial(KEY, 40, sampler, F32)
    assert points.shape == (40, domain.dimension)
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


@each_sampler
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


def test_repr_is_the_call_that_makes_it():
    assert repr(DOMAINS["time line"]) == "TimeBox(t=(0.25, 1), x=(-1, 1))"
