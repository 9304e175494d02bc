"""Programs compiled in the background: used where they fit, made anew where they do not."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from hyrespinn.errors import UserError
from hyrespinn.training.programs import Function, Programs
from hyrespinn.training.records import Clock


@pytest.fixture
def programs():
    made = Programs(Clock())
    yield made
    made.close()


def counted():
    """A function that notes each time it is traced."""
    traced = []

    def double(x):
        traced.append(x.dtype)
        return 2 * x

    return Function(double), traced


def test_a_program_made_ahead_is_not_made_again(programs, x64):
    function, traced = counted()
    x = jnp.arange(3.0)
    programs.ahead([("double", function, lambda: (jax.ShapeDtypeStruct((3,), x.dtype),))])
    program = programs.get("double", function)
    assert program(x).tolist() == [0, 2, 4]
    assert program(x + 1).tolist() == [2, 4, 6]
    assert len(traced) == 1
    assert traced[0] == jnp.float64  # the background has the precision of the run


def test_other_shapes_than_expected_are_compiled_anew(programs):
    function, traced = counted()
    programs.ahead([("double", function, lambda: (jnp.zeros(3),))])
    assert programs.get("double", function)(jnp.ones(5)).shape == (5,)
    assert len(traced) == 2


def test_a_program_needs_no_background(programs):
    function, traced = counted()
    assert programs.get("double", function)(jnp.ones(2)).tolist() == [2, 2]
    assert len(traced) == 1
    assert programs.clock.compilation > 0


def test_a_mistake_found_in_the_background_reaches_the_caller(programs):
    def wrong(x):
        raise UserError("the residual is wrong")

    programs.ahead([("wrong", Function(wrong), lambda: (jnp.zeros(3),))])
    with pytest.raises(UserError, match="residual"):
        programs.get("wrong", Function(wrong))(jnp.zeros(3))
