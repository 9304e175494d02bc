"""Kernels and points on lattices: against scattered kernels, known nodes, and what they must fit."""

from __future__ import annotations

import equinox as eqx
import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.derivatives import closure, coordinates
from hyrespinn.errors import UserError
from hyrespinn.geometry.lattice import Lattice, radau_points
from hyrespinn.models import KernelExpansion
from hyrespinn.models import Lattice as KernelLattice
from hyrespinn.models.embeddings import Embedding
from hyrespinn.models.kernels import Diagonal, Gaussian
from hyrespinn.models.kernels.lattice import LatticeKernels, lattice_axes
from hyrespinn.models.kernels.rbf import RBF
from hyrespinn.models.parameters import flatten
from hyrespinn.problems.boundary import Lifted
from hyrespinn.problems.statement import state

pytestmark = pytest.mark.usefixtures("x64")

BOUNDS = ((0.0, 2.0), (-1.0, 1.0), (0.0, 3.0))
PERIODIC = (False, True, False)
COUNTS = (3, 5, 4)
SPEC = KernelLattice((4, 8))


def both(dimension, harmonics=1, partition_of_unity=False):
    """The same kernels on a lattice and one by one."""
    bounds, periodic, counts = (given[:dimension] for given in (BOUNDS, PERIODIC, COUNTS))
    embedding = Embedding(bounds, periodic, harmonics)
    widths = [1.5, 0.9, 0.7][:dimension]
    axes = lattice_axes(bounds, periodic, counts, has_time=True)
    on_lattice = LatticeKernels(axes, embedding, widths, 2, partition_of_unity)
    weights = jax.random.normal(jax.random.key(0), on_lattice.coefficients.shape)
    on_lattice = eqx.tree_at(lambda r: r.coefficients, on_lattice, weights)
    centers = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dimension)
    places = embedding(jnp.asarray(centers))
    features = np.tile(embedding.widths(widths), (len(centers), 1))
    shapes = Diagonal().start(jnp.asarray(features), places.shape[1])
    return embedding, on_lattice, RBF(places, shapes, weights, Gaussian(), Diagonal())


def grid_of(dimension):
    axes = [np.linspace(a, b, n) for (a, b), n in zip(BOUNDS, (4, 3, 2), strict=True)]
    return jnp.asarray(np.stack(np.meshgrid(*axes[:dimension], indexing="ij"), axis=-1))


@pytest.mark.parametrize("on_grid", [True, False], ids=["grid", "scattered"])
def test_a_partition_of_unity_is_factors_divided_by_their_sum(on_grid):
    """Values and derivatives against nested reverse mode of the quotient written out."""
    embedding, rbf, _ = both(2, partition_of_unity=True)
    (times, along), (places, across) = (factor.array for factor in rbf.factors)

    def quotient(point):
        h = embedding(point[None])
        t = jnp.exp(-0.5 * Diagonal().squares(along, h[:, :1], times))
        x = jnp.exp(-0.5 * Diagonal().squares(across, h[:, 1:], places))
        weights = rbf.coefficients[:, 0].reshape(t.shape[1], -1)
        return ((t / t.sum()) @ weights @ x.T)[0, 0]

    points = grid_of(2)
    flat = points.reshape(-1, 2)
    found = rbf(embedding(coordinates(points if on_grid else flat, closure([(2, 1)], 2))))
    by_time = jax.grad(jax.grad(lambda t, x: quotient(jnp.stack([t, x]))))
    both_ways = jax.vmap(jax.grad(by_time, argnums=1))(*flat.T)
    np.testing.assert_allclose(found.value[..., 0].ravel(), jax.vmap(quotient)(flat), atol=1e-13)
    np.testing.assert_allclose(found[2, 1][..., 0].ravel(), both_ways, atol=1e-10)


def built(lattice):
    problem = hp.problems.KortewegDeVries()
    inputs = Lifted().inputs(state(problem))
    return KernelExpansion(lattice).build(inputs, jax.random.key(0))


def test_a_partition_of_unity_makes_a_constant_along_time():
    model = built(KernelLattice((4, 8), partition_of_unity=True))
    points = jnp.asarray(hp.problems.KortewegDeVries().domain.sample(50))
    np.testing.assert_array_equal(model(points), 0, "all of it starts at zero")
    waves = jnp.tile(jnp.cos(jnp.arange(8.0)), 4)[:, None]
    model = eqx.tree_at(lambda m: m.lattice.coefficients, model, waves)
    series = model(coordinates(points, closure([(2, 0)], 2)))
    assert np.abs(series.value).max() > 0.1
    np.testing.assert_allclose(series[1, 0], 0, atol=1e-12)
    np.testing.assert_allclose(series[2, 0], 0, atol=1e-11)


@pytest.mark.parametrize("unity", [False, True])
def test_an_expansion_on_a_grid_is_that_at_its_points(unity):
    """Kernels and affine part, with derivatives."""
    model = built(KernelLattice((4, 8), partition_of_unity=unity))
    theta, assemble = flatten(model)
    model = assemble(jax.random.normal(jax.random.key(3), theta.shape))
    axes = np.linspace(0, 1, 3), np.linspace(-1, 1, 5)
    grid = jnp.asarray(np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1))
    indices = closure([(1, 1), (0, 3)], 2)
    found = model(coordinates(grid, indices))
    wanted = model(coordinates(grid.reshape(-1, 2), indices))
    for index in indices:
        size = np.abs(wanted[index]).max()
        np.testing.assert_allclose(
            found[index].reshape(-1, 1), wanted[index], atol=1e-12 * size, err_msg=str(index)
        )


@pytest.mark.parametrize(
    ("dimension", "harmonics"),
    [(1, 1), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((2, 1), (3, 1), (2, 2)))],
)
@pytest.mark.parametrize("on_grid", [True, False], ids=["grid", "scattered"])
def test_a_lattice_is_the_sum_of_its_kernels(dimension, harmonics, on_grid):
    """Values and derivatives, mixed ones too, at points that form a grid and at any."""
    embedding, on_lattice, one_by_one = both(dimension, harmonics)
    points = grid_of(dimension)
    flat = points.reshape(-1, dimension)
    highest = [tuple(int(a == b) * n for b in range(dimension)) for a, n in enumerate((1, 3, 2))]
    indices = closure([*highest[:dimension], (1,) * dimension], dimension)
    derivatives = eqx.filter_jit(lambda rbf, at: rbf(embedding(coordinates(at, indices))))
    wanted = derivatives(one_by_one, flat)
    found = derivatives(on_lattice, points if on_grid else flat)
    for index in indices:
        size = np.abs(wanted[index]).max()
        np.testing.assert_allclose(
            found[index].reshape(-1, 2), wanted[index], atol=1e-12 * size, err_msg=str(index)
        )
    values = on_lattice(embedding(points if on_grid else flat)).reshape(-1, 2)
    np.testing.assert_allclose(values, one_by_one(embedding(flat)), atol=1e-13)


def test_a_point_on_a_centre_has_finite_gradients():
    embedding, on_lattice, _ = both(2)
    centre = jnp.asarray([[0.0, -1.0]])
    indices = closure([(1, 4)], 2)
    series = jax.jit(lambda at: on_lattice(embedding(coordinates(at, indices))))(centre)
    assert all(np.isfinite(part).all() for part in series.parts.values())
    gradient = jax.grad(lambda r: jnp.sum(r(embedding(centre))), allow_int=True)(on_lattice)
    assert np.isfinite(gradient.coefficients).all()


def test_points_with_other_axes_are_scattered():
    """One point by itself, as under ``vmap``, and more axes than a grid has."""
    embedding, on_lattice, _ = both(2)
    points = grid_of(2).reshape(-1, 2)
    wanted = on_lattice(embedding(points))
    one_by_one = jax.vmap(lambda p: on_lattice(embedding(p)))(points)
    np.testing.assert_allclose(one_by_one, wanted, atol=1e-13)
    folded = on_lattice(embedding(points.reshape(2, 3, 2, 2)))
    np.testing.assert_allclose(folded.reshape(-1, 2), wanted, atol=1e-13)


def test_only_coefficients_and_the_affine_part_are_trained():
    theta, assemble = flatten(built(SPEC))
    assert theta.size == 4 * 8 + (3 + 1)
    marked = assemble(jnp.arange(theta.size) + 1.0)
    places = np.concatenate([np.ravel(a) for a in marked.linear_leaves()])
    np.testing.assert_array_equal(np.sort(places), np.arange(theta.size) + 1)


@pytest.mark.parametrize(
    ("lattice", "message"),
    [
        (lambda: KernelLattice((4,)), "counts has 1 numbers, and the problem 2 coordinates"),
        (lambda: KernelLattice((4, 0)), "whole number of kernels"),
        (lambda: KernelLattice(()), "whole number of kernels"),
        (lambda: KernelLattice((4, 8), overlap=0.0), "Lattice: overlap must be positive"),
        (lambda: KernelLattice((4, 8), time_width=-1.0), "Lattice: time_width must be at least 0"),
    ],
    ids=range(5),
)
def test_a_lattice_that_cannot_be_is_explained(lattice, message):
    with pytest.raises(UserError, match=message):
        built(lattice())


@pytest.mark.parametrize("count", [1, 2, 3, 5, 7])
def test_radau_points_make_quadrature_exact(count):
    """The weights that integrate polynomials of lower degree integrate those up to ``2n − 2``."""
    points = radau_points(count)
    assert points[-1] == 1.0
    powers = points[None] ** np.arange(count)[:, None]
    weights = np.linalg.solve(powers, 1 / np.arange(1, count + 1))
    for degree in range(2 * count - 1):
        assert np.dot(weights, points**degree) == pytest.approx(1 / (degree + 1), abs=1e-12)


def test_points_of_a_lattice():
    domain = hp.TimeBox(t=(1, 3), x=(-1, 1), y=(0, 1))
    lattice = Lattice(domain, (2, 4, 3), (False, True, False))
    points = lattice.points().reshape(2, 4, 3, 3)
    np.testing.assert_allclose(points[:, 0, 0, 0], [1 + 2 / 3, 3])
    np.testing.assert_allclose(points[0, :, 0, 1], [-1, -0.5, 0, 0.5])
    np.testing.assert_allclose(points[0, 0, :, 2], 0.5 + np.sqrt(0.15) * np.array([-1, 0, 1]))
    start = lattice.start()
    assert start.shape == (12, 3)
    assert (start[:, 0] == 1).all()
    assert lattice.space == (1, 4, 3)


def test_points_that_cannot_form_a_lattice_are_explained():
    box = hp.TimeBox(t=(0, 1), x=(0, 1))
    with pytest.raises(UserError, match="each of t, x"):
        Lattice(box, (3,), (False, True))
    with pytest.raises(UserError, match="for boxes"):
        Lattice(hp.Annulus(inner=0.25, outer=1.0), (4, 4), (False, False))
