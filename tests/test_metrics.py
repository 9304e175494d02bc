"""Errors, efficiencies and the summands of a residual."""

from __future__ import annotations

import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.metrics import additive_terms, efficiencies, relative_l2
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
