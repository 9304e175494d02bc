"""Gauss–Newton by conjugate gradients: against NumPy, the preconditioner's promise, known answers."""

from __future__ import annotations

from dataclasses import replace

import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.discretise import Adaptive, Causal, Drawn, Fixed, Grid
from hyrespinn.errors import UserError
from hyrespinn.losses.context import first_window
from hyrespinn.losses.jacobian import linearised, weighted_rows
from hyrespinn.models import HyResPINN, KernelExpansion, Lattice, Scattered
from hyrespinn.models.linear_part import lattice_places
from hyrespinn.optim import Adam, GaussNewton, GaussNewtonCG
from hyrespinn.optim import gauss_newton_cg as gn
from hyrespinn.optim.conjugate_gradients import least_squares
from hyrespinn.run.config import configure
from hyrespinn.run.session import Session
from hyrespinn.run.solve import solve_configured
from hyrespinn.training.circulant import check_lattice, circulant_preconditioner

from helpers import in_window_two

pytestmark = pytest.mark.usefixtures("x64")


class Carried(hp.Problem):
    """Waves that are carried and spread, with the exact solution of one of them."""

    speed: float = 2.0
    nu: float = 0.02
    domain = hp.TimeBox(t=(0, 1), x=(-1, 1))
    fields = ("u",)
    test_grid = (21, 32)

    def residual(self, u, p):
        return u.t + self.speed * u.x - self.nu * u.xx

    def conditions(self):
        return [hp.Initial(lambda p: jnp.sin(jnp.pi * p.x)), hp.Periodic("x")]

    def exact(self, p):
        wave = jnp.sin(jnp.pi * (p.x - self.speed * p.t))
        return jnp.exp(-(jnp.pi**2) * self.nu * p.t) * wave


class Steepening(Carried):
    """Burgers' equation: no exact solution, but a term that is not linear."""

    def residual(self, u, p):
        return u.t + u * u.x - self.nu * u.xx

    def exact(self, p):
        return None


class Pair(hp.Problem):
    """Two fields in the plane that turn into each other."""

    domain = hp.TimeBox(t=(0, 1), x=(-1, 1), y=(0, 2))
    fields = ("u", "v")

    def residual(self, u, v, p):
        return {"u": u.t - 0.1 * u.laplacian + 2 * v, "v": v.t - 0.1 * v.laplacian - 2 * u}

    def conditions(self):
        starts = [hp.Initial(lambda p: jnp.sin(jnp.pi * p.x), field=f) for f in self.fields]
        return [*starts, hp.Periodic("x"), hp.Periodic("y")]


def settings(lattice, points):
    return {
        "model.kernels.counts": lattice,
        "points.counts": points,
        "marching": Fixed(4, start="warm"),
    }


def prepared(problem, changes, length=0.1):
    config = configure(problem, method="collocation", settings=changes)
    theta, training, _ = Session(config, progress=False, reference=False).training()
    objective = training.objective
    context = objective.context(first_window(theta, 0.0, length))
    return objective, theta, objective.draw(jax.random.key(1), context), context


@pytest.mark.parametrize("shape", [(9, 4), (4, 4), (3, 5)], ids=["tall", "square", "wide"])
def test_conjugate_gradients_find_the_shortest_least_squares_solution(shape):
    rng = np.random.default_rng(0)
    A, b = jnp.asarray(rng.normal(size=shape)), jnp.asarray(rng.normal(size=shape[0]))
    found = least_squares(lambda x: A @ x, lambda y: A.T @ y, b, 1e-12, 30)
    wanted = np.linalg.lstsq(np.asarray(A), np.asarray(b), rcond=None)[0]
    np.testing.assert_allclose(found.solution, wanted, atol=1e-9)
    np.testing.assert_allclose(found.residual, b - A @ found.solution, atol=1e-10)
    assert int(found.iterations) <= min(shape) + 3


def test_nothing_to_solve_takes_no_iteration():
    A = jnp.eye(3)
    found = least_squares(lambda x: A @ x, lambda y: A @ y, jnp.zeros(3), 1e-3, 10)
    assert int(found.iterations) == 0
    np.testing.assert_array_equal(found.solution, 0)


def test_products_with_the_jacobian_are_those_of_the_dense_one():
    objective, theta, samples, context = prepared(Steepening(), settings((3, 8), (2, 8)))
    theta = theta + 0.01 * jax.random.normal(jax.random.key(2), theta.shape)

    @jax.jit
    def products(v, u):
        rows, times, transposed = gn.linear_maps(
            lambda t: weighted_rows(objective, t, samples, context), theta
        )
        return rows, times(v), transposed(u)

    dense = jax.jit(lambda t: linearised(objective, t, samples, context))(theta)
    rng = np.random.default_rng(0)
    u, v = (jnp.asarray(rng.normal(size=n)) for n in dense.jacobian.shape)
    rows, image, back = products(v, u)
    np.testing.assert_allclose(rows, dense.rows, atol=1e-12)
    np.testing.assert_allclose(image, dense.jacobian @ v, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(back, dense.jacobian.T @ u, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "kernels", "points"),
    [
        (Carried(), (4, 12), (3, 12)),
        (Carried(), (4, 9), (3, 9)),
        (Carried(), (4, 8), (5, 16)),
        (hp.problems.Heat1D(), (4, 12), (3, 12)),
        (Pair(), (3, 4, 6), (2, 4, 6)),
        (Pair(), (3, 4, 5), (2, 8, 5)),
    ],
    ids=["line", "an odd number", "twice the points", "between walls", "plane", "finer one way"],
)
def test_coefficients_that_are_constant_make_orthonormal_columns(problem, kernels, points):
    """Then the symbol is the operator itself."""
    objective, theta, samples, context = prepared(problem, settings(kernels, points))

    @jax.jit
    def matrices(theta):
        found = circulant_preconditioner(objective, theta, samples, context)
        unit = jnp.eye(theta.size)
        both = jax.vmap(found.times)(unit).T, jax.vmap(found.transposed)(unit).T
        return *both, linearised(objective, theta, samples, context).jacobian

    P, transposed, jacobian = (np.asarray(m) for m in matrices(theta))
    np.testing.assert_allclose(P.T, transposed, atol=1e-9 * np.abs(P).max())
    columns = (jacobian @ P)[:, lattice_places(objective.assemble, theta).ravel()]
    np.testing.assert_allclose(columns.T @ columns, np.eye(columns.shape[1]), atol=1e-6)


def test_a_direction_that_is_not_finite_is_no_end():
    """The loop sees it and says so; an end would be taken for a solution."""
    state = gn.blank(jnp.ones(2))._replace(value=jnp.asarray(2.0))
    nothing = gn.Preconditioner(lambda z: z * jnp.nan, lambda y: y)
    after = jax.jit(lambda s: gn.step(lambda t: t, nothing, s, gn.Rule(), jnp.zeros(())))(state)
    assert np.isnan(after.value)
    np.testing.assert_array_equal(after.theta, 1.0)


def test_single_precision_is_refused():
    """By hand, two windows in single precision ended with an error of 0.4."""
    config = replace(configure(Carried()), precision="float32")
    with pytest.raises(UserError, match="--precision float64"):
        solve_configured(config, progress=False)


@pytest.mark.slow
def test_a_linear_equation_is_solved_to_rounding():
    result = hp.solve(Carried(), settings=settings((8, 16), (7, 16)), progress=False).result
    assert result["status"] == "converged"
    assert result["rel_l2"]["u"] < 1e-5
    assert all(window["steps"] <= 6 for window in result["windows"])
    assert all(window["loss_total"] < 1e-17 for window in result["windows"])


@pytest.mark.slow
def test_a_march_resumes_to_the_same_bits_and_is_saved(tmp_path):
    """Stopped in the second window and resumed: all is the same; so is what is read from the file."""
    changes = settings((5, 16), (4, 16))
    whole = hp.solve(Steepening(), settings=changes, progress=False)
    part = hp.solve(
        Steepening(),
        settings=changes,
        progress=False,
        out=tmp_path / "run",
        callbacks=[in_window_two],
    )
    assert part.result["status"] == "interrupted"
    again = hp.resume(tmp_path / "run", progress=False)
    assert again.result["status"] == whole.result["status"] == "converged"
    assert again.result["steps"] == whole.result["steps"]
    for a, b in zip(jax.tree.leaves(whole.model), jax.tree.leaves(again.model), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    again.save(tmp_path / "solution.hyres")
    read = hp.Solution.load(tmp_path / "solution.hyres")
    x = np.linspace(-1, 1, 7)
    np.testing.assert_array_equal(read(t=0.6, x=x), whole(t=0.6, x=x))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"points": Drawn(100)}, "needs kernels on a lattice and points on a grid"),
        ({"points.counts": (7, 20)}, "multiple of that of kernels"),
        ({"boundary": "penalty"}, "periodic along all"),
        ({"points.counts": (6, 16)}, "8 coefficients at each place"),
        ({"stages.gauss-newton-cg.tolerance": 1.0}, "tolerance is a share"),
        ({"stages.gauss-newton-cg.iterations": 0}, "at least one iteration"),
        (
            {"stages": (Adam(9_999_999), GaussNewtonCG(1)), "points": Drawn(100)},
            "needs kernels on a lattice and points on a grid",
        ),
        ({"weights.causal": Causal(4)}, "Causal weights and adaptive windows need points"),
        ({"marching": Adaptive()}, "Causal weights and adaptive windows need points"),
    ],
)
def test_what_does_not_fit_a_lattice_is_explained(changes, message):
    changes = {**settings((8, 16), (7, 16)), **changes}
    if "points" in changes:
        del changes["points.counts"]
    with pytest.raises(UserError, match=message):
        hp.solve(Carried(), settings=changes, progress=False)


@pytest.mark.parametrize("model", [HyResPINN(), KernelExpansion(Scattered(50))], ids=repr)
def test_kernels_that_stand_on_no_lattice_are_refused(model):
    config = configure(Carried())
    on_grid = replace(config.discretisation, model=model)
    with pytest.raises(UserError, match="Points on a grid are for kernels on a lattice"):
        solve_configured(replace(config, discretisation=on_grid), progress=False)
    drawn = replace(on_grid, points=Drawn(100))
    with pytest.raises(UserError, match=r"needs kernels on a lattice .* take gauss-newton"):
        solve_configured(replace(config, discretisation=drawn), progress=False)
    # Whoever calls the optimiser without a discretisation is told as well.
    made = replace(drawn, stages=(GaussNewton(1),))
    theta, training, _ = Session(replace(config, discretisation=made), progress=False).training()
    with pytest.raises(UserError, match="a KernelExpansion on a Lattice"):
        check_lattice(training.objective, theta)


class Kept(Carried):
    """With its mean given, too."""

    def conditions(self):
        return [*Carried.conditions(self), hp.MeanValue(0.0)]


def test_a_condition_beside_the_start_is_refused():
    changes = {
        "points": Grid((7, 16)),
        "marching": Fixed(4, start="warm"),
        "stages": (GaussNewtonCG(5),),
    }
    model = KernelExpansion(Lattice((8, 16)))
    with pytest.raises(UserError, match="no conditions but those at the initial time"):
        hp.solve(Kept(), model=model, settings=changes, progress=False)
