"""Numeric parameters of a problem as traced values: another one compiles nothing new."""

from __future__ import annotations

import os
import subprocess
import sys

import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.errors import UserError
from hyrespinn.geometry.lattice import Lattice
from hyrespinn.geometry.sampling import uniform
from hyrespinn.losses import Counts, Objective, Sampling, Weights
from hyrespinn.losses.context import first_window
from hyrespinn.losses.jacobian import weighted_rows
from hyrespinn.models import PINN
from hyrespinn.models.parameters import cast, flatten
from hyrespinn.problems.boundary import Lifted, Penalty, Reflected
from hyrespinn.problems.statement import state

pytestmark = pytest.mark.usefixtures("x64")
KEY = jax.random.key(1)


class Warm(hp.Problem):
    """Parameters in the equation, in the start, at a wall, in a flux and in a mean."""

    nu: float = 0.1
    height: float = 2.0
    edge: float = 0.5
    loss: float = 0.3
    domain = hp.TimeBox(t=(0.0, 1.0), x=(0.0, 1.0))
    fields = ("u",)

    def residual(self, u, p):
        return u.t - self.nu * u.xx + self.loss * u

    def conditions(self):
        return [
            hp.Initial(lambda p: self.height * jnp.sin(p.x)),
            hp.Dirichlet(self.edge, on="x.min"),
            hp.Boundary(lambda u, p: p.nx * u.x + self.loss * u, on="x.max"),
            hp.MeanValue(self.height / 4),
        ]


def made(problem, boundary=None, lattice=False):
    statement, boundary = state(problem), boundary or Lifted()
    model = PINN(width=4, depth=1).build(boundary.inputs(statement), jax.random.key(0))
    theta, assemble = flatten(cast(model, "float64"))
    grid = None
    if lattice:
        statement, boundary = boundary.on_lattice(statement)
        grid = Lattice(statement.domain, (2, 4), boundary.inputs(statement).periodic)
    sampling = Sampling(Counts(12, 6, 6), uniform, jnp.dtype("float64"), grid)
    return Objective(statement, assemble, boundary, sampling=sampling, weights=Weights()), theta


def program(problem, **options):
    """The text of the program that draws points and computes loss, gradient and rows."""
    objective, theta = made(problem, **options)
    window = first_window(theta, 0.0, 0.5) if problem.domain.has_time else None

    def run(theta, context):
        samples = objective.draw(KEY, context)
        rows = weighted_rows(objective, theta, samples, context)
        return objective.value_and_grad(samples, context)(theta), rows

    return jax.jit(run).lower(theta, objective.context(window)).as_text()


PAIRS = {
    "lifted": (Warm(), Warm(nu=0.2, height=1.5, edge=0.1, loss=7.0), {}),
    "penalty": (Warm(), Warm(nu=0.2, height=1.5), {"boundary": Penalty()}),
    "reflected": (hp.problems.Burgers(), hp.problems.Burgers(nu=0.3), {"boundary": Reflected()}),
    "lattice": (
        hp.problems.Burgers(),
        hp.problems.Burgers(nu=0.3),
        {"boundary": Reflected(), "lattice": True},
    ),
    "system": (hp.problems.GreyScott(), hp.problems.GreyScott(feed=30.0, epsilon_u=0.3), {}),
    "steady": (hp.problems.Helmholtz2D(), hp.problems.Helmholtz2D(k=2.0), {}),
    "waves": (hp.problems.Wave1D(), hp.problems.Wave1D(speed=3.0), {}),
}


@pytest.mark.parametrize(("one", "other", "options"), PAIRS.values(), ids=PAIRS)
def test_another_value_is_the_same_program(one, other, options):
    assert program(one, **options) == program(other, **options)


def test_an_integer_is_not_traced_and_makes_another_program():
    assert state(hp.problems.Helmholtz2D()).traced_parameters == ("k",)
    assert program(hp.problems.Helmholtz2D(a=2)) != program(hp.problems.Helmholtz2D(a=3))


@pytest.mark.parametrize("boundary", [Lifted(), Penalty()], ids=["lifted", "penalty"])
def test_the_values_in_the_context_are_those_of_the_loss(boundary):
    """The loss with another problem's parameters is the loss of that problem."""
    objective, theta = made(Warm(), boundary)
    other, _ = made(Warm(nu=0.7, height=-1.0, edge=3.0, loss=2.0), boundary)
    samples = objective.draw(KEY)
    moved = objective.context()._replace(parameters=other.context().parameters)
    found = objective.losses(theta, samples, moved)
    expected = other.losses(theta, samples)
    unchanged = objective.losses(theta, samples)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-12)
        assert abs(value - unchanged[name]) > 1e-6


def test_a_window_hands_on_the_start_of_its_parameters():
    objective, theta = made(Warm())
    context = objective.context(first_window(theta, 0.0, 0.5))
    higher = {**context.parameters, "height": jnp.asarray(4.0)}
    one, two = (
        objective.draw(KEY, context._replace(parameters=p))["initial"].data
        for p in (context.parameters, higher)
    )
    np.testing.assert_allclose(two, 2 * one)


def test_a_loss_has_a_slope_by_its_parameters():
    objective, theta = made(Warm())
    context, samples = objective.context(), objective.draw(KEY)

    def loss(nu):
        parameters = {**context.parameters, "nu": nu}
        return objective.value(theta, samples, context._replace(parameters=parameters))

    step = 1e-5
    difference = (loss(0.1 + step) - loss(0.1 - step)) / (2 * step)
    np.testing.assert_allclose(jax.grad(loss)(0.1), difference, rtol=1e-6)
    assert abs(difference) > 1e-6


class Branching(Warm):
    def residual(self, u, p):
        return super().residual(u, p) if self.nu > 0 else u.t


class Converting(Warm):
    def residual(self, u, p):
        return super().residual(u, p) * float(self.nu)


class Numpy(Warm):
    def residual(self, u, p):
        return u.t - np.sqrt(self.nu) * u.xx


class Sized(Warm):
    length: float = 1.0

    @property
    def domain(self):
        return hp.TimeBox(t=(0, 1), x=(0, self.length))


class Walls(Warm):
    """A wall that is zero, and would be none with another value."""

    edge: float = 0.0


class Switching(Warm):
    def conditions(self):
        walls = [hp.Dirichlet(0.0)] if self.edge > 0 else [hp.Neumann(0.0)]
        return [hp.Initial(self.height), *walls]


class Weighing(Warm):
    def conditions(self):
        return [hp.Initial(self.height, weight=self.edge)]


class Derived(Warm):
    def derived(self, u, p):
        return {"heat": u.x * int(self.loss)}


EVERY = ("nu", "height", "edge", "loss")
CONSTANT = {
    Branching: "nu",
    Converting: "nu",
    Numpy: "nu",
    Sized: "length",
    Walls: "edge",
    Switching: "edge",
    Weighing: "edge",
    Derived: "loss",
}


@pytest.mark.parametrize(("cls", "name"), CONSTANT.items(), ids=lambda v: str(v))
def test_what_a_problem_looks_at_as_a_number_stays_one(cls, name):
    every = (*EVERY, "length") if cls is Sized else EVERY
    assert state(cls()).traced_parameters == tuple(n for n in every if n != name)
    objective, theta = made(cls())
    assert name not in objective.context().parameters
    assert np.isfinite(objective.value(theta, objective.draw(KEY)))


class Checked(Warm):
    """A check that cannot work on what is traced."""

    def __post_init__(self):
        if not self.nu > 0:
            raise UserError("nu must be positive")


class Prepared(Warm):
    """A number made of a parameter when the problem is."""

    def __post_init__(self):
        object.__setattr__(self, "root", self.nu**0.5)

    def residual(self, u, p):
        return u.t - self.root * u.xx


def test_a_check_of_the_values_is_no_obstacle():
    with pytest.raises(UserError):
        Checked(nu=-1.0)
    assert state(Checked()).traced_parameters == EVERY
    assert program(Checked()) == program(Checked(nu=0.3))


def test_what_is_made_of_a_parameter_follows_it():
    objective, theta = made(Prepared())
    samples, context = objective.draw(KEY), objective.context()
    assert "nu" in context.parameters
    four = context._replace(parameters={**context.parameters, "nu": jnp.asarray(0.4)})
    expected = made(Prepared(nu=0.4))[0].losses(theta, samples)
    np.testing.assert_allclose(
        objective.losses(theta, samples, four)["residual"], expected["residual"], rtol=1e-12
    )


def test_nothing_stale_is_used_where_a_check_is_left_out():
    """Made of a parameter behind a check that cannot be traced: it stays a number."""

    class Both(Prepared):
        def __post_init__(self):
            if not self.nu > 0:
                raise UserError("nu must be positive")
            super().__post_init__()

    assert state(Both()).traced_parameters == ("height", "edge", "loss")


def test_the_built_in_problems_trace_their_numbers():
    traced = {
        name: state(cls()).traced_parameters
        for name, cls in hp.problems.PROBLEMS.items()
        if cls().numbers()
    }
    rings = {name for name in traced if name.startswith("darcy")}
    assert all(traced[name] == () for name in rings), "their radii are those of the domain"
    for name in traced.keys() - rings:
        assert traced[name] == tuple(hp.problems.problem_named(name)().numbers())
    assert len(traced) - len(rings) >= 9


@pytest.mark.slow
def test_a_run_with_another_value_compiles_nothing(tmp_path):
    """Programs are kept between processes: the second run finds all of its own there."""
    own = {"HYRESPINN_CACHE": str(tmp_path), "HYRESPINN_COMPILED": "on"}
    others = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"}
    kept = []
    for k in (1.7, 1.9):
        command = ["solve", "helmholtz-2d", "--set", f"problem.k={k}", "--quiet"]
        subprocess.run(
            [sys.executable, "-m", "hyrespinn", *command, "--out", str(tmp_path / f"run-{k}")],
            env={**others, **own},
            check=True,
        )
        kept.append({path.name for path in tmp_path.rglob("*-cache")})
    assert kept[0]
    assert kept[0] == kept[1]
