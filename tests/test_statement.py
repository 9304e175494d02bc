"""A statement: found once, and with reasons."""

from __future__ import annotations

import gc
import pickle
import time
import weakref

import hyrespinn as hp
import jax.numpy as jnp
import pytest
from hyrespinn.errors import UserError
from hyrespinn.problems import PROBLEMS
from hyrespinn.problems.boundary import TREATMENTS, Lifted, Penalty, Reflected, treatment_named
from hyrespinn.problems.statement import state

LINE = hp.TimeBox(t=(0.0, 1.0), x=(0.0, 1.0))
PLANE = hp.TimeBox(t=(0.0, 1.0), x=(0.0, 1.0), y=(0.0, 1.0))
AROUND = hp.Periodic("x")


def problem(residual, conditions, domain=LINE, fields=("u",)):
    body = {"domain": domain, "fields": fields, "conditions": lambda self: list(conditions)}
    body["residual"] = lambda self, *arguments: residual(*arguments)
    return type("Made", (hp.Problem,), body)()


def test_a_problem_is_stated_once_and_asked_for_its_conditions_once():
    calls = []

    class Counted(hp.problems.Heat1D):
        def conditions(self):
            calls.append(1)
            return super().conditions()

    made = Counted()
    assert state(made) is state(made)
    assert state(made).extends_smoothly
    assert state(made).bandwidth == 1
    assert len(calls) == 2, "once for itself, once for its reflection"
    assert state(Counted()) is not state(made)


def test_a_statement_goes_with_its_problem():
    made = hp.problems.Heat1D()
    gone = weakref.ref(state(made))
    del made
    gc.collect()
    assert gone() is None


def test_a_pickled_problem_is_stated_anew():
    made = hp.problems.Heat1D(nu=0.2)
    assert state(made).extends_smoothly
    again = pickle.loads(pickle.dumps(made))
    assert again.parameters() == {"nu": 0.2}
    assert state(again) is not state(made)
    assert state(again).problem is again


NOT_PERIODIC = {
    "walls": ([hp.Initial(0.0), hp.Dirichlet(0.0)], LINE, "there is no Periodic condition along x"),
    "one axis": ([hp.Initial(0.0), AROUND], PLANE, "there is no Periodic condition along y"),
    "a term": (
        [hp.Initial(0.0), hp.Periodic("x", exact=False)],
        LINE,
        "there is no Periodic condition along x",
    ),
    "a mean": (
        [hp.Initial(0.0), AROUND, hp.MeanValue(0.0)],
        LINE,
        "there is also the condition meanvalue",
    ),
    "a ring": (
        [hp.Initial(0.0)],
        hp.Annulus(0.5, 1.0).over(t=(0, 1)),
        "is not a box",
    ),
}


@pytest.mark.parametrize(
    ("conditions", "domain", "reason"), NOT_PERIODIC.values(), ids=NOT_PERIODIC
)
def test_why_a_problem_is_not_periodic_is_told(conditions, domain, reason):
    made = state(problem(lambda u, p: u.t - u.laplacian, conditions, domain))
    assert not made.is_periodic
    assert made.why_not_periodic().endswith(reason)


def test_a_periodic_problem():
    made = state(problem(lambda u, p: u.t + u.x, [hp.Initial(0.0), AROUND]))
    assert made.is_periodic
    assert made.why_not_periodic() is None
    assert made.periodic == ("x",)


NOT_STARTED = {
    "no time": (lambda u, p: u.x, [], hp.Box(x=(0, 1)), ("u",), "there is no time"),
    "an algebraic field": (
        lambda u, q, p: (u.t - q, q - u.xx),
        [hp.Initial(0.0, "u")],
        LINE,
        ("u", "q"),
        "q has no initial condition",
    ),
    "equations": (
        lambda u, v, w, p: (u.t - v, v.t - w),
        [hp.Initial(0.0, "u"), hp.Initial(0.0, "v")],
        LINE,
        ("u", "v", "w"),
        "two equations for three fields",
    ),
    "orders": (
        lambda u, v, p: (u.tt - v, v.t - u),
        [hp.Initial(0.0, "u"), hp.Initial(0.0, "u", "t"), hp.Initial(0.0, "v")],
        LINE,
        ("u", "v"),
        "v has one initial condition, and the equations are of order 2 in time",
    ),
}


@pytest.mark.parametrize(
    ("residual", "conditions", "domain", "fields", "reason"), NOT_STARTED.values(), ids=NOT_STARTED
)
def test_why_fields_have_no_starts_is_told(residual, conditions, domain, fields, reason):
    made = state(problem(residual, conditions, domain, fields))
    assert not made.is_started
    assert made.why_not_started() == reason


def test_orders_in_space_and_time():
    starts = [hp.Initial(0.0), hp.Initial(0.0, derivative="t")]
    made = state(problem(lambda u, p: u.tt + u.txxx, starts))
    assert (made.order, made.space_order, made.time_order, made.has_time) == (4, 3, 2, True)
    steady = state(problem(lambda u, p: u.xx, [], hp.Box(x=(0, 1))))
    assert (steady.order, steady.space_order, steady.time_order) == (2, 2, 0)


def test_a_residual_that_cannot_be_looked_at_gives_a_reason():
    def stubborn(u, p):
        if p.x.shape[0] > 3:
            raise RuntimeError("too many")
        return u.t - u.xx

    made = state(problem(stubborn, [hp.Initial(0.0), hp.Dirichlet(0.0)]))
    assert "cannot be looked at" in made.why_not_smooth()
    assert not made.linear_constant_coefficients
    assert made.principal_part is None


def test_finding_all_of_it_takes_little_time():
    """Of the processor, once JAX is warm; without the Darcy problems, whose sources are programs."""

    def everything(name):
        made = state(PROBLEMS[name]())
        made.why_not_periodic(), made.why_not_started(), made.why_not_smooth()
        return made.bandwidth, made.linear_constant_coefficients, made.principal_part

    names = [name for name in PROBLEMS if not name.startswith("darcy")]
    for name in names:
        everything(name)
    begin = time.process_time()
    for name in names:
        everything(name)
    assert (time.process_time() - begin) / len(names) < 0.5


def test_boundary_treatments_have_names():
    assert [*TREATMENTS] == ["penalty", "lifted", "reflected"]
    assert treatment_named("reflected") == Reflected()
    with pytest.raises(UserError, match="Did you mean 'lifted'"):
        treatment_named("lifte")


def test_what_each_treatment_leaves_and_embeds():
    conditions = [hp.Initial(0.0), hp.Dirichlet(0.0, "y"), AROUND]
    made = state(problem(lambda u, p: u.t - u.laplacian, conditions, PLANE))
    assert [t.impose(made).left for t in (Penalty(), Lifted(), Reflected())] == [
        (0, 1, 2),
        (0,),
        (0,),
    ]
    assert [t.embedded(made) for t in (Penalty(), Lifted())] == [(), ("x",)]
    assert Lifted().inputs(made).periodic == (False, True, False)
    doubled = Reflected().inputs(made)
    assert doubled.periodic == (False, True, True)
    assert doubled.bounds == ((0, 1), (0, 1), (0, 2))
    assert Lifted().on_lattice(made) == (made, Lifted())
    assert Reflected().on_lattice(made) == (made.reflected, Lifted())


def test_an_unknown_parameter_is_refused():
    with pytest.raises(UserError, match="Unknown parameter 'mu'"):
        hp.problems.Heat1D().with_parameters({"mu": jnp.ones(())})
