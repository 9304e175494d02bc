"""Mistakes in a statement are told in one sentence before anything is computed."""

from __future__ import annotations

import hyrespinn as hp
import jax.numpy as jnp
import pytest
from hyrespinn.problems.statement import state


def problem(**changes):
    """The heat equation with some of its parts replaced."""

    def residual(self, u, p):
        return u.t - u.xx

    def conditions(self):
        return [hp.Initial(lambda p: jnp.sin(jnp.pi * p.x)), hp.Dirichlet(0.0)]

    parts = {
        "domain": hp.TimeBox(t=(0, 1), x=(0, 1)),
        "fields": ("u",),
        "residual": residual,
        "conditions": conditions,
    }
    parts = {k: v for k, v in {**parts, **changes}.items() if v is not ...}
    return type("Heat", (hp.Problem,), parts)()


def given(*conditions):
    return lambda self: list(conditions)


START = hp.Initial(0.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"domain": 5}, r"Heat.domain must be a domain, not 5; write domain = hp.Box"),
        ({"domain": {"x": (0, 1)}}, "Heat.domain must be a domain"),
        ({"domain": ...}, r"Heat has no domain; write domain = hp.Box\(x=\(0, 1\)\)"),
        ({"fields": "u"}, r'write fields = \("u",\)'),
        ({"fields": ()}, "at least one field"),
        ({"fields": 3}, "at least one field"),
        ({"fields": (3,)}, "one is 3"),
        ({"fields": ("a b",)}, "one is 'a b'"),
        ({"fields": ("x",)}, "'x', which is the name of a coordinate"),
        ({"fields": ("p",)}, "'p', which is the name of the point"),
        ({"fields": ("u", "u")}, "names 'u' 2 times"),
        ({"conditions": lambda self: None}, "returned nothing .*; write return"),
        ({"conditions": lambda self: 3}, "returned 3; write return"),
        ({"conditions": lambda self: START}, "returned a single Initial; return a list"),
        ({"conditions": given(START, hp.Dirichlet)}, "holds the class Dirichlet"),
        ({"conditions": given(START, 0.0)}, "it holds 0.0"),
        ({"conditions": lambda self: [hp.Initial(1 / 0)]}, "ZeroDivisionError.*test_checks.py:\\d"),
        ({"residual": lambda self, u, p: u.t - 1j * u.xx}, "The residual is complex"),
        ({"exact": lambda self, p: {"u": p.x}}, "exact returned a dict.*return u"),
        ({"exact": lambda self, p: (p.x, p.x)}, "returned 2 values for the fields u"),
        ({"exact": lambda self, p: jnp.zeros((3, 1))}, r"shape \(3, 1\) for u at 3 points"),
        ({"exact": lambda self, p: p.z}, "no 'z'"),
        ({"exact": lambda self, p: [][0]}, "IndexError.*test_checks.py:\\d"),
    ],
)  # fmt: skip
def test_wrong_parts(changes, message):
    with pytest.raises(hp.UserError, match=message):
        state(problem(**changes))


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ([START, hp.Periodic("x"), hp.Dirichlet(0.0)], "one place, and there is a value of u"),
        ([START, hp.Periodic("x"), hp.Neumann(0.0, on="x.max")], "there is a slope of u"),
        ([START, hp.Periodic("x"), hp.Periodic("x")], r'Periodic\("x"\) is there 2 times'),
        (
            [START, hp.Dirichlet(0.0), hp.Dirichlet(1.0, on="x.min")],
            "2 Dirichlet conditions on x.min",
        ),
        ([START, hp.Neumann(0.0), hp.Neumann(1.0)], "2 Neumann conditions on x.min"),
        ([START, START, hp.Dirichlet(0.0)], "u has 2 initial conditions"),
    ],
)
def test_contradictory_conditions(conditions, message):
    with pytest.raises(hp.UserError, match=message):
        hp.configure(problem(conditions=given(*conditions)))


def test_missing_conditions():
    """They are refused where the problem is to be solved; it can be looked at without them."""
    ends, box = "no condition says what happens at its ends", hp.Box(x=(0, 1))
    parts = {"domain": box, "conditions": given()}
    with pytest.raises(hp.UserError, match=ends):
        hp.configure(problem(conditions=given(START)))
    with pytest.raises(hp.UserError, match=ends):
        hp.configure(problem(**parts, residual=lambda self, u, p: u.xx - 1))
    with pytest.raises(hp.UserError, match="There are no conditions"):
        hp.configure(problem(**parts, residual=lambda self, u, p: u.x - 1))
    assert state(problem(**parts, residual=lambda self, u, p: u.xx - 1)).order == 2


def test_an_axis_without_conditions():
    box = hp.Box(x=(0, 1), y=(0, 1))
    parts = {"domain": box, "residual": lambda self, u, p: u.laplacian}
    with pytest.raises(
        hp.UserError, match=r'along y, and no condition.*hp.Dirichlet\(0.0, on="y"\)'
    ):
        hp.configure(problem(**parts, conditions=given(hp.Dirichlet(0.0, on="x"))))
    hp.configure(problem(**parts, conditions=given(hp.Dirichlet(0.0, on=("x", "y.min")))))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"conditions": given(START, hp.Periodic("x"))},
        {"conditions": given(START, hp.Dirichlet(0.0, on="x.min"), hp.Neumann(0.0, on="x.max"))},
        {"residual": lambda self, u, p: u.t + u.x, "conditions": given(START)},
        {"residual": lambda self, u, p: u - p.x, "domain": hp.Box(x=(0, 1)), "conditions": given()},
        {"exact": lambda self, p: None},
        {"exact": lambda self, p: 0.0},
        {"fields": ["u"]},
    ],
)
def test_what_is_right_is_taken(changes):
    assert state(problem(**changes)).fields == ("u",)


def test_a_clamped_plate_has_value_and_slope():
    conditions = given(hp.Dirichlet(0.0), hp.Neumann(0.0))
    residual = lambda self, u, p: u.xxxx - 1  # noqa: E731
    state(problem(domain=hp.Box(x=(0, 1)), residual=residual, conditions=conditions))


def test_a_start_that_does_not_fit_the_walls_is_a_caution():
    (caution,) = state(problem(conditions=given(hp.Initial(1.0), hp.Dirichlet(0.0)))).cautions
    assert caution.code == "incompatible-start"
    assert "u starts at 1 and is held at 0 at x = 0" in caution.text
    assert not state(problem()).cautions
    fitting = given(hp.Initial(lambda p: 1 - p.x), hp.Dirichlet(lambda p: (1 - p.x) + p.t))
    assert not state(problem(conditions=fitting)).cautions


@pytest.mark.parametrize("name", hp.problems.PROBLEMS)
def test_the_problems_of_the_package_have_no_cautions(name):
    assert not state(hp.problems.PROBLEMS[name]()).cautions
