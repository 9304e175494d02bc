"""Errors, efficiencies and the summands of a residual."""

from __future__ import annotations

import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.metrics import (
    additive_terms,
    efficiencies,
    relative_l2,
    split_components,
    vector_errors,
)
from hyrespinn.problems.fields import Point, fields_of

A, B = jnp.array([1.0, 2.0]), jnp.array([3.0, -5.0])


@pytest.mark.parametrize(
    ("prediction", "reference", "expected"),
    [
        ([1.0, 1.0], [1.0, 0.0], 1.0),
        ([3.0, 4.0], [3.0, 4.0], 0.0),
        ([0.0, 0.0], [3.0, 4.0], 1.0),
        ([[1.1, 2.0], [2.0, 4.2]], [[1.0, 2.0], [2.0, 4.0]], np.sqrt(0.05) / 5),
    ],
)
def test_relative_l2(prediction, reference, expected):
    result = relative_l2(np.array(prediction), np.array(reference))
    assert isinstance(result, float)
    assert result == pytest.approx(expected, rel=1e-12)


def test_relative_l2_is_one_norm_over_all_points_and_scale_free():
    rng = np.random.default_rng(0)
    u, v = rng.normal(size=(2, 5, 7))
    expected = np.sqrt(np.sum((u - v) ** 2) / np.sum(v**2))
    assert relative_l2(u, v) == pytest.approx(expected)
    assert relative_l2(1e-9 * u, 1e-9 * v) == pytest.approx(expected)


def test_nothing_is_relative_to_zero():
    assert relative_l2(np.zeros(3), np.zeros(3)) == 0
    assert relative_l2(np.ones(3), np.zeros(3)) == np.inf


PLANE = {"t": np.zeros(2), "x": np.zeros(3), "y": np.zeros(4)}


@pytest.mark.parametrize(
    ("count", "names"),
    [
        (1, ["q"]),
        (2, ["q_x", "q_y"]),
        (3, ["q_1", "q_2", "q_3"]),
        (4, ["q_1", "q_2", "q_3", "q_4"]),
    ],
)
def test_components_are_named_after_the_coordinates_in_space(count, names):
    value = np.random.default_rng(0).normal(size=(2, 3, 4, count))
    parts = split_components(PLANE, {"q": value})
    assert list(parts) == names
    for i, part in enumerate(parts.values()):
        np.testing.assert_array_equal(part, value[..., i])


def test_the_components_of_several_vectors_keep_apart():
    both = {"flux": np.zeros((2, 3, 4, 2)), "energy": np.zeros((2, 3, 4, 1))}
    assert list(split_components(PLANE, both)) == ["flux_x", "flux_y", "energy"]


def test_vector_errors_by_hand():
    """q* = (3, 4), (0, 0) has norm 5; the components err by 1 and by (2, 2)."""
    known = np.array([[3.0, 4.0], [0.0, 0.0]])
    found = np.array([[4.0, 2.0], [0.0, 2.0]])
    errors = vector_errors({"x": None, "y": None}, {"q": found}, {"q": known})
    assert errors == pytest.approx({"q": 3 / 5, "q_x": 1 / 5, "q_y": np.sqrt(8) / 5})


def test_the_errors_of_components_add_up_to_that_of_the_vector():
    rng = np.random.default_rng(0)
    found, known = rng.normal(size=(2, 4, 5, 6, 3))
    axes = dict.fromkeys("xyz")
    errors = vector_errors(axes, {"q": found, "other": found}, {"q": known})
    assert list(errors) == ["q", "q_x", "q_y", "q_z"], "those that the reference knows"
    parts = [errors[f"q_{c}"] for c in "xyz"]
    assert sum(e**2 for e in parts) == pytest.approx(errors["q"] ** 2)
    size = np.sqrt((known**2).sum())
    assert errors["q_y"] == pytest.approx(np.sqrt(((found - known)[..., 1] ** 2).sum()) / size)


def test_a_scalar_has_one_error():
    assert vector_errors(PLANE, {"e": np.ones((3, 1))}, {"e": 2 * np.ones((3, 1))}) == {"e": 0.5}


def test_a_vector_that_vanishes_as_it_should_has_no_error():
    none, some = np.zeros((3, 2)), np.array([[1.0, 0.0]] * 3)
    assert set(vector_errors(PLANE, {"q": none}, {"q": none}).values()) == {0.0}
    errors = vector_errors(PLANE, {"q": some}, {"q": none})
    assert errors == {"q": np.inf, "q_x": np.inf, "q_y": 0.0}


def test_efficiencies_follow_the_papers_formulas():
    """η_params = 1/(E·N), η_comp = 1/(E·T), η_dof = 1/(E·N·T) with T in steps a second."""
    result = efficiencies(error=1e-3, parameters=200, rate=50.0, seconds=4.0)
    assert result == pytest.approx(
        {
            "eta_params": 5.0,
            "eta_comp": 20.0,
            "eta_dof": 0.1,
            "eta_seconds": 250.0,
            "eta_dof_seconds": 1.25,
        }
    )


def test_only_the_real_cost_rises_with_speed():
    slow, fast = efficiencies(1e-3, 100, 10.0, 20.0), efficiencies(1e-3, 100, 20.0, 10.0)
    assert fast["eta_comp"] < slow["eta_comp"]
    assert fast["eta_seconds"] > slow["eta_seconds"]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda a, b: a * b, [[3, -10]]),
        (lambda a, b: a, [[1, 2]]),
        (lambda a, b: a + b - a * b, [[1, 2], [3, -5], [-3, 10]]),
        (lambda a, b: a - (b - a), [[1, 2], [-3, 5], [1, 2]]),
        (lambda a, b: -(a + (-b)), [[-1, -2], [3, -5]]),
        (lambda a, b: -(-(a - b) + a * a), [[1, 2], [-3, 5], [-1, -4]]),
        (lambda a, b: a - 4.0, [[1, 2], -4]),
        (lambda a, b: 2.0 - a, [2, [-1, -2]]),
        (lambda a, b: (a + b) * 2.0, [[8, -6]]),
        (lambda a, b: a + a, [[1, 2], [1, 2]]),
        (lambda a, b: jnp.sin(a) * 0 + b**2, [[0, 0], [9, 25]]),
    ],
)
def test_additive_terms_are_the_leaves_of_the_outermost_sums(function, expected):
    terms = additive_terms(function, A, B)
    assert len(terms) == len(expected)
    for term, value in zip(terms, expected, strict=True):
        np.testing.assert_allclose(term, value)
    np.testing.assert_allclose(sum(terms), function(A, B))


def test_additive_terms_take_trees_and_constants_of_the_closure():
    constant = jnp.array([10.0, 20.0])
    terms = additive_terms(lambda tree: tree["x"] * tree["y"] - constant, {"y": B, "x": A})
    assert [t.tolist() for t in terms] == [[3, -10], [-10, -20]]


def test_a_constant_function_has_its_constant_as_only_term():
    assert [float(t) for t in additive_terms(lambda a: 2.5, 1.0)] == [2.5]


def test_the_terms_of_a_real_residual(x64):
    """u_t − ε u_xx + 5u³ − 5u, each term with its sign."""
    problem = hp.problems.AllenCahnDirichlet(epsilon=0.5)
    indices = [(0, 0), (1, 0), (0, 2)]
    values = jax.random.normal(jax.random.key(0), (3, 4, 1))
    columns = dict(zip(indices, values, strict=True))
    point = Point(jnp.zeros((4, 2)), ("t", "x"))

    def residual(columns):
        return problem.residual(*fields_of(columns, ("u",), ("t", "x"), ("x",)), point)

    u, u_t, u_xx = np.asarray(values[..., 0])
    terms = additive_terms(residual, columns)
    for term, expected in zip(terms, [u_t, -0.5 * u_xx, 5 * u**3, -5 * u], strict=True):
        np.testing.assert_allclose(term, expected, rtol=1e-12)
