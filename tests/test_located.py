"""Where kernels lie in the domain: mapped back from what a network sees of a point."""

from __future__ import annotations

import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.discretise import Fixed
from hyrespinn.models import Moving
from hyrespinn.models.embeddings import Embedding
from hyrespinn.models.inputs import Inputs
from hyrespinn.models.kernels import Gaussian, Multiquadric
from hyrespinn.models.kernels.distances import Diagonal
from hyrespinn.models.kernels.rbf import RBF
from hyrespinn.models.located import Located, half_radius
from hyrespinn.models.parameters import flatten
from hyrespinn.optim import Adam

pytestmark = pytest.mark.usefixtures("x64")
POINTS = np.array([[0.5, -1.0], [1.5, 2.0], [0.1, 2.9]])


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("harmonics", [1, 3])
def test_centres_and_widths_are_those_of_the_function_of_the_point(periodic, harmonics):
    """The kernel falls to one half at the width, along each coordinate by itself."""
    embedding = Embedding(((0.0, 2.0), (-1.0, 3.0)), (False, periodic), harmonics)
    centers = embedding.places(POINTS)
    widths = jnp.asarray(np.tile(embedding.widths([0.05, 0.02]), (3, 1)))
    rbf = RBF(centers, Diagonal().start(widths, embedding.size), jnp.eye(3), Gaussian(), Diagonal())
    found = Located.of(rbf, embedding)
    np.testing.assert_allclose(found.centers, POINTS, atol=1e-12)
    np.testing.assert_allclose(found.sizes, 1)
    for along in (0, 1):
        moved = POINTS.copy()
        moved[:, along] += found.widths[:, along]
        heights = np.diag(rbf.basis(embedding.places(moved)))
        np.testing.assert_allclose(heights, 0.5, atol=2e-2)


def test_a_kernel_that_grows_has_a_radius_of_one():
    assert half_radius(Multiquadric()) == 1.0


def test_kernels_of_windows_lie_in_their_windows():
    small = {"model.width": 4, "model.kernels.count": 5, "points.interior": 64}
    stages = {"stages": (Adam(steps=2, batch=16),), "marching": Fixed(2)}
    solution = hp.solve(
        "allen-cahn-periodic", method="network", settings={**small, **stages}, reference=False
    )
    first, second = solution.kernels
    assert first.centers.shape == second.centers.shape == (5, 2)
    # With hardly a step they are where the first window's are, half a unit of time later.
    np.testing.assert_allclose(second.centers[:, 0] - first.centers[:, 0], 0.5, atol=0.02)
    np.testing.assert_allclose(second.widths[:, 0], first.widths[:, 0], rtol=0.1)
    assert np.all(first.centers[:, 0] > -0.05) & np.all(first.centers[:, 0] < 0.55)


def test_a_network_without_kernels_has_none():
    settings = {"model.width": 4, "stages": (Adam(steps=1, batch=16),), "points.interior": 64}
    solution = hp.solve("poisson-2d", method="network", model="pinn", settings=settings)
    assert solution.kernels == ()


def network(walls, periodic=False, has_time=True):
    def spread(count, rng):
        return rng.random((count, 2)) * [2.0, 4.0] + [0.0, -1.0]

    bounds = ((0.0, 2.0), (-1.0, 3.0))
    inputs = Inputs(bounds, (False, periodic), 1, 2, spread, spread, has_time)
    spec = hp.HyResPINN(width=4, kernels=Moving(count=7, walls=walls, kernel=Gaussian()))
    built = spec.build(inputs, jax.random.key(0))
    assert spec.count(inputs) == flatten(built)[0].size
    return built.located()


def test_layers_begin_at_the_walls_each_time_half_as_thick():
    """Time has no walls; the layers are in its middle and as long as most of it."""
    found = network(walls=4)
    assert found.centers.shape == (7, 2)
    np.testing.assert_allclose(found.centers[3:], [[1.0, -1.0], [1.0, 3.0]] * 2, atol=1e-12)
    half = half_radius(Gaussian())
    np.testing.assert_allclose(found.widths[3:, 1] / half, 2 * np.array([0.08, 0.08, 0.04, 0.04]))
    np.testing.assert_allclose(found.widths[3:, 0] / half, 1.5)
    assert np.all(np.abs(found.centers[:3, 1] - 1) < 2), "the others are spread inside"


def test_a_box_has_walls_on_all_sides_and_a_circle_none():
    centers = network(walls=4, has_time=False).centers[3:]
    np.testing.assert_allclose(
        centers, [[0.0, 1.0], [2.0, 1.0], [1.0, -1.0], [1.0, 3.0]], atol=1e-12
    )
    assert len(network(walls=4, periodic=True).centers) == 7
    np.testing.assert_allclose(
        network(walls=4, periodic=True).centers, network(walls=0, periodic=True).centers
    )


def test_some_kernels_are_not_at_walls():
    with pytest.raises(hp.UserError, match="7 of 7 kernels cannot begin at walls"):
        Moving(count=7, walls=7)
