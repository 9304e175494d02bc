"""Sine and cosine of whole arrays against the C library's."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.derivatives.trigonometry import sine_and_cosine


@pytest.mark.parametrize("size", [1e-8, 0.1, 1.0, 10.0, 1e3, 1e6])
def test_they_are_those_of_the_library_to_the_last_bit_but_one(size, x64):
    quarters = np.arange(-9, 10) * (np.pi / 4)
    x = np.concatenate([np.random.default_rng(0).uniform(-size, size, 20_000), quarters])
    sine, cosine = jax.jit(sine_and_cosine)(x)
    np.testing.assert_allclose(sine, np.sin(x), rtol=4e-16, atol=1e-16)
    np.testing.assert_allclose(cosine, np.cos(x), rtol=4e-16, atol=1e-16)


def test_small_numbers_keep_all_their_digits(x64):
    x = np.array([0.0, 1e-300, -1e-20, 1e-9])
    sine, cosine = sine_and_cosine(jnp.asarray(x))
    np.testing.assert_array_equal(sine, np.sin(x))
    np.testing.assert_array_equal(cosine, np.cos(x))


def test_no_number_stays_none(x64):
    sine, cosine = sine_and_cosine(jnp.asarray([jnp.nan, jnp.inf, -jnp.inf]))
    assert np.all(np.isnan(sine))
    assert np.all(np.isnan(cosine))


def test_huge_angles_give_bounded_values(x64):
    """No digit of such an angle is known within a turn; nothing may overflow all the same."""
    sine, cosine = sine_and_cosine(jnp.asarray([1e12, -1e15, 1e18, 1e100, 1e308]))
    assert np.all(np.abs(sine) <= 1 + 1e-12)
    assert np.all(np.abs(cosine) <= 1 + 1e-12)


def test_their_derivatives_are_each_other(x64):
    x = jnp.linspace(-7, 7, 50)
    sine, cosine = np.sin(x), np.cos(x)
    by_forward = jax.jvp(sine_and_cosine, (x,), (jnp.ones_like(x),))[1]
    np.testing.assert_allclose(by_forward[0], cosine, atol=1e-15)
    np.testing.assert_allclose(by_forward[1], -sine, atol=1e-15)
    third = jax.vmap(jax.grad(jax.grad(jax.grad(lambda x: sine_and_cosine(x)[0]))))(x)
    np.testing.assert_allclose(third, -cosine, atol=1e-15)


def test_single_precision_is_the_compilers_own():
    x = jnp.linspace(-7, 7, 50, dtype=jnp.float32)
    sine, cosine = sine_and_cosine(x)
    assert sine.dtype == cosine.dtype == jnp.float32
    np.testing.assert_array_equal(sine, jnp.sin(x))
