"""Problems: what is found out about them, what fields and points can do, and every refusal."""

from __future__ import annotations

import inspect
import linecache
import operator
import re
from pathlib import Path

import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.errors import UserError
from hyrespinn.problems.fields import Field, Point
from hyrespinn.problems.problem import problem_named
from hyrespinn.problems.statement import state

LINE = hp.Box(x=(0.0, 1.0))
SQUARE = hp.Box(x=(0.0, 1.0), y=(0.0, 1.0))
MOVIE = hp.TimeBox(t=(0.0, 1.0), x=(0.0, 1.0))


def problem(residual, domain=LINE, fields=("u",), conditions=()):
    """A problem of a class made for one test; ``residual(*fields, p)`` needs no self."""
    body = {"domain": domain, "fields": fields, "conditions": lambda self: list(conditions)}
    body["residual"] = lambda self, *arguments: residual(*arguments)
    return type("Made", (hp.Problem,), body)()


@pytest.mark.parametrize(
    ("residual", "domain", "fields", "requested", "closure"),
    [
        (lambda u, p: u.t - u.xx, MOVIE, ("u",), {(1, 0), (0, 2)}, [(0, 0), (0, 1), (1, 0), (0, 2)]),
        (lambda u, p: u.laplacian, SQUARE, ("u",), {(2, 0), (0, 2)},
         [(0, 0), (0, 1), (1, 0), (0, 2), (2, 0)]),
        (lambda u, p: u.laplacian + u.t, MOVIE, ("u",), {(0, 2), (1, 0)},
         [(0, 0), (0, 1), (1, 0), (0, 2)]),
        (lambda u, p: u.yx + u, SQUARE, ("u",), {(0, 0), (1, 1)}, [(0, 0), (0, 1), (1, 0), (1, 1)]),
        (lambda u, p: u * p.x, SQUARE, ("u",), {(0, 0)}, [(0, 0)]),
        (lambda u, v, p: (u.x - v.y, u.y + v.x), SQUARE, ("u", "v"), {(1, 0), (0, 1)},
         [(0, 0), (0, 1), (1, 0)]),
        (lambda u, p: u.derivative("xxx") + u, LINE, ("u",), {(0,), (3,)}, [(0,), (1,), (2,), (3,)]),
    ],
)  # fmt: skip
def test_the_derivatives_a_residual_reads_are_found(residual, domain, fields, requested, closure):
    start = [hp.Initial(0.0)] if domain.has_time else []
    found = state(problem(residual, domain, fields, start))
    assert found.requested == tuple(sorted(requested))
    assert sorted(found.closure) == sorted(closure)
    assert found.order == max(sum(i) for i in requested)


@pytest.mark.parametrize(
    ("result", "names"),
    [
        (lambda u: u, ("residual",)),
        (lambda u: (u, u.x), ("residual_1", "residual_2")),
        (lambda u: {"mass": u, "heat": u.x}, ("residual_mass", "residual_heat")),
    ],
)
def test_residuals_get_names(result, names):
    assert set(state(problem(lambda u, p: result(u))).residual_names) == set(names)


A, B = jnp.array([0.5, 1.5, -2.0]), jnp.array([2.0, -3.0, 0.25])


def field(value, slope=B):
    return Field(lambda index: slope if any(index) else value, ("x",), ("x",))


BINARY = "add sub mul truediv pow mod floordiv lt le gt ge eq ne"


@pytest.mark.parametrize("name", BINARY.split())
@pytest.mark.parametrize(
    "other", [2, 1.5, B, np.float32(3.0)], ids=["int", "float", "array", "numpy"]
)
def test_field_arithmetic_is_array_arithmetic(name, other):
    op, base = getattr(operator, name), jnp.abs(A)
    np.testing.assert_array_equal(op(field(base), other), op(base, other))
    np.testing.assert_array_equal(op(other, field(base)), op(other, base))
    np.testing.assert_array_equal(op(field(base), field(B)), op(base, B))


@pytest.mark.parametrize(
    "function",
    [operator.neg, operator.pos, abs, lambda u: u[1:], lambda u: u.shape, lambda u: u.sum(),
     jnp.sin, jnp.exp, jnp.square, jnp.abs, lambda u: jnp.maximum(u, 0.0), jnp.sqrt, jnp.mean,
     lambda u: jnp.where(u > 0, u, -1.0), lambda u: jnp.stack([u, u]), lambda u: jnp.clip(u, 0, 1),
     jax.nn.relu],
)  # fmt: skip
def test_functions_take_a_field_like_an_array(function):
    np.testing.assert_array_equal(function(field(jnp.abs(A))), function(jnp.abs(A)))


def test_a_field_is_not_mistaken_for_true():
    """``if u:`` must fail as it does for an array, and not pass in silence."""
    with pytest.raises(ValueError, match="truth value"):
        bool(field(A))


def test_points_know_their_coordinates_and_normals():
    points, normals = jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([[0.0, -1.0], [0.0, 1.0]])
    p = Point(points, ("x", "y"), normals)
    assert [v.tolist() for v in (p.x, p.y, p.nx, p.ny)] == [[1, 3], [2, 4], [0, 0], [-1, 1]]
    with pytest.raises(UserError, match=r"A point here has no 'nx'; it has x, y\."):
        _ = Point(points, ("x", "y")).nx


class ThinFilm(hp.Problem):
    """A class as a person writes it."""

    nu: float = 0.5
    sign: int = 1
    domain = LINE
    fields = ("u",)

    def residual(self, u, p):
        return self.nu * u.xx - self.sign

    def conditions(self):
        return [hp.Dirichlet(0.0)]


def test_names_and_parameters():
    assert ThinFilm().name == "thin-film"
    assert ThinFilm(nu=0.1).parameters() == {"nu": 0.1, "sign": 1}
    assert hp.problems.AllenCahnDirichlet().name == "allen-cahn-dirichlet"
    assert problem_named("allen-cahn-dirichlet") is hp.problems.AllenCahnDirichlet
    with pytest.raises(UserError, match="Did you mean 'allen-cahn-dirichlet'"):
        problem_named("allen-cahn-dirichlett")
    with pytest.raises(TypeError):
        ThinFilm(mu=0.1)


X = lambda u, p: u.x  # noqa: E731
REFUSED = {
    "shape": (problem(lambda u, p: jnp.sum(u.x)), r"residual has shape \(\); expected \(3,\)"),
    "shape of one": (problem(lambda u, p: (u.x, 0.0)), r"residual_2 has shape \(\)"),
    "empty": (problem(lambda u, p: ()), "residual is empty"),
    "no field": (problem(lambda u, p: p.x), "reads no field at all"),
    "derivative": (problem(lambda u, p: u.q), r"no derivative 'q': .* coordinates here are x\."),
    "mixed": (problem(lambda u, p: u.xt), r"no derivative 'xt'"),
    "coordinate": (problem(lambda u, p: u.x * p.y), "A point here has no 'y'; it has x"),
    "normal": (problem(lambda u, p: u.x * p.nx), "A point here has no 'nx'"),
    "no start": (problem(lambda u, p: u.t, MOVIE), "no initial condition for u; add Initial"),
    "one start": (problem(lambda u, v, p: (u.t, v.t), MOVIE, ("u", "v"), [hp.Initial(0.0, "u")]),
                  "no initial condition for v;"),
    "no time": (problem(X, conditions=[hp.Initial(0.0)]), "Initial condition needs a time domain"),
    "field": (problem(X, conditions=[hp.Dirichlet(0.0, field="w")]), "Unknown field 'w'.*Known: u"),
    "which field": (problem(lambda u, v, p: u.x + v, fields=("u", "v"),
                            conditions=[hp.Neumann(0.0)]), "Neumann must say which field.*u, v"),
    "piece": (problem(X, conditions=[hp.Neumann(0.0, on="y")]), "no boundary piece 'y'"),
    "axis": (problem(X, conditions=[hp.Periodic("y")]), r"Periodic\('y'\): the axes in space are x"),
    "time axis": (problem(X, MOVIE, conditions=[hp.Initial(0.0), hp.Periodic("t")]),
                  r"Periodic\('t'\): the axes in space are x"),
    "no plane": (problem(X, conditions=[hp.Interface(X, axis="y", at=0.5)]),
                 "There is no axis 'y' to cut; there are x"),
    "plane in time": (problem(X, MOVIE, conditions=[hp.Initial(0.0), hp.Interface(X, "t", 0.5)]),
                      "There is no axis 't' to cut; there are x"),
    "plane outside": (problem(X, conditions=[hp.Interface(X, axis="x", at=(0.5, 2.0))]),
                      r"The plane x = 2 lies outside the domain Box\(x=\(0, 1\)\)"),
    "plane on the boundary": (problem(X, conditions=[hp.Interface(X, axis="x", at=1.0)]),
                              "The plane x = 1 lies outside"),
    "not one": (problem(X, conditions=[0.0]), r"conditions\(\) must return a list of conditions"),
    "string": (problem(X, fields="u"), r'fields must be a tuple of names; write fields = \("u",\)'),
}  # fmt: skip


@pytest.mark.parametrize(("wrong", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_a_wrong_statement_is_refused(wrong, message):
    with pytest.raises(UserError, match=message):
        state(wrong)


def test_the_planes_of_an_interface_may_be_one_or_several():
    for at, planes in ((0.5, (0.5,)), ((0.2, 0.5), (0.2, 0.5))):
        condition = hp.Interface(X, axis="x", at=at)
        assert condition.planes == planes
        state(problem(X, conditions=[condition]))


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("domain", r"Part has no domain; write domain = hp\.Box\(x=\(0, 1\)\)"),
        ("fields", r'Part has no fields; write fields = \("u",\)'),
        ("residual", r"Part has no residual: define residual\(self, u, p\)"),
        ("conditions", r"Part has no conditions: define conditions\(self\)"),
    ],
)
def test_a_missing_part_is_named(missing, message):
    whole = vars(ThinFilm)
    parts = {k: whole[k] for k in ("domain", "fields", "residual", "conditions") if k != missing}
    parts |= {"nu": 1.0, "sign": 1}
    with pytest.raises(UserError, match=message):
        state(type("Part", (hp.Problem,), parts)())


class WithIf(ThinFilm):
    def residual(self, u, p):
        if u.x > 0:
            return u.xx
        return u.x


class WithFloat(ThinFilm):
    def residual(self, u, p):
        return u.xx * float(p.x)


class WithTypo(ThinFilm):
    def residual(self, u, p):
        return u.xx + self.mu


class OneArgument(ThinFilm):
    def residual(self, u):
        return u.xx


@pytest.mark.parametrize(
    ("cls", "line"), [(WithIf, 1), (WithFloat, 1), (WithTypo, 1), (OneArgument, 0)]
)
def test_what_a_residual_raises_is_told_with_its_function_and_line(cls, line):
    number = inspect.getsourcelines(cls.residual)[1] + line
    with pytest.raises(UserError, match=rf"{cls.__name__}.residual raised") as caught:
        state(cls())
    message = str(caught.value)
    assert re.search(rf"\(\S*{re.escape(Path(__file__).name)}:{number}\b", message)
    assert len(message.splitlines()) == 1
    source = linecache.getline(__file__, number).strip()
    assert (source in message) == (cls is not OneArgument)  # where none of its lines is reached
    assert "called as residual(u, p)" in str(caught.value)
