"""Estimated errors against known ones, and each piece of them against an independent oracle."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy
from hyrespinn.derivatives import Taylor
from hyrespinn.estimate.banded import Least
from hyrespinn.estimate.defect import held
from hyrespinn.estimate.estimate import choose_grid
from hyrespinn.estimate.kernels import KernelSpace
from hyrespinn.estimate.linearise import linearise
from hyrespinn.estimate.splines import SplineSpace, cardinal
from hyrespinn.geometry.sampling import kronecker
from hyrespinn.losses.terms import Counts, Samples, Sampling, Term, Weights, terms_of
from hyrespinn.problems.boundary import Imposed, Lifted
from hyrespinn.problems.boundary.treatment import Ansatz
from hyrespinn.problems.statement import state
from jax import Array

RNG = np.random.default_rng(3)


@pytest.mark.parametrize(("degree", "order"), [(1, 0), (3, 0), (3, 2), (5, 1), (5, 4)])
def test_cardinal_splines_are_those_of_scipy(degree: int, order: int) -> None:
    u = RNG.random(20)
    knots = np.arange(-degree, degree + 2, dtype=float)
    for j in range(degree + 1):
        one = scipy.interpolate.BSpline(knots, np.eye(degree + 1)[j], degree)
        assert np.allclose(cardinal(u, degree, order)[:, j], one(u, order), atol=1e-12)


@pytest.mark.parametrize("periodic", list(product((False, True), repeat=2)))
def test_operators_on_splines(periodic: tuple[bool, bool]) -> None:
    space = SplineSpace(((0.0, 1.0), (0.0, 2.0)), (14, 15), 5, periodic, fields=2)
    points = RNG.random((4000, 2)) * [1, 2]
    x, y = points.T
    wave = np.sin(2 * np.pi * x) * np.cos(np.pi * y)
    found = np.linalg.lstsq(space.values(points, (0, 0), 1).toarray(), wave, rcond=None)[0]
    operator = {(1, 0): np.stack([0 * x, x], 1), (0, 2): np.stack([0 * x, 3 + 0 * x], 1)}
    expected = x * 2 * np.pi * np.cos(2 * np.pi * x) * np.cos(np.pi * y) - 3 * np.pi**2 * wave
    assert np.abs(space.rows(points, operator) @ found - expected).max() < 2e-2
    normal = (space.rows(points, operator).T @ space.rows(points, operator)).tocoo()
    assert np.abs(normal.row - normal.col).max() <= space.bandwidth


def test_operators_on_gaussians(x64: None) -> None:
    """Against derivatives of the same Gaussians by nested forward mode."""
    space = KernelSpace(((0.0, 1.0), (0.0, 2.0), (-1.0, 1.0), (0.0, 0.5)), 30, fields=2)
    points = jnp.asarray(RNG.random((9, 4)))
    coefficients = RNG.random(space.size)
    weights = jnp.asarray(coefficients.reshape(30, 2))

    def fields(x: Array) -> Array:
        z = (x - space._centres) / space._widths
        return jnp.exp(-jnp.sum(z**2, axis=1) / 2) @ weights

    third = jax.vmap(jax.jacfwd(jax.jacfwd(jax.jacfwd(fields))))(points)
    slopes = {(1, 2, 0, 0): np.stack([np.ones(9), np.zeros(9)], 1)}
    found = space.rows(np.asarray(points), slopes) @ coefficients
    assert np.allclose(found, third[:, 0, 0, 1, 1], rtol=1e-9)
    values = space.values(np.asarray(points), (0, 0, 0, 0), 1) @ coefficients
    assert np.allclose(values, jax.vmap(fields)(points)[:, 1])


def test_splines_that_lie_outside_of_a_domain_are_held() -> None:
    """Of all splines on the square around a disk, those with next to nothing inside."""
    space = SplineSpace(((-1.0, 1.0), (-1.0, 1.0)), (20, 20), 3, (False, False), 1)
    points = np.asarray(hp.Disk(radius=1).sample(4000, "sobol"))
    matrix = space.rows(points, {(2, 0): np.ones((4000, 1)), (0, 2): np.ones((4000, 1))})
    rows = held(space, points, matrix)
    chosen = np.unique(rows.indices)
    inside = np.asarray(space.values(points, (0, 0), 0).power(2).sum(axis=0)).ravel()
    assert 0 < len(chosen) == rows.shape[0] < space.size / 2
    assert inside[chosen].max() < np.delete(inside, chosen).min()
    lengths = np.sqrt(np.asarray(matrix.power(2).sum(axis=0)).ravel())
    assert 0 < rows.data.max() < 1e-2 * np.median(lengths)


def test_dense_products_are_those_of_sparse_ones() -> None:
    matrix = RNG.random((70, 20))
    right = RNG.random(70)
    found = Least.of(scipy.sparse.csr_array(matrix)).solve(right, 1e-12)
    assert np.allclose(found, np.linalg.lstsq(matrix, right, rcond=None)[0])


def test_banded_least_squares() -> None:
    matrix = scipy.sparse.diags_array(
        [RNG.random(60), RNG.random(59), RNG.random(58)], offsets=[0, 1, -2], shape=(60, 60)
    ).tocsr()
    right = RNG.random(60)
    least = Least.of(matrix)
    assert np.allclose(least.solve(right, 1e-10), np.linalg.solve(matrix.toarray(), right))
    weakest = np.linalg.svd(matrix.toarray())[1].min()
    identity = scipy.sparse.eye_array(60).tocsr()
    assert least.weakest(identity, 60) == pytest.approx(weakest, rel=1e-3)


class Mixed(hp.Problem):
    """Conditions of every kind: values, slopes, a mean, a periodic axis that is not built in."""

    domain = hp.Box(x=(0, 1), y=(0, 1))
    fields = ("u",)

    def residual(self, u: hp.Field, p: hp.Point) -> Array:
        return u.xx + u.yy - p.x * u.x * u - u**3

    def conditions(self) -> list[hp.Condition]:
        return [
            hp.Dirichlet(0.3, on="x.min"),
            hp.Neumann(0.1, on="x.max"),
            hp.MeanValue(0.2),
            hp.Periodic("y", exact=False),
        ]


def test_terms_are_linearised_as_they_are(x64: None) -> None:
    statement = state(Mixed())
    sampling = Sampling(Counts(40, 30, 30), kronecker, jnp.dtype("float64"))
    left = tuple(range(len(statement.conditions)))
    terms = terms_of(statement, Imposed(Ansatz(), left), sampling, Weights())
    space = SplineSpace(statement.domain.bounds, (4, 4), 3, (False, False), 1)
    coefficients = RNG.random(space.size)

    def solution(x: Any) -> Any:
        column = x @ jnp.array([[1.0], [0.7]])
        return column * column + 0.5

    for term in terms[1:]:
        samples = term.draw(jax.random.key(0))
        for name, linear in linearise(term, solution, samples, None).items():

            def moved(size: float, term: Term = term, samples: Samples = samples) -> Any:
                def with_error(x: Any) -> Any:
                    points = np.asarray(x.value if isinstance(x, Taylor) else x)
                    y = solution(x)
                    if not isinstance(x, Taylor):
                        return y + size * (space.values(points, (0, 0), 0) @ coefficients)[:, None]
                    added = {k: space.values(points, k, 0) @ coefficients for k in x.indices}
                    return Taylor({k: y[k] + size * added[k][:, None] for k in added}, x.indices)

                return term.residuals(with_error, samples)

            difference = (moved(1e-6)[name] - moved(-1e-6)[name]).reshape(-1) / 2e-6
            assert np.allclose(linear.rows(space) @ coefficients, difference, atol=1e-6), name


@dataclass(frozen=True)
class Robin(hp.Condition):
    """A condition that differentiates by itself."""

    def place(self, equation: Any) -> Any:
        return hp.places.Pieces(equation.domain.expand("x.max"))

    def residuals(self, equation: Any, solution: Any, at: Samples) -> Array:
        value, slope = jax.jvp(lambda x: solution(x)[:, 0], (at.points,), (at.normals,))
        return slope + value**2


class Cooled(Mixed):
    def conditions(self) -> list[hp.Condition]:
        return [Robin()]


def test_conditions_that_differentiate_are_linearised_too(x64: None) -> None:
    statement = state(Cooled())
    sampling = Sampling(Counts(40, 30, 30), kronecker, jnp.dtype("float64"))
    _, term = terms_of(statement, Imposed(Ansatz(), (0,)), sampling, Weights())
    samples = term.draw(jax.random.key(0))

    def solution(x: Any) -> Any:
        column = x @ jnp.array([[1.0], [0.7]])
        return column * column + 0.5

    def linear(samples: Samples) -> Any:
        return linearise(term, solution, samples, None)["robin"]

    (read,) = jax.jit(linear)(samples).reads
    expected = {(1, 0): 1.0, (0, 0): 2 * solution(samples.points)[:, 0]}
    for index, slope in read.slopes.items():
        assert np.allclose(slope[:, 0], expected.get(index, 0.0)), index


@pytest.mark.parametrize("name", ["poisson-2d", "heat-1d", "wave-1d", "advection"])
def test_estimates_are_near_true_errors(name: str) -> None:
    result = hp.solve(name, progress=False).result
    estimate, error = result["estimated_error"]["u"], result["rel_l2"]["u"]
    assert error / 3 < estimate < 3 * error
    assert result["verdict"] == "solved"
    assert result["seconds"]["estimate"] > 0


class Resonant(hp.Problem):
    domain = hp.Box(x=(0, 1), y=(0, 1))
    fields = ("u",)

    def residual(self, u: hp.Field, p: hp.Point) -> Array:
        return u.xx + u.yy + 2 * jnp.pi**2 * u - 1

    def conditions(self) -> list[hp.Condition]:
        return [hp.Dirichlet(0.0)]


def test_a_resonance_is_not_solved() -> None:
    result = hp.solve(Resonant(), progress=False).result
    assert result["verdict"] == "unresolved"
    assert "not-unique" in {warning["code"] for warning in result["warnings"]}


class Layer(hp.Problem):
    domain = hp.Box(x=(0, 1), y=(0, 1))
    fields = ("u",)

    def residual(self, u: hp.Field, p: hp.Point) -> Array:
        return -1e-4 * (u.xx + u.yy) + u.x - 1

    def conditions(self) -> list[hp.Condition]:
        return [hp.Dirichlet(0.0)]


def test_a_layer_that_is_too_thin_is_not_solved() -> None:
    result = hp.solve(Layer(), progress=False).result
    assert result["verdict"] == "unresolved"
    assert "resolution" in {warning["code"] for warning in result["warnings"]}


def test_a_tolerance_judges_and_does_not_change() -> None:
    loose, strict = (hp.solve("heat-1d", progress=False, tolerance=t) for t in (1e-3, 1e-13))
    assert (loose.result["verdict"], strict.result["verdict"]) == ("solved", "unresolved")
    assert loose.result["losses"] == strict.result["losses"]
    with pytest.raises(hp.UserError, match="between 0 and 1"):
        hp.solve("heat-1d", tolerance=0.0)


def test_grids_keep_to_the_time_they_have() -> None:
    statement = state(hp.problems.Poisson2D())
    long, short = (choose_grid(statement, Lifted(), 1027, s).inside for s in (10.0, 0.001))
    assert short < long


class Airy(hp.Problem):
    """Between walls and of the third order, so that it is marched through in windows."""

    domain = hp.TimeBox(t=(0, 0.2), x=(0, 3))
    fields = ("u",)

    def residual(self, u: hp.Field, p: hp.Point) -> Array:
        return u.t + u.xxx

    def conditions(self) -> list[hp.Condition]:
        slope = hp.Neumann(lambda p: jnp.cos(p.x + p.t), on="x.max")
        return [hp.Initial(self.exact), hp.Dirichlet(self.exact), slope]

    def exact(self, p: hp.Point) -> Array:
        return jnp.sin(p.x + p.t)


class Four(hp.Problem):
    """Four dimensions."""

    domain = hp.Box(x=(0, 1), y=(0, 1), z=(0, 1), w=(0, 1))
    fields = ("u",)

    def residual(self, u: hp.Field, p: hp.Point) -> Array:
        return u.laplacian - self.exact(p)

    def conditions(self) -> list[hp.Condition]:
        return [hp.Dirichlet(self.exact)]

    def exact(self, p: hp.Point) -> Array:
        return jnp.exp((p.x + p.y + p.z + p.w) / 2)


@pytest.mark.slow
@pytest.mark.parametrize("problem", [Airy(), Four()], ids=lambda p: p.name)
def test_windows_between_walls_and_many_dimensions(problem: hp.Problem) -> None:
    result = hp.solve(problem, progress=False).result
    assert result["rel_l2"]["u"] / 10 < result["estimated_error"]["u"] < 10 * result["rel_l2"]["u"]
    assert result["verdict"] == "solved"
