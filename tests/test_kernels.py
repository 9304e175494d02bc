"""Radial kernels against closed formulas, contour integrals, and their limits at a centre."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.derivatives import closure, coordinates, square
from hyrespinn.errors import UserError
from hyrespinn.models.kernels import KERNELS, Gaussian, Kernel, WendlandC2

# ψ as a function of r inside the support, for real and complex arguments.
FORMULAS = {
    "gaussian": lambda r: np.exp(-(r**2) / 2),
    "multiquadric": lambda r: np.sqrt(1 + r**2),
    "inverse-multiquadric": lambda r: 1 / np.sqrt(1 + r**2),
    "matern52": lambda r: (1 + 5**0.5 * r + 5 / 3 * r**2) * np.exp(-(5**0.5) * r),
    "wendland-c4": lambda r: (1 - r) ** 6 * (35 * r**2 + 18 * r + 3),
    "wendland-c2": lambda r: (1 - r) ** 4 * (4 * r + 1),
}
# ψ(0), ψ'(0), ψ''(0) by hand, the derivatives in s = r².
AT_CENTRE = {
    "gaussian": (1, -1 / 2, 1 / 4),
    "multiquadric": (1, 1 / 2, -1 / 4),
    "inverse-multiquadric": (1, -1 / 2, 3 / 4),
    "matern52": (1, -5 / 6, 25 / 12),
    "wendland-c4": (3, -28, 420),
    "wendland-c2": (1, -10, None),
}
# The largest power of 1−r, which is the highest derivative in s a compact kernel offers.
POWER = {"wendland-c4": 6, "wendland-c2": 4}
SMOOTH = [name for name in FORMULAS if name != "wendland-c2"]
DTYPES = ["float32", "float64"]


def test_every_kernel_is_tested():
    """A kernel added to the registry must be added to the oracles here."""
    assert set(KERNELS) == set(FORMULAS) == set(AT_CENTRE)


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_value_is_the_formula(x64, name, dtype):
    """ψ(r²) against the formula, with the precision kept."""
    r = np.linspace(0, 0.99, 12)
    found = KERNELS[name]()(jnp.asarray(r**2, dtype))
    assert found.dtype == dtype
    tolerance = 1e-5 if dtype == "float32" else 1e-13
    np.testing.assert_allclose(found, FORMULAS[name](r), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("s", [0.1, 0.35, 0.6])
def test_derivatives_by_contour_integral(x64, name, s):
    """Orders 0…5 in s equal k!/(2πi) ∮ ψ(√z) (z−s)^(−k−1) dz, which uses complex values of ψ alone."""
    radius = 0.6 * min(s, 1 - s)
    turn = np.exp(2j * np.pi * np.arange(256) / 256)
    values = FORMULAS[name](np.sqrt(s + radius * turn))
    highest = min(5, POWER.get(name, 5))
    found = KERNELS[name]().derivatives(jnp.asarray(s), highest)
    assert len(found) == highest + 1
    for k in range(highest + 1):
        expected = math.factorial(k) / radius**k * np.mean(values * turn**-k).real
        rounding = 1e-14 * math.factorial(k) / radius**k * np.abs(values).max()
        np.testing.assert_allclose(found[k], expected, 1e-10, rounding, err_msg=f"order {k}")


def printed(name, r):
    """ψ', ψ'', … in s as written in DESIGN §2 (and, for the true C² kernel, derived by hand)."""
    root, e = 5**0.5, np.exp(-(5**0.5) * r)
    return {
        "wendland-c4": [
            -28 * (1 - r) ** 5 * (5 * r + 1),
            420 * (1 - r) ** 4,
            -840 * (1 - r) ** 3 / r,
            420 * (1 - r) ** 2 * (2 * r + 1) / r**3,
        ],
        "matern52": [
            -5 / 6 * (1 + root * r) * e,
            25 / 12 * e,
            -25 * root / 24 * e / r,
            25 / 48 * (5 * r + root) * e / r**3,
        ],
        "wendland-c2": [
            -10 * (1 - r) ** 3,
            15 * (1 - r) ** 2 / r,
            -7.5 * (1 - r**2) / r**3,
        ],
    }[name]


@pytest.mark.parametrize("name", ["wendland-c4", "matern52", "wendland-c2"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_derivatives_are_the_printed_closed_forms(x64, name, dtype):
    """Every order that the engine needs, from next to the centre to the edge of the support."""
    r = np.array([1e-4, 1e-2, 0.2, 0.5, 0.9, 0.999])
    expected = printed(name, r)
    found = KERNELS[name]().derivatives(jnp.asarray(r**2, dtype), len(expected))[1:]
    tolerance = 1e-11 if dtype == "float64" else 5e-4
    for k, (a, b) in enumerate(zip(found, expected, strict=True), start=1):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=1e-9, err_msg=f"order {k}")


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_derivatives_at_the_centre(x64, name, dtype):
    """ψ, ψ' and (where it exists) ψ'' have their limits at s = 0; the singular ones stay finite."""
    highest = 5 if name in SMOOTH else 3
    found = KERNELS[name]().derivatives(jnp.zeros(1, dtype), highest)
    assert all(np.isfinite(f).all() for f in found)
    for k, expected in enumerate(AT_CENTRE[name]):
        if expected is not None:
            np.testing.assert_allclose(found[k], expected, rtol=2e-5, err_msg=f"order {k}")


def bump(name, x, centre, inverse, asked):
    """Derivatives in (x, y) of ψ(|(x−c)·inverse|²), by the engine."""
    scaled = square((coordinates(x, closure(asked, 2)) - centre) * inverse)
    u = KERNELS[name]()(scaled.map(lambda part: part.sum(-1, keepdims=True)))
    return [u[index] for index in asked]


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_point_on_a_centre(x64, name, dtype):
    """u_xx = 2ψ'(0), u_xxxx = 12ψ''(0), u_xxyy = 4ψ''(0) times powers of the inverse widths, odd
    ones 0; gradients in widths and centres are what these formulas give, and all are finite."""
    _, first, second = AT_CENTRE[name]
    wanted = {(2, 0): 2 * first, (1, 0): 0.0, (1, 1): 0.0}
    if name in SMOOTH:
        wanted |= {(4, 0): 12 * second, (2, 2): 4 * second, (3, 0): 0.0, (1, 2): 0.0}
    a, b = 20.0, 3.0
    wanted = {(i, j): value * a**i * b**j for (i, j), value in wanted.items()}
    centre = jnp.asarray([0.3, -0.7], dtype)
    x = jnp.stack([centre, centre + jnp.asarray([0.01, 0.02], dtype)])

    def parts(x, *parameters):
        found = jnp.stack(bump(name, x, *parameters, list(wanted)))
        return found, found

    jacobians = jax.jit(jax.jacrev(parts, (0, 1, 2), has_aux=True))
    (by_point, by_centre, by_width), found = jacobians(x, centre, jnp.asarray([a, b], dtype))
    np.testing.assert_allclose(found[:, 0, 0], list(wanted.values()), rtol=2e-5)
    assert all(np.isfinite(g).all() for g in (by_point, by_centre, by_width))
    for k, ((i, j), value) in enumerate(wanted.items()):
        slope = -wanted.get((i + 1, j), 0.0)  # an odd derivative vanishes by symmetry
        np.testing.assert_allclose(by_centre[k, 0, 0, 0], slope, rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose(by_width[k, 0, 0], [i * value / a, j * value / b], rtol=1e-4)


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_highest_derivative_is_continuous_at_the_centre(x64, name, dtype):
    """u_xxxx (u_xx for the C² kernel) at a distance r differs from its limit by no more than C·r."""
    index = (4, 0) if name in SMOOTH else (2, 0)
    _, first, second = AT_CENTRE[name]
    limit = 12 * second if name in SMOOTH else 2 * first
    r = np.array([0, 1e-12, 1e-9, 1e-7, 3e-7, 1e-6, 1e-5, 1e-4, 1e-3])
    x = jnp.asarray(np.stack([0.6 * r, 0.8 * r], axis=1), dtype)
    (found,) = jax.jit(lambda *a: bump(name, *a, [index]))(x, x[0], jnp.ones(2, dtype))
    deviation = np.abs(np.asarray(found[:, 0], float) - limit) / abs(limit)
    assert (deviation <= 20 * r + (1e-4 if dtype == "float32" else 1e-9)).all(), deviation


@pytest.mark.parametrize(
    ("name", "k"), [(name, k) for name, power in POWER.items() for k in range(power + 1)]
)
def test_compact_kernels_vanish_beyond_their_support(name, k):
    """For r > 1 the kernel and every derivative it offers are exactly zero."""
    s = jnp.asarray([1.0001, 1.3, 4.0, 1e6])
    np.testing.assert_array_equal(KERNELS[name]().derivatives(s, k)[k], np.zeros(4))


@pytest.mark.parametrize("name", POWER)
def test_compact_kernels_refuse_derivatives_they_do_not_have(name):
    """Beyond the power of 1−r there is a jump: an error, not a wrong number."""
    with pytest.raises(UserError, match="no derivative of order"):
        KERNELS[name]().derivatives(jnp.asarray([0.5]), POWER[name] + 1)


@pytest.mark.parametrize("order", [3, 4])
def test_a_kernel_too_rough_is_refused(order):
    """The message names the kernels that do, and they are accepted."""
    with pytest.raises(UserError, match=f"WendlandC2: .* needs {order}") as caught:
        WendlandC2().check(order)
    _, suggestions = str(caught.value).split("Kernels that have them: ")
    assert set(suggestions.rstrip(".").split(", ")) == set(SMOOTH)
    for name in SMOOTH:
        KERNELS[name]().check(order)


def test_kernels_as_smooth_as_the_equation_are_accepted():
    WendlandC2().check(2)
    Gaussian().check(12)


def test_a_misspelt_name_suggests_the_near_one():
    with pytest.raises(UserError, match="Did you mean 'matern52'"):
        KERNELS["matern-52"]


def test_kernels_are_values():
    """Two of a kind are one and the same setting, and none is another."""
    kernels = [kernel() for kernel in KERNELS.values()]
    assert all(a == b and hash(a) == hash(b) for a, b in zip(kernels, kernels, strict=True))
    assert [kernel() for kernel in KERNELS.values()] == kernels
    assert all(a != b for i, a in enumerate(kernels) for b in kernels[:i])


def test_a_new_kernel_is_one_class(x64):
    class Cauchy(Kernel):
        """``1/(1+r²)``."""

        smoothness = math.inf

        def derivatives(self, s, n):
            return [(-1) ** k * math.factorial(k) / (1 + s) ** (k + 1) for k in range(n + 1)]

    kernel = Cauchy()
    kernel.check(9)
    x = jnp.asarray([[0.0], [0.7]])
    series = kernel(square(coordinates(x, closure([(2,)], 1))))
    np.testing.assert_allclose(series[(2,)][:, 0], [-2.0, (6 * 0.49 - 2) / 1.49**3])
