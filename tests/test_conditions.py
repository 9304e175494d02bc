"""Conditions: a new kind is one class, written outside of the package."""

from __future__ import annotations

from dataclasses import dataclass

import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.discretise import Drawn
from hyrespinn.errors import UserError
from hyrespinn.geometry.sampling import uniform
from hyrespinn.losses import Counts, Objective, Sampling, Weights
from hyrespinn.problems.boundary import Penalty
from hyrespinn.problems.conditions import EVEN, ODD
from hyrespinn.problems.statement import state

SQUARE = hp.Box(x=(0.0, 1.0), y=(0.0, 1.0))
MOVIE = hp.TimeBox(t=(0.0, 1.0), x=(0.0, 2.0))


@dataclass(frozen=True)
class Pinned(hp.Condition):
    """The value of a field at one point of the domain."""

    point: tuple[float, ...]
    value: float
    weight: float | None = None

    def check(self, equation):
        if not equation.domain.contains(np.array([self.point])).all():
            raise UserError(f"{self.point} is not a point of {equation.domain!r}.")

    def place(self, equation):
        return hp.places.FixedPoints([self.point])

    def residuals(self, equation, solution, at):
        return solution(at.points)[:, 0] - self.value


class FaceMean(hp.Condition):
    """The mean of a field over pieces of the boundary, and that of its square; no dataclass."""

    def __init__(self, on, mean, square):
        self.on, self.mean, self.square = on, mean, square

    def place(self, equation):
        return hp.places.Pieces(equation.domain.expand(self.on))

    def order(self, equation):
        return 0

    def residuals(self, equation, solution, at):
        u = solution(at.points)[:, 0]
        return {
            "mean": (jnp.mean(u) - self.mean)[None],
            "square": (jnp.mean(u**2) - self.square)[None],
        }


class Line(hp.Problem):
    """u = 1 − x on a square: the flux on the boundary, and what fixes the constant."""

    domain = SQUARE
    fields = ("u",)
    test_grid = (11, 11)

    def residual(self, u, p):
        return u.laplacian

    def conditions(self):
        slope = hp.Neumann(lambda p: -p.nx)
        return [slope, Pinned((0.5, 0.5), 0.5, weight=20.0), FaceMean("x.min", 1.0, 1.0)]

    def exact(self, p):
        return 1 - p.x


def objective(problem, network, counts=(16, 4, 8)):
    sampling = Sampling(Counts(*counts), uniform, jnp.dtype("float64"))
    weights = Weights(1.0, 30.0, 40.0, 3.0)
    return Objective(state(problem), network, Penalty(), sampling=sampling, weights=weights)


def test_a_kind_of_ones_own_becomes_a_term(x64):
    """Its points, vectors, names and weights, against the plain formulas for u = θ(1 − x)."""
    made = objective(Line(), lambda theta: lambda x: theta * (1 - x[..., :1]))
    assert [term.name for term in made.terms] == ["interior", "neumann", "pinned", "facemean"]
    assert [term.names for term in made.terms[2:]] == [
        ("pinned",),
        ("facemean_mean", "facemean_square"),
    ]
    assert [term.weight for term in made.terms[2:]] == [20.0, 40.0 * 3.0]
    samples = made.draw(jax.random.key(0))
    np.testing.assert_array_equal(samples["pinned"].points, [[0.5, 0.5]])
    np.testing.assert_array_equal(samples["facemean"].points[:, 0], 0.0)
    vectors = made.residuals(jnp.asarray(3.0), samples)
    np.testing.assert_allclose(vectors["pinned"], [1.0])
    np.testing.assert_allclose(vectors["facemean_mean"], [2.0])
    np.testing.assert_allclose(vectors["facemean_square"], [8.0])


def test_a_kind_of_ones_own_checks_itself():
    class Outside(Line):
        def conditions(self):
            return [Pinned((0.5, 1.5), 0.5)]

    with pytest.raises(UserError, match=r"\(0\.5, 1\.5\) is not a point of Box"):
        state(Outside())


@pytest.mark.parametrize(
    "stages", [pytest.param("adam(steps=60, batch=32)", marks=pytest.mark.slow), "gauss-newton:3"]
)
def test_a_kind_of_ones_own_is_trained(stages):
    settings = {
        "model.width": 4,
        "stages": stages,
        "points": Drawn(64, 16, 256, adaptive=None),
    }
    few = hp.solve(Line(), model="pinn", settings=settings, progress=False)
    assert {"pinned", "facemean_mean", "facemean_square"} < set(few.result["losses"])
    assert few.result["rel_l2"]["u"] < 0.9 * few.result["rel_l2_initial"]["u"]


def facts(condition, domain=MOVIE):
    """What a condition says that it is able to."""

    class Made(hp.Problem):
        fields = ("u",)

        def residual(self, u, p):
            return u.x

        def conditions(self):
            return [condition]

    Made.domain = domain
    statement = state(Made())
    start, wall = condition.start(statement), condition.wall(statement)
    return (
        None if start is None else (start.field, start.index),
        None if wall is None else (wall.field, wall.pieces, wall.parity, wall.homogeneous),
        condition.seam(),
    )


ABLE = {
    "initial": (hp.Initial(0.0, derivative="t"), (("u", (1, 0)), None, None)),
    "zero": (hp.Dirichlet(0.0, "x.max"), (None, ("u", ("x.max",), ODD, True), None)),
    "value": (hp.Dirichlet(2.0, "x.max"), (None, ("u", ("x.max",), ODD, False), None)),
    "slope": (hp.Neumann(0), (None, ("u", ("x.min", "x.max"), EVEN, True), None)),
    "periodic": (hp.Periodic("x"), (None, None, "x")),
    "mean": (hp.MeanValue(0.0), (None, None, None)),
    "boundary": (hp.Boundary(lambda u, p: u.x), (None, None, None)),
    "interface": (hp.Interface(lambda u, p: u.x, "x", 0.5), (None, None, None)),
    "own": (Pinned((0.5, 0.5), 1.0), (None, None, None)),
}


@pytest.mark.parametrize(("condition", "expected"), ABLE.values(), ids=ABLE)
def test_what_conditions_are_able_to(condition, expected):
    assert facts(condition) == expected
