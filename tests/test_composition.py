"""Annuli, domains put together, and Poisson-disk points, against formulas written out here."""

from __future__ import annotations

import functools
import math
import subprocess
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import cloudpickle
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.errors import UserError
from hyrespinn.geometry import Annulus, Box, Disk, Domain, TimeBox
from hyrespinn.geometry.patch import spread
from hyrespinn.geometry.sampling import SAMPLERS, PoissonDisk, kronecker, sampler_named, uniform
from scipy.spatial import KDTree

PI = math.pi
KEY = jax.random.key(7)
F32, F64 = jnp.dtype("float32"), jnp.dtype("float64")
# Each program runs once or twice, so it is not worth optimising.
compiled = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


def ring(p, inner, outer, x=0.0, y=0.0):
    square = (p[..., 0] - x) ** 2 + (p[..., 1] - y) ** 2
    return (inner**2 <= square) & (square <= outer**2)


def box(p, *sides):
    return np.all([(a <= p[..., i]) & (p[..., i] <= b) for i, (a, b) in enumerate(sides)], axis=0)


class Case(NamedTuple):
    """A domain, and what it must be: membership, volume, and the measure of each piece."""

    domain: Domain
    inside: Callable[[np.ndarray], np.ndarray]
    volume: float
    faces: dict[str, float]
    bounds: tuple[tuple[float, float], ...]
    exact: bool = False  # nothing is estimated

    def over(self, start: float, end: float) -> Case:
        length = end - start
        return Case(
            self.domain.over(t=(start, end)),
            lambda p: (start <= p[..., 0]) & (p[..., 0] <= end) & self.inside(p[..., 1:]),
            self.volume * length,
            {piece: measure * length for piece, measure in self.faces.items()},
            ((start, end), *self.bounds),
            self.exact,
        )

    def extrude(self, low: float, high: float) -> Case:
        axis, length = self.domain.dimension, high - low
        faces = {piece: measure * length for piece, measure in self.faces.items()}
        return Case(
            self.domain.extrude(z=(low, high)),
            lambda p: (low <= p[..., axis]) & (p[..., axis] <= high) & self.inside(p[..., :axis]),
            self.volume * length,
            {**faces, "z.min": self.volume, "z.max": self.volume},
            (*self.bounds, (low, high)),
            self.exact,
        )


SQUARE = {"x.min": 1.0, "x.max": 1.0, "y.min": 1.0, "y.max": 1.0}
LENS = 2 * PI / 3 - math.sqrt(3) / 2  # of two unit disks, each through the other's middle


def unit_square(name: str = "", x: float = 0.0, y: float = 0.0) -> Domain:
    square = Box(x=(x, x + 1), y=(y, y + 1))
    return square.named(name) if name else square


CASES = {
    "ring": Case(
        Annulus(0.25, 1, center=(0.5, -1)),
        lambda p: ring(p, 0.25, 1, 0.5, -1),
        PI * (1 - 1 / 16),
        {"inner": PI / 2, "outer": 2 * PI},
        ((-0.5, 1.5), (-2, 0)),
        exact=True,
    ),
    "disk": Case(
        Disk(0.7, center=(2, 3)),
        lambda p: ring(p, 0, 0.7, 2, 3),
        PI * 0.49,
        {"outer": 1.4 * PI},
        ((1.3, 2.7), (2.3, 3.7)),
        exact=True,
    ),
    "half ring": Case(
        Annulus(0.5, 1) & Box(x=(0, 3), y=(-2, 2)),
        lambda p: ring(p, 0.5, 1) & (p[..., 0] >= 0),
        PI * 0.75 / 2,
        {"inner": PI / 2, "outer": PI, "x.min": 1.0},
        ((0, 1), (-1, 1)),
    ),
    "L": Case(
        Box(x=(0, 2), y=(0, 1)) | Box(x=(0, 1), y=(0, 2)).named("up"),
        lambda p: box(p, (0, 2), (0, 2)) & ((p[..., 0] <= 1) | (p[..., 1] <= 1)),
        3.0,
        {
            "x.min": 1.0,
            "x.max": 1.0,
            "y.min": 2.0,
            "y.max": 1.0,
            "up.x.min": 1.0,
            "up.x.max": 1.0,
            "up.y.max": 1.0,
        },
        ((0, 2), (0, 2)),
    ),
    "plate": Case(
        unit_square() - Disk(0.2, center=(0.4, 0.5)).named("hole"),
        lambda p: box(p, (0, 1), (0, 1)) & ~ring(p, 0, 0.2, 0.4, 0.5),
        1 - 0.04 * PI,
        {**SQUARE, "hole.outer": 0.4 * PI},
        ((0, 1), (0, 1)),
    ),
    "bitten": Case(
        Box(x=(0, 2), y=(0, 1)) - Disk(0.25, center=(2, 0.5)),
        lambda p: box(p, (0, 2), (0, 1)) & ~ring(p, 0, 0.25, 2, 0.5),
        2 - PI / 32,
        {"x.min": 1.0, "x.max": 0.5, "y.min": 2.0, "y.max": 2.0, "outer": PI / 4},
        ((0, 2), (0, 1)),
    ),
    "lens": Case(
        Disk(1) & Disk(1, center=(1, 0)).named("right"),
        lambda p: ring(p, 0, 1) & ring(p, 0, 1, 1, 0),
        LENS,
        {"outer": 2 * PI / 3, "right.outer": 2 * PI / 3},
        ((0, 1), (-1, 1)),
    ),
    "two disks": Case(
        Disk(1) | Disk(1, center=(1, 0)).named("right"),
        lambda p: ring(p, 0, 1) | ring(p, 0, 1, 1, 0),
        2 * PI - LENS,
        {"outer": 4 * PI / 3, "right.outer": 4 * PI / 3},
        ((-1, 2), (-1, 1)),
    ),
    "islands": Case(
        unit_square() | Annulus(0.5, 1, center=(3, 1)),
        lambda p: box(p, (0, 1), (0, 1)) | ring(p, 0.5, 1, 3, 1),
        1 + PI * 0.75,
        {**SQUARE, "inner": PI, "outer": 2 * PI},
        ((0, 4), (0, 2)),
    ),
    "two intervals": Case(
        Box(x=(0, 3)) - Box(x=(1, 2)).named("gap"),
        lambda p: box(p, (0, 3)) & ~((p[..., 0] > 1) & (p[..., 0] < 2)),
        2.0,
        {"x.min": 1.0, "x.max": 1.0, "gap.x.min": 1.0, "gap.x.max": 1.0},
        ((0, 3),),
    ),
    "window": Case(  # a ring with a square corner region added, and a slot cut through both
        (
            (Annulus(0.5, 1) | Box(x=(0, 1.2), y=(0, 1.2)).named("corner"))
            - Box(x=(-2, 2), y=(0.1, 0.3)).named("slot")
        )
        & Box(x=(-0.75, 3), y=(-2, 2)).named("frame"),
        lambda p: (
            (ring(p, 0.5, 1) | box(p, (0, 1.2), (0, 1.2)))
            & ~((p[..., 1] > 0.1) & (p[..., 1] < 0.3))
            & (p[..., 0] >= -0.75)
        ),
        math.nan,
        {},
        ((-0.75, 1.2), (-1, 1.2)),
    ),
}
CASES["tube"] = CASES["ring"].extrude(-1, 1)
CASES["drilled block"] = CASES["plate"].extrude(0, 0.5)
# The same block, made of solids: the bore's ends lie in the faces of the block.
CASES["bored block"] = CASES["drilled block"]._replace(
    domain=Box(x=(0, 1), y=(0, 1), z=(0, 0.5))
    - Disk(0.2, center=(0.4, 0.5)).extrude(z=(0, 0.5)).named("hole")
)
CASES["ring in time"] = CASES["ring"].over(0.5, 2.5)
CASES["plate in time"] = CASES["plate"].over(-1, 0)
CASES["tube in time"] = CASES["tube"].over(0, 2)
CASES["intervals in time"] = CASES["two intervals"].over(0, 0.5)


def only(*names):
    return pytest.mark.parametrize("case", [CASES[n] for n in names], ids=names)


each_case = only(*CASES)
each_measured_case = only(*(name for name, case in CASES.items() if case.faces))
EVERY_SAMPLER = {name: sampler_named(name) for name in SAMPLERS}
each_method = pytest.mark.parametrize("method", SAMPLERS)


def random_points(case: Case, count: int, seed: int = 0) -> np.ndarray:
    """Uniform points of a box somewhat larger than the domain."""
    lower, upper = np.asarray(case.bounds, float).T
    size = upper - lower
    unit = np.random.default_rng(seed).random((count, len(size)))
    return lower - 0.1 * size + 1.2 * size * unit


def kronecker_1000(dimension: int) -> np.ndarray:
    """A thousand points that cover the unit cube, by square roots of primes."""
    return np.outer(np.arange(1000) + 0.5, np.sqrt([2, 3, 5][:dimension])) % 1


@functools.cache
def faces_of(domain: Domain) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Evenly spread points and normals of every piece."""
    result = {}
    for piece, patch in domain.faces.items():
        points, normals, keep = patch.place(kronecker_1000(patch.dimension))
        chosen = slice(None) if keep is None else keep
        result[piece] = points[chosen], normals[chosen]
    return result


# What belongs to a domain, and how large it is.


@each_case
def test_membership_is_the_formula(case):
    points = random_points(case, 20_000)
    expected = case.inside(points)
    assert 0.05 < expected.mean() < 0.95
    np.testing.assert_array_equal(case.domain.contains(points), expected)
    np.testing.assert_array_equal(case.domain.level(points) < 0, expected)


@pytest.mark.parametrize(("dtype", "slack"), [(F32, 3e-6), (F64, 1e-14)], ids=str)
@each_case
def test_numpy_and_jax_agree_on_the_level(case, dtype, slack, x64):
    points = random_points(case, 500)
    expected = case.domain.level(points)
    found = case.domain.level(jnp.asarray(points, dtype))
    assert isinstance(found, jax.Array)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, atol=slack)
    assert case.domain.level(points.astype(dtype)).dtype == dtype
    far = np.abs(expected) > slack
    np.testing.assert_array_equal(np.asarray(found < 0)[far], case.inside(points)[far])


def test_membership_keeps_the_shape_of_the_points():
    points = random_points(CASES["plate"], 60)
    flat = CASES["plate"].domain.contains(points)
    many = CASES["plate"].domain.contains(points.reshape(3, 4, 5, 2))
    np.testing.assert_array_equal(many, flat.reshape(3, 4, 5))


@pytest.mark.parametrize("inner", [0.0, 0.25])
def test_closed_annuli_hold_their_circles_and_nothing_beyond(inner):
    domain = Annulus(inner, 1)
    radii = np.array([1.0, 1 + 1e-6, 0.6, inner, inner - 1e-6])
    points = np.stack([radii * np.cos(1.0), radii * np.sin(1.0)], axis=1)
    expected = [True, False, True, True, inner == 0]  # a negative radius is the opposite side
    assert domain.contains(points).tolist() == expected


@pytest.mark.parametrize("center", [(0.0, 0.0), (0.4, 0.5)])
def test_the_middle_of_a_disk_is_as_far_inside_as_any(center):
    """A disk has no inner circle, so its middle is no boundary, nor left over by a difference."""
    middle = np.array([center])
    assert Disk(0.2, center=center).level(middle)[0] == pytest.approx(-0.2)
    plate = Box(x=(-1, 1), y=(-1, 1)) - Disk(0.2, center=center).named("hole")
    assert plate.contains(middle).tolist() == [False]


@each_measured_case
def test_volumes_have_their_closed_form(case):
    assert case.domain.volume == pytest.approx(case.volume, rel=1e-12 if case.exact else 1e-3)


@each_measured_case
def test_faces_have_their_names_and_measures(case):
    found = {piece: face.measure for piece, face in case.domain.faces.items()}
    assert found == pytest.approx(case.faces, rel=1e-12 if case.exact else 1e-3)
    assert set(case.domain.pieces) == set(case.faces)


def test_a_volume_without_formula_is_that_of_a_fine_grid():
    case = CASES["window"]
    x, y = (np.linspace(a, b, 1500, endpoint=False) + (b - a) / 3000 for a, b in case.bounds)
    share = case.inside(np.stack(np.meshgrid(x, y), axis=-1)).mean()
    assert case.domain.volume == pytest.approx(share * 1.95 * 2.2, rel=1e-3)


def test_the_perimeter_of_the_L_is_eight():
    total = sum(face.measure for face in CASES["L"].domain.faces.values())
    assert total == pytest.approx(8, rel=1e-3)


@each_case
def test_the_bounding_box_is_made_of_those_of_the_parts(case):
    np.testing.assert_allclose(case.domain.bounds, case.bounds)


def test_the_volume_of_far_apart_parts_is_their_sum():
    """Their bounding box is five thousand times as large."""
    domain = unit_square() | Box(x=(100, 103), y=(100, 101)).named("far")
    assert domain.volume == pytest.approx(4, rel=1e-3)
    for points in (domain.cover(400, np.random.default_rng(0)), domain.sample(400, "poisson")):
        assert np.mean(points[:, 0] < 50) == pytest.approx(1 / 4, abs=0.03)


def test_small_parts_far_apart_are_not_nothing():
    domain = Disk(1e-3) | Disk(1e-3, center=(1, 1)).named("far")
    assert domain.volume == pytest.approx(2e-6 * PI, rel=1e-2)


# Points inside.


def check_inside(case: Case, points: jax.Array | np.ndarray, count: int) -> None:
    assert points.shape == (count, case.domain.dimension)
    assert points.dtype == F32
    exact = np.asarray(points, float)
    assert np.all(case.domain.level(exact) < 1e-6)
    assert len(np.unique(exact, axis=0)) == count


MEANS = {
    "ring": {
        "x": (lambda p: p[:, 0], 0.5),
        "y": (lambda p: p[:, 1], -1.0),
        "x²": (lambda p: (p[:, 0] - 0.5) ** 2, (1 + 1 / 16) / 4),
        "r²": (lambda p: (p[:, 0] - 0.5) ** 2 + (p[:, 1] + 1) ** 2, (1 + 1 / 16) / 2),
    },
    "plate": {
        "x": (lambda p: p[:, 0], (0.5 - 0.4 * 0.04 * PI) / (1 - 0.04 * PI)),
        "y": (lambda p: p[:, 1], 0.5),
        "y²": (
            lambda p: (p[:, 1] - 0.5) ** 2,
            (1 / 12 - PI * 0.2**4 / 4) / (1 - 0.04 * PI),
        ),
    },
    "L": {
        "x": (lambda p: p[:, 0], 5 / 6),
        "x²": (lambda p: p[:, 0] ** 2, 1.0),
        "xy": (lambda p: p[:, 0] * p[:, 1], (2 * 0.5 + 0.5 * 1.5) / 3),
    },
    "two disks": {  # what lies in both is not denser
        "x": (lambda p: p[:, 0], 0.5),
        "lens": (lambda p: 1.0 * CASES["lens"].inside(p), LENS / (2 * PI - LENS)),
    },
    "tube": {
        "z²": (lambda p: p[:, 2] ** 2, 1 / 3),
        "x²": (lambda p: (p[:, 0] - 0.5) ** 2, (1 + 1 / 16) / 4),
    },
    "plate in time": {
        "t": (lambda p: p[:, 0], -0.5),
        "tx": (lambda p: p[:, 0] * p[:, 1], -0.5 * (0.5 - 0.4 * 0.04 * PI) / (1 - 0.04 * PI)),
    },
}
# In standard errors of independent points; Poisson-disk points crowd at the boundary a little.
ERRORS = {"kronecker": 0.5, "uniform": 4.5, "sobol": 0.5, "latin": 4.0, "poisson": 4.5}


@functools.cache
def points_with_means() -> list[dict[str, dict[str, np.ndarray]]]:
    """Points of each sampler in each domain, for one key, the same again, and another."""

    @compiled
    def program(key):
        return {
            name: {
                m: CASES[name].domain.interior(key, 1500, s, F64) for m, s in EVERY_SAMPLER.items()
            }
            for name in MEANS
        }

    with jax.enable_x64(True):
        keys = [jax.random.key(seed) for seed in (1, 1, 2)]
        return [jax.tree.map(np.asarray, program(key)) for key in keys]


@each_method
@pytest.mark.parametrize("name", MEANS)
def test_the_key_decides_the_points(name, method):
    points, again, other = (drawn[name][method] for drawn in points_with_means())
    np.testing.assert_array_equal(points, again)
    assert not np.array_equal(points, other)
    same = np.isin(points, other).all(axis=1)
    assert same.all() if method == "poisson" else not same.any()


@each_method
@pytest.mark.parametrize("name", MEANS)
def test_interior_points_have_the_means_of_the_domain(name, method):
    points = points_with_means()[0][name][method]
    assert points.shape == (1500, CASES[name].domain.dimension)
    assert len(np.unique(points, axis=0)) == 1500
    assert np.all(CASES[name].inside(points))
    for label, (f, mean) in MEANS[name].items():
        values = f(points)
        error = ERRORS[method] * np.std(values) / math.sqrt(1500)
        assert np.mean(values) == pytest.approx(mean, abs=error), label


@functools.cache
def drawn_inside() -> list[dict[str, np.ndarray]]:
    """Points of every domain in single precision for one key, the same again, and another."""

    @compiled
    def program(key):
        return {name: c.domain.interior(key, 150, kronecker, F32) for name, c in CASES.items()}

    return [jax.tree.map(np.asarray, program(k)) for k in (KEY, KEY, jax.random.key(8))]


@pytest.mark.parametrize("name", CASES)
def test_points_drawn_by_compiled_code_lie_inside(name):
    points, again, other = (drawn[name] for drawn in drawn_inside())
    check_inside(CASES[name], points, 150)
    np.testing.assert_array_equal(points, again)
    assert not np.isin(points, other).all(axis=1).any()
    lower, upper = np.asarray(CASES[name].bounds, float).T
    assert np.all(np.ptp(points, axis=0) > 0.8 * (upper - lower)), "all is covered"


@pytest.mark.parametrize("name", MEANS)
def test_covering_points_have_the_means_of_the_domain(name):
    points = CASES[name].domain.cover(2000, np.random.default_rng(0))
    assert points.shape == (2000, CASES[name].domain.dimension)
    assert np.all(CASES[name].inside(points))
    for label, (f, mean) in MEANS[name].items():
        assert np.mean(f(points)) == pytest.approx(mean, abs=5e-3), label


def test_the_host_draws_what_compiled_code_draws(x64):
    plate, ring = CASES["plate"].domain, CASES["ring"].domain
    sobol = EVERY_SAMPLER["sobol"]

    @compiled
    def program(key):
        inside = plate.interior(key, 60, sobol, F64)
        return inside, *ring.boundary(key, 10, ("outer", "inner"), sobol, F64)

    expected = program(jax.random.key(3))
    edge = ring.sample_boundary(10, ("outer", "inner"), "sobol", seed=3)
    for found, drawn in zip((plate.sample(60, seed=3), *edge), expected, strict=True):
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, drawn, atol=1e-12)


@pytest.mark.parametrize("method", ["kronecker", "uniform", "sobol", "latin"])
def test_one_point_is_enough_in_compiled_code(method):
    names = ("lens", "two intervals", "bored block", "ring in time")

    @compiled
    def program(key):
        return {n: CASES[n].domain.interior(key, 1, EVERY_SAMPLER[method], F32) for n in names}

    for name, points in program(KEY).items():
        check_inside(CASES[name], points, 1)


@each_case
def test_one_point_is_enough_on_the_host(case):
    one = (1, case.domain.dimension)
    for points in (
        case.domain.sample(1, "poisson"),
        case.domain.cover(1, np.random.default_rng(0)),
        case.domain.spread(1, np.random.default_rng(0)),
        case.domain.body.quadrature(1)[0],
    ):
        assert points.shape == one
        assert np.all(case.domain.contains(points))
    point, normal = case.domain.sample_boundary(1, method="poisson")
    assert point.shape == normal.shape == one
    assert abs(case.domain.level(point)[0]) < 1e-12
    assert np.linalg.norm(normal) == pytest.approx(1)


def test_one_point_is_enough_on_the_boundary():
    names = ("ring", "two intervals", "plate in time")

    @compiled
    def program(key):
        return {
            (name, s): CASES[name].domain.boundary(
                key, 1, CASES[name].domain.pieces, EVERY_SAMPLER[s], F32
            )
            for name in names
            for s in ("uniform", "kronecker", "poisson")
        }

    for (name, _), (point, normal) in program(KEY).items():
        domain = CASES[name].domain
        assert point.shape == normal.shape == (1, domain.dimension)
        assert abs(domain.level(np.asarray(point, float))[0]) < 1e-6
        assert np.linalg.norm(normal) == pytest.approx(1, abs=1e-6)


def test_rejection_leaves_exactly_as_many_points_as_asked_for():
    counts = (1, 2, 5, 1001)

    @compiled
    def program(key):
        return [CASES["lens"].domain.interior(key, n, uniform, F32) for n in counts]

    for seed in range(20):
        for count, points in zip(counts, program(jax.random.key(seed)), strict=True):
            check_inside(CASES["lens"], points, count)


def test_initial_points_are_points_of_the_domain_at_its_first_time():
    cases = {name: case for name, case in CASES.items() if case.domain.has_time}

    @compiled
    def program(key):
        samplers = (kronecker, PoissonDisk())
        return {n: [c.domain.initial(key, 300, s, F32) for s in samplers] for n, c in cases.items()}

    for name, drawn in program(KEY).items():
        case = cases[name]
        lower, upper = np.asarray(case.bounds[1:], float).T
        for points in drawn:
            check_inside(case, points, 300)
            np.testing.assert_array_equal(points[:, 0], case.bounds[0][0])
            assert np.all(np.ptp(np.asarray(points)[:, 1:], axis=0) > 0.9 * (upper - lower)), name


# The boundary.


@each_case
def test_boundary_points_lie_on_the_boundary_with_outward_normals(case):
    faces = faces_of(case.domain)
    assert faces
    for piece, (points, normals) in faces.items():
        assert len(points) >= 1, piece
        assert np.all(np.abs(case.domain.level(points)) < 1e-13), piece
        np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1, rtol=1e-12)
        assert np.all(case.inside(points - 1e-7 * normals)), piece
        assert not np.any(case.inside(points + 1e-7 * normals)), piece
        if case.domain.has_time:
            np.testing.assert_array_equal(normals[:, 0], 0.0)
            assert np.ptp(points[:, 0]) > 0.99 * np.ptp(case.bounds[0])


def test_a_share_estimated_too_large_yields_no_point_outside():
    """Then too few candidates belong, and some of them are used again."""
    patch = CASES["lens"].domain.body
    thin = patch.where(lambda points, normals: points[:, 0] > 0.8)
    assert thin.share < 0.15
    thin.share = 0.9
    program = compiled(lambda key: thin.draw(key, 50, kronecker, F32).points)
    for seed in range(10):
        points = np.asarray(program(jax.random.key(seed)))
        assert points.shape == (50, 2)
        assert np.all(points[:, 0] > 0.8)
        assert 1 < len(np.unique(points, axis=0)) < 50


DRAWN = ("half ring", "two intervals", "bored block", "plate in time")


@functools.cache
def drawn_boundary() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    @compiled
    def program(key):
        domains = {name: CASES[name].domain for name in DRAWN}
        return {n: d.boundary(key, 300, d.pieces, kronecker, F32) for n, d in domains.items()}

    return jax.tree.map(np.asarray, program(KEY))


@pytest.mark.parametrize("name", DRAWN)
def test_compiled_code_draws_the_boundary_as_the_host_does(name):
    case, domain, count = CASES[name], CASES[name].domain, 300
    points, normals = drawn_boundary()[name]
    assert points.dtype == normals.dtype == F32
    points, normals = points.astype(float), normals.astype(float)
    assert points.shape == normals.shape == (count, domain.dimension)
    assert np.all(np.abs(domain.level(points)) < 1e-6)
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1, rtol=1e-6)
    assert np.all(case.inside(points - 5e-6 * normals))
    assert not np.any(case.inside(points + 5e-6 * normals))
    # Piece after piece, each with its share, and no point twice where there is room.
    rows, start = np.hstack([points, normals]), 0.0
    for piece in domain.pieces:
        end = start + count * case.faces[piece] / sum(case.faces.values())
        here = rows[math.ceil(start) + 1 : math.floor(end) - 1]
        distance = KDTree(np.hstack(faces_of(domain)[piece])).query(here)[0]
        assert np.all(distance < 0.35), piece
        assert domain.dimension == 1 or len(np.unique(here, axis=0)) == len(here)
        start = end


@each_case
def test_the_divergence_theorem_holds(case):
    """The boundary is closed and of the right size: ∮ n = 0 and ∮ x·n = d · volume."""
    area = sum(face.measure for face in case.domain.faces.values())
    flux, total = 0.0, np.zeros(case.domain.dimension)
    for piece, (points, normals) in faces_of(case.domain).items():
        measure = case.domain.faces[piece].measure
        flux += measure * np.mean(np.sum(points * normals, axis=1))
        total += measure * np.mean(normals, axis=0)
    volume = case.domain.volume if math.isnan(case.volume) else case.volume
    assert flux == pytest.approx(len(case.domain.space) * volume, rel=5e-3)
    np.testing.assert_allclose(total, 0, atol=5e-3 * area)


def test_normals_of_a_hole_point_into_the_hole():
    middle = [0.4, 0.5]
    points, normals = CASES["plate"].domain.sample_boundary(50, "hole", "poisson")
    np.testing.assert_allclose(points + 0.2 * normals, np.tile(middle, (50, 1)), atol=1e-12)
    ring = Annulus(0.25, 1, center=(0.4, 0.5))
    points, normals = ring.sample_boundary(50, "inner", "poisson")
    np.testing.assert_allclose(points + 0.25 * normals, np.tile(middle, (50, 1)), atol=1e-12)


def test_boundary_points_are_shared_in_proportion_to_the_visible_parts():
    """Only half of the face x.max is left by the bite."""
    case = CASES["bitten"]
    program = compiled(lambda key: case.domain.boundary(key, 400, pieces, kronecker, F32))
    pieces = case.domain.pieces
    points, normals = jax.tree.map(np.asarray, program(KEY))
    straight = np.abs(normals).max(axis=1) > 1 - 1e-6
    total = sum(case.faces.values())
    for chosen, measure in (
        (points[:, 0] == 0, 1.0),
        ((points[:, 0] == 2) & straight, 0.5),
        ((points[:, 1] == 0) & straight, 2.0),
        (~straight, PI / 4),
    ):
        assert np.sum(chosen) == pytest.approx(400 * measure / total, abs=1.01)


def test_pieces_are_sampled_evenly(x64):
    """On an arc of two thirds of a half-turn, the angle is uniform."""

    @compiled
    def program(key):
        lens = CASES["lens"].domain
        return {
            m: lens.boundary(key, 300, ("right.outer",), s, F64) for m, s in EVERY_SAMPLER.items()
        }

    for method, (points, _) in jax.tree.map(np.asarray, program(KEY)).items():
        angle = np.arctan2(points[:, 1], 1 - points[:, 0])
        assert np.all(np.abs(angle) <= PI / 3 + 1e-4)
        largest = np.diff(np.sort(angle)).max() / (2 * PI / 3 / 300)
        assert largest < {"uniform": 12, "latin": 6}.get(method, 4), method
        assert np.mean(angle) == pytest.approx(0, abs=0.2 if method == "uniform" else 0.03), method


COINCIDENT = {
    "adjacent boxes": (
        unit_square() | unit_square("b", 1),
        2.0,
        {"x.min": 1, "y.min": 1, "y.max": 1, "b.x.max": 1, "b.y.min": 1, "b.y.max": 1},
    ),
    "partly adjacent boxes": (
        unit_square() | Box(x=(1, 2), y=(0.25, 0.5)).named("b"),
        1.25,
        {**SQUARE, "x.max": 0.75, "b.x.max": 0.25, "b.y.min": 1, "b.y.max": 1},
    ),
    "three in a row": (
        unit_square() | unit_square("c", 2) | unit_square("b", 1),
        3.0,
        {"x.min": 1, "c.x.max": 1}
        | {f"{p}y.{side}": 1 for p in ("", "b.", "c.") for side in ("min", "max")},
    ),
    "overlapping boxes": (
        unit_square() | unit_square("b", 0.75),
        1.75,
        {**SQUARE, "b.x.max": 1, "b.y.min": 0.75, "b.y.max": 0.75, "x.max": 0},
    ),
    "the same twice, joined": (unit_square() | unit_square("b"), 1.0, SQUARE),
    "the same twice, intersected": (unit_square() & unit_square("b"), 1.0, SQUARE),
    "the same ring twice": (
        Annulus(0.5, 1) | Annulus(0.5, 1).named("b"),
        PI * 0.75,
        {"inner": PI, "outer": 2 * PI},
    ),
    "intersection with a shared face": (
        Box(x=(0, 2), y=(0, 1)) & Box(x=(0, 1), y=(-1, 2)).named("b"),
        1.0,
        {"x.min": 1, "y.min": 1, "y.max": 1, "b.x.max": 1},
    ),
    "difference with shared faces": (
        Box(x=(0, 2), y=(0, 1)) - unit_square("b", 1),
        1.0,
        {"x.min": 1, "y.min": 1, "y.max": 1, "b.x.min": 1},
    ),
    "a box that touches from outside, subtracted": (
        unit_square() - unit_square("b", 1),
        1.0,
        SQUARE,
    ),
    "a hole filled again": (
        (unit_square() - Disk(0.25, center=(0.5, 0.5))) | Disk(0.25, center=(0.5, 0.5)).named("b"),
        1.0,
        SQUARE,
    ),
    "a ring filled by a disk": (
        Annulus(0.5, 1) | Disk(0.5).named("b"),
        PI,
        {"outer": 2 * PI},
    ),
    "a hole in a hole's place": (
        Annulus(0.5, 1) - Disk(0.5).named("b"),
        PI * 0.75,
        {"inner": PI, "outer": 2 * PI},
    ),
    "intervals that touch": (
        Box(x=(0, 1)) | Box(x=(1, 3)).named("b"),
        3.0,
        {"x.min": 1, "b.x.max": 1},
    ),
    "stacked tubes": (
        Annulus(0.5, 1).extrude(z=(0, 1)) | Annulus(0.5, 1).extrude(z=(1, 2)).named("b"),
        PI * 0.75 * 2,
        {"z.min": PI * 0.75, "b.z.max": PI * 0.75}
        | {f"{p}{side}": PI * n for p in ("", "b.") for side, n in (("inner", 1), ("outer", 2))},
    ),
}


@pytest.mark.parametrize(("domain", "volume", "faces"), COINCIDENT.values(), ids=COINCIDENT.keys())
def test_coincident_faces_count_once(domain, volume, faces):
    assert domain.volume == pytest.approx(volume, rel=1e-3)
    found = {piece: face.measure for piece, face in domain.faces.items()}
    assert found == pytest.approx({p: m for p, m in faces.items() if m}, rel=1e-3)


@pytest.mark.parametrize("offset", [30, 1000])
def test_single_precision_finds_the_boundary_far_from_the_origin(offset):
    """Rounding, 6e-5 at 1000, must not hide the pieces: all points would be the first of them."""
    middle = (offset + 0.5, 0.5)
    plate = unit_square(x=offset) - Disk(0.2, center=middle).named("hole")
    program = compiled(lambda key: plate.boundary(key, 300, plate.pieces, kronecker, F32))
    points, normals = program(KEY)
    points = np.asarray(points, float)
    assert np.all(np.abs(plate.level(points)) < 1e-4)
    assert len(np.unique(points, axis=0)) >= 290
    radius = np.hypot(*(points - middle).T)
    assert np.sum(radius < 0.3) == pytest.approx(300 * 0.4 * PI / (4 + 0.4 * PI), abs=1.01)
    assert np.all(np.abs(np.linalg.norm(np.asarray(normals), axis=1) - 1) < 1e-6)


def test_a_small_hole_far_from_the_origin_keeps_its_boundary():
    """A well of two metres in a square kilometre, in the coordinates of a map."""
    field = Box(x=(5_000_000, 5_001_000), y=(0, 1000))
    field = field - Disk(2, center=(5_000_500, 500)).named("well")
    assert "well.outer" in field.pieces
    assert field.faces["well.outer"].measure == pytest.approx(4 * PI, rel=1e-3)


def test_a_long_strip_keeps_its_long_sides():
    strip = Box(x=(0, 100), y=(0, 1e-3)) - Disk(2e-4, center=(50, 5e-4)).named("hole")
    assert strip.pieces == ("x.min", "x.max", "y.min", "y.max", "hole.outer")


# Names, texts and refusals.


def test_names_stand_before_the_names_of_pieces():
    domain = Annulus(0.5, 1).extrude(z=(0, 1)).named("pipe").named("left")
    assert domain.pieces == (
        "left.pipe.inner",
        "left.pipe.outer",
        "left.pipe.z.min",
        "left.pipe.z.max",
    )
    assert domain.expand("left.pipe.z") == ("left.pipe.z.min", "left.pipe.z.max")
    assert domain.expand("left") == domain.pieces
    plate = CASES["plate"].domain
    assert plate.expand(("hole", "y")) == ("hole.outer", "y.min", "y.max")


def test_a_name_changes_nothing_else():
    plain = CASES["plate in time"].domain
    named = plain.named("plate")
    points = random_points(CASES["plate in time"], 1000)
    np.testing.assert_array_equal(named.level(points), plain.level(points))
    assert (named.volume, named.bounds, named.has_time, named.space) == (
        plain.volume,
        plain.bounds,
        True,
        ("x", "y"),
    )
    first, second = (d.initial(KEY, 5, PoissonDisk(), F32) for d in (named, plain))
    np.testing.assert_array_equal(first, second)


def test_combining_leaves_the_operands_alone():
    square, disk = unit_square(), Disk(0.2, center=(0.5, 0.5))
    assert "outer" in (square - disk).pieces
    assert square.pieces == ("x.min", "x.max", "y.min", "y.max")
    assert disk.pieces == ("outer",)
    assert square.volume == 1.0
    points, normals, _ = disk.faces["outer"].place(np.array([[0.1], [0.7]]))
    np.testing.assert_allclose(points - 0.2 * normals, 0.5)


def test_coordinates_follow_what_was_added():
    domain = Annulus(0.5, 1, coordinates=("y", "z")).extrude(x=(0, 1)).over(t=(0, 1))
    assert domain.coordinates == ("t", "y", "z", "x")
    assert domain.space == ("y", "z", "x")
    assert domain.pieces == ("inner", "outer", "x.min", "x.max")


@pytest.mark.parametrize(
    ("domain", "text"),
    [
        (Annulus(0.25, 1), "Annulus(inner=0.25, outer=1, center=(0, 0))"),
        (Disk(2, center=(1, 0)), "Disk(radius=2, center=(1, 0))"),
        (
            (Disk(2) - Disk(1).named("hole")).extrude(z=(0, 1)).over(t=(0, 2)),
            "(Disk(radius=2, center=(0, 0)) - Disk(radius=1, center=(0, 0)).named('hole'))"
            ".extrude(z=(0, 1)).over(t=(0, 2))",
        ),
    ],
)
def test_repr_is_how_it_was_made(domain, text):
    assert repr(domain) == text


NAN, INF = float("nan"), float("inf")
REFUSED = {
    "clashing pieces": (
        lambda: unit_square() - Box(x=(0.2, 0.3), y=(0.2, 0.3)),
        r"have a boundary piece 'x\.max'; give one of them a name, such as other\.named",
    ),
    "clashing names": (
        lambda: Disk(1).named("a") | Disk(2).named("a"),
        r"have a boundary piece 'a\.outer'",
    ),
    "other coordinates": (
        lambda: unit_square() & Disk(1, coordinates=("x", "z")),
        r"same coordinates of space .* not Box\(x=\(0, 1\), y=\(0, 1\)\) and Disk",
    ),
    "coordinates in another order": (
        lambda: Box(y=(0, 1), x=(0, 1)) | Disk(1),
        "same coordinates of space",
    ),
    "another dimension": (
        lambda: Disk(1) - Disk(0.5).extrude(z=(0, 1)).named("b"),
        "same coordinates of space",
    ),
    "both with time": (
        lambda: Disk(1).over(t=(0, 1)) | Disk(2).over(t=(0, 1)).named("b"),
        r"add time afterwards, with \.over\(t=…\)",
    ),
    "a TimeBox": (lambda: TimeBox(t=(0, 1), x=(0, 1)) - Box(t=(0, 1), x=(0, 1)), "add time after"),
    "boxes apart": (lambda: unit_square() & unit_square("b", 2), "is empty"),
    "boxes that touch": (lambda: unit_square() & unit_square("b", 1), "is empty"),
    "a disk in a hole": (lambda: Annulus(0.5, 1) & Disk(0.4).named("b"), r"\(Annulus.* is empty"),
    "all subtracted": (lambda: Disk(0.5) - unit_square("b", -0.5, -0.5), "is empty"),
    "extrude nothing": (lambda: Disk(1).extrude(), r"\.extrude\(\) takes one axis.*z=\(0, 1\)"),
    "extrude twice at once": (lambda: Disk(1).extrude(z=(0, 1), w=(0, 1)), "takes one axis"),
    "extrude backwards": (lambda: Disk(1).extrude(z=(1, 0)), "side z must go from a lower"),
    "extrude by a word": (lambda: Disk(1).extrude(depth=(0, 1)), "one letter .* not 'depth'"),
    "extrude after time": (
        lambda: Disk(1).over(t=(0, 1)).extrude(z=(0, 1)),
        r"Extrude before adding time",
    ),
    "over nothing": (lambda: Disk(1).over(), r"\.over\(\) takes one axis.*t=\(0, 1\)"),
    "over two": (lambda: Disk(1).over(t=(0, 1), s=(0, 1)), "takes one axis"),
    "over an infinite time": (lambda: Disk(1).over(t=(0, INF)), "side t must go"),
    "over twice": (lambda: Disk(1).over(t=(0, 1)).over(s=(0, 1)), "has a time already"),
    "over a TimeBox": (lambda: TimeBox(t=(0, 1), x=(0, 1)).over(s=(0, 1)), "has a time already"),
    "extrude along x": (lambda: Disk(1).extrude(x=(0, 1)), r"a coordinate twice: x, y, x\."),
    "over y": (lambda: Disk(1).over(y=(0, 1)), r"a coordinate twice: y, x, y\."),
    "the same axis twice": (lambda: Disk(1, coordinates=("x", "x")), "coordinate twice: x, x"),
    "a word for an axis": (lambda: Disk(1, coordinates=("radius", "y")), "one letter"),
    "inner = outer": (lambda: Annulus(1, 1), "0 ≤ inner < outer, not inner = 1, outer = 1"),
    "inner > outer": (lambda: Annulus(2, 1), "0 ≤ inner < outer, not inner = 2, outer = 1"),
    "inner < 0": (lambda: Annulus(-0.5, 1), "inner = -0.5"),
    "inner NaN": (lambda: Annulus(NAN, 1), "inner = nan"),
    "outer NaN": (lambda: Annulus(0.5, NAN), "outer = nan"),
    "outer infinite": (lambda: Annulus(0.5, INF), "outer = inf"),
    "no radius": (lambda: Disk(0), "outer = 0"),
    "negative radius": (lambda: Disk(-1), "outer = -1"),
    "center NaN": (lambda: Disk(1, center=(NAN, 0)), "center"),
    "center infinite": (lambda: Annulus(0.5, 1, center=(0, INF)), "center"),
    "a piece that is hidden": (
        lambda: COINCIDENT["adjacent boxes"][0].sample_boundary(3, "x.max"),
        r"no boundary piece 'x\.max'; this domain has x\.min, y\.min",
    ),
    "a piece without its name": (lambda: CASES["plate"].domain.expand("outer"), r"hole\.outer"),
    "no piece at all": (lambda: CASES["plate"].domain.sample_boundary(3, ()), "no boundary"),
    "no points": (lambda: CASES["plate"].domain.sample(0), "at least 1, not 0"),
    "no points, poisson": (lambda: Disk(1).sample(0, "poisson"), "at least 1, not 0"),
    "unknown method": (lambda: Disk(1).sample(3, "sobl"), "Unknown sampler 'sobl'.*'sobol'"),
    "initial without time": (lambda: Disk(1).initial(KEY, 3, uniform, F32), "has no time"),
    "cut outside": (lambda: CASES["ring"].domain.cut("x", 1.5), "x = 1.5 lies outside the domain"),
    "cut across time": (lambda: CASES["plate in time"].domain.cut("t", 0), "no axis 't'.* x, y"),
    "cut through a gap": (lambda: CASES["islands"].domain.cut("x", 1.5), "x = 1.5 lies outside"),
    "cut where all was taken away": (
        lambda: (Box(x=(0, 2), y=(0, 1)) - unit_square("b", 1)).cut("x", 1.5),
        "x = 1.5 lies outside",
    ),
}


@pytest.mark.parametrize(("make", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_refusals_say_what_is_wrong(make, message):
    with pytest.raises(UserError, match=message):
        make()


# Poisson-disk points.


def check_distance(points: np.ndarray, distance: float) -> None:
    nearest = KDTree(points).query(points, k=2)[0][:, 1]
    assert distance > 0
    assert nearest.min() >= distance


def check_maximal(points: np.ndarray, distance: float, probes: np.ndarray) -> None:
    gaps = KDTree(points).query(probes)[0]
    assert np.mean(gaps > 1.5 * distance) < 0.01
    assert np.mean(gaps > distance) < 0.03


@each_case
def test_poisson_disk_points_inside(case):
    count = 300
    points, normals, distance = spread((case.domain.body,), count, np.random.default_rng(0))
    assert points.shape == (count, case.domain.dimension)
    assert normals is None
    assert np.all(case.domain.contains(points))
    check_distance(points, distance)
    probes = random_points(case, 30_000, seed=1)
    check_maximal(points, distance, probes[case.inside(probes)])


@only(*(name for name in CASES if name != "two intervals"))
def test_poisson_disk_points_of_the_whole_boundary(case):
    """Points of different faces keep their distance too, around every corner."""
    count = 200
    patches = tuple(case.domain.faces.values())
    points, normals, distance = spread(patches, count, np.random.default_rng(0))
    assert points.shape == normals.shape == (count, case.domain.dimension)
    check_distance(points, distance)
    assert np.all(np.abs(case.domain.level(points)) < 1e-12)
    assert np.all(case.inside(points - 1e-7 * normals))
    assert not np.any(case.inside(points + 1e-7 * normals))
    check_maximal(points, distance, np.concatenate([p for p, _ in faces_of(case.domain).values()]))


@pytest.mark.parametrize("count", [2, 3, 4, 7, 20])
@only("ring", "L", "tube", "two intervals")
def test_a_few_poisson_disk_points_are_as_many_as_asked_for(case, count):
    for seed in range(3):
        points, _, distance = spread((case.domain.body,), count, np.random.default_rng(seed))
        assert len(points) == count
        check_distance(points, distance)
        # No worse than a quarter of the spacing of a regular grid.
        assert distance > 0.25 * (case.volume / count) ** (1 / case.domain.dimension)


def test_the_ends_of_a_line_share_poisson_disk_points():
    """There is no distance to keep between points of one end, but both ends have their share."""
    for seed in range(8):
        points, _ = Box(x=(0, 1)).sample_boundary(4, method="poisson", seed=seed)
        assert sorted(points.ravel().tolist()) == [0, 0, 1, 1]


def test_poisson_disk_points_are_decided_by_the_seed():
    """Domains made anew, since a domain remembers its points."""

    def draw(seed):
        plate = unit_square() - Disk(0.2, center=(0.5, 0.5))
        return (
            plate.sample(60, "poisson", seed),
            *plate.sample_boundary(60, None, "poisson", seed),
            plate.spread(60, np.random.default_rng(seed)),
        )

    for first, again, other in zip(draw(1), draw(1), draw(2), strict=True):
        np.testing.assert_array_equal(first, again)
        assert not np.array_equal(first, other)


def test_changing_the_points_does_not_change_later_ones():
    disk = Disk(1)
    points, normals = disk.sample_boundary(20, method="poisson")
    kept = points.copy()
    try:
        points += 1
        normals *= 0
    except ValueError:
        pass  # read-only is as good
    again, directions = disk.sample_boundary(20, method="poisson")
    np.testing.assert_array_equal(again, kept)
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1)


def test_poisson_boundary_in_compiled_code_is_one_set_in_any_order():
    domain = CASES["L"].domain

    @jax.jit
    def program(key):
        return domain.boundary(key, 100, domain.pieces, PoissonDisk(seed=5), F32)

    rows = [np.hstack(program(jax.random.key(seed))) for seed in (0, 1)]
    assert not np.array_equal(*rows)
    first, second = (r[np.lexsort(r.T)] for r in rows)
    np.testing.assert_array_equal(first, second)
    host = np.hstack(domain.sample_boundary(100, None, "poisson", seed=5)).astype(np.float32)
    np.testing.assert_array_equal(first, host[np.lexsort(host.T)])
    assert all(len(np.unique(r, axis=0)) == 100 for r in rows)


def test_ten_thousand_poisson_disk_points_in_space_take_seconds():
    case = CASES["tube"]
    start = time.perf_counter()
    points, _, distance = spread((case.domain.body,), 10_000, np.random.default_rng(0))
    assert time.perf_counter() - start < 20
    assert len(points) == 10_000
    assert np.all(case.inside(points))
    check_distance(points, distance)


@pytest.mark.parametrize("length", [0.01, 1, 100])
def test_spread_points_keep_their_distance_in_the_unit_box(length):
    """However long the time is beside the space, it is one side of the box."""
    domain = CASES["plate"].domain.over(t=(0, length))
    points = domain.spread(100, np.random.default_rng(0))
    assert points.shape == (100, 3)
    assert np.all(domain.contains(points))
    scaled = points / [length, 1, 1]
    nearest = KDTree(scaled).query(scaled, k=2)[0][:, 1]
    assert nearest.min() > 0.6 * (CASES["plate"].volume / 100) ** (1 / 3)


# Quadrature, cuts and copies.


@each_case
def test_quadrature_weights_take_a_mean(case):
    points, weights = case.domain.body.quadrature(400)
    assert len(points) == len(weights)
    assert weights.sum() == pytest.approx(1, rel=1e-12)
    assert np.all(weights > 0)
    assert np.all(case.domain.contains(points))


def test_quadrature_of_an_annulus_is_exact():
    """Means of even powers: those of r^n times those of the cosine."""
    points, weights = CASES["ring"].domain.body.quadrature(900)
    x, y = points[:, 0] - 0.5, points[:, 1] + 1
    a, b = 1 / 16, 1.0  # the squares of the radii
    square, fourth = (a + b) / 2, (b**3 - a**3) / (3 * (b - a))
    for values, mean in (
        (x, 0.0),
        (x * y, 0.0),
        (x**2 + y**2, square),
        (x**2, square / 2),
        (x**4, fourth * 3 / 8),
        (x**2 * y**2, fourth / 8),
    ):
        assert weights @ values == pytest.approx(mean, abs=1e-10)


def test_quadrature_of_a_circle_is_exact():
    points, weights = CASES["ring"].domain.faces["outer"].quadrature(40)
    np.testing.assert_allclose(weights @ points, [0.5, -1], atol=1e-12)
    np.testing.assert_allclose(weights @ (points - [0.5, -1]) ** 4, 3 / 8, rtol=1e-12)


@pytest.mark.parametrize("name", MEANS)
def test_quadrature_gives_the_means_of_any_domain(name):
    points, weights = CASES[name].domain.body.quadrature(4000)
    for label, (f, mean) in MEANS[name].items():
        assert weights @ f(points) == pytest.approx(mean, abs=3e-3), label


CUTS = {
    "ring through its hole": ("ring", "x", 0.5, 1.5),
    "ring beside its hole": ("ring", "y", -0.5, 2 * math.sqrt(0.75)),
    "plate through its hole": ("plate", "x", 0.4, 0.6),
    "plate beside its hole": ("plate", "x", 0.8, 1.0),
    "L": ("L", "y", 1.5, 1.0),
    "across a tube": ("tube", "z", 0.3, PI * (1 - 1 / 16)),
    "along a tube": ("tube", "x", 0.5, 3.0),
    "a ring in time": ("ring in time", "x", 0.5, 3.0),
    "an interval": ("two intervals", "x", 0.5, 1.0),
    "intervals in time": ("intervals in time", "x", 2.5, 0.5),
}


@pytest.mark.parametrize(("name", "axis", "at", "measure"), CUTS.values(), ids=CUTS.keys())
def test_a_cut_is_the_part_of_a_plane_inside(name, axis, at, measure):
    case = CASES[name]
    i = case.domain.coordinates.index(axis)
    cut = case.domain.cut(axis, at)
    assert cut.measure == pytest.approx(measure, rel=1e-3)
    placed = cut.scatter(500, np.random.default_rng(0))
    np.testing.assert_array_equal(placed.points[:, i], at)
    assert np.all(case.inside(placed.points))
    np.testing.assert_array_equal(
        placed.normals, np.tile(np.eye(case.domain.dimension)[i], (500, 1))
    )
    points, weights = cut.quadrature(100)
    assert weights.sum() == pytest.approx(1, rel=1e-12)
    np.testing.assert_array_equal(points[:, i], at)
    assert np.all(case.inside(points))


PICKLE = """
import sys, cloudpickle
from hyrespinn import Annulus, Box, Disk, TimeBox
domains = [eval(text) for text in sys.stdin.read().splitlines()]
sys.stdout.buffer.write(cloudpickle.dumps(domains))
"""


@pytest.mark.slow
def test_domains_survive_pickling_into_another_process():
    """They are made there from their texts, and come back with the code they are made of."""
    cases = [CASES[n] for n in ("lens", "window", "two intervals", "bored block", "plate in time")]
    texts = "\n".join(repr(case.domain) for case in cases)
    command = [sys.executable, "-c", PICKLE]
    done = subprocess.run(command, input=texts.encode(), capture_output=True, check=True)
    for case, copy in zip(cases, cloudpickle.loads(done.stdout), strict=True):
        domain = case.domain
        for name in ("text", "coordinates", "space", "bounds", "pieces", "volume"):
            assert getattr(copy, name) == getattr(domain, name)
        points = random_points(case, 500)
        np.testing.assert_array_equal(copy.contains(points), case.inside(points))
        for piece in domain.pieces:
            first, second = (
                d.faces[piece].scatter(20, np.random.default_rng(0)) for d in (copy, domain)
            )
            np.testing.assert_array_equal(first.points, second.points)
            np.testing.assert_array_equal(first.normals, second.normals)
