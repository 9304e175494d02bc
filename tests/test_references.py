"""Reference solvers: orders of convergence, and that the references solve what they claim to."""

from __future__ import annotations

import json
from itertools import pairwise
from math import factorial

import hyrespinn as hp
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn import references
from hyrespinn.errors import UserError
from hyrespinn.metrics import relative_l2
from hyrespinn.problems import (
    PROBLEMS,
    AllenCahnDirichlet,
    AllenCahnPeriodic,
    Burgers,
    GreyScott,
    Heat1D,
)
from hyrespinn.references import (
    error_axes,
    make_reference,
    reference_of,
    reference_of_the_paper,
    self_convergence,
)
from hyrespinn.references.etdrk4 import coefficients, integrate
from hyrespinn.references.fourier import Torus, evolve
from hyrespinn.references.imex import imex_euler
from hyrespinn.references.reference import REFERENCES, recipe_of, stored_self_convergence


def orders(solve, counts):
    """The observed order between successive refinements by two."""
    ends = [solve(n) for n in counts]
    errors = [np.linalg.norm(a - b) for a, b in pairwise(ends)]
    return np.log2(np.divide(errors[:-1], errors[1:]))


def dissipative(steps, modes=64):
    """u_t = u_xx + u − u³ on a circle: a real linear operator."""
    k, x = np.fft.fftfreq(modes, 1 / modes), 2 * np.pi * np.arange(modes) / modes
    cube = lambda v: -np.fft.fft(np.fft.ifft(v).real ** 3)  # noqa: E731
    start = np.fft.fft(np.cos(x) + 0.5 * np.sin(2 * x))
    return integrate(1 - k**2, cube, start, 1.0, steps, 1)[-1]


def dispersive(steps, modes=32):
    """u_t + u u_x + u_xxx = 0 on a circle: an imaginary linear operator."""
    k, x = np.fft.fftfreq(modes, 1 / modes), 2 * np.pi * np.arange(modes) / modes
    k[modes // 2] = 0
    transport = lambda v: -0.5j * k * np.fft.fft(np.fft.ifft(v).real ** 2)  # noqa: E731
    return integrate(1j * k**3, transport, np.fft.fft(np.cos(x)), 1.0, steps, 1)[-1]


def dissipative_in_the_plane(steps):
    """u_t = Δu + u − u³ on a rectangle, through the torus and its evolution."""
    torus = Torus(((0, 2 * np.pi), (-1, 2)), 16)
    x, y = np.moveaxis(torus.points(), -1, 0)
    start = torus.to_spectrum(np.cos(x) + 0.5 * np.sin(2 * np.pi * y / 3 + x))
    cube = lambda v: -torus.to_spectrum(torus.to_fields(v) ** 3)  # noqa: E731
    return evolve(torus, 1 + torus.laplacian, cube, start, np.array([0.0, 1.0]), steps, 16)[-1]


@pytest.mark.parametrize(
    ("solve", "counts"),
    [
        (dissipative, (10, 20, 40, 80)),
        (dispersive, (50, 100, 200, 400)),
        (dissipative_in_the_plane, (10, 20, 40, 80)),
    ],
)
def test_etdrk4_has_order_four(solve, counts):
    assert np.all(orders(solve, counts) >= 3.7)


def series(weights, z, terms=40):
    """``Σ c_n zⁿ`` with exact Taylor coefficients."""
    return sum(weights(n) * z**n for n in range(terms))


@pytest.mark.parametrize(
    "z", [0, 1e-12, -1e-6, 1e-3, -0.05, 0.9, -1.0, -2.5, 1e-7j, 0.4j, -0.3 + 1j]
)
def test_etdrk4_weights_equal_their_series(z):
    """No cancellation near zero, and the imaginary part is kept."""
    h = 0.25
    c = coefficients(np.array([z / h]), h)
    expected = {
        "full": lambda n: 1 / factorial(n),
        "half": lambda n: 0.5**n / factorial(n),
        "stage": lambda n: h * 0.5 ** (n + 1) / factorial(n + 1),
        "first": lambda n: h * (4 / factorial(n + 3) - 3 / factorial(n + 2) + 1 / factorial(n + 1)),
        "middle": lambda n: h * (1 / factorial(n + 2) - 2 / factorial(n + 3)),
        "last": lambda n: h * (4 / factorial(n + 3) - 1 / factorial(n + 2)),
    }
    for name, weights in expected.items():
        result = getattr(c, name)
        assert np.iscomplexobj(result) == isinstance(z, complex)
        np.testing.assert_allclose(result, series(weights, z), rtol=1e-11, err_msg=name)


def test_etdrk4_is_exact_without_a_nonlinear_part():
    linear = np.array([-1e4, -1.0, 0.5])
    states = integrate(linear, np.zeros_like, np.ones(3), 2.0, 10, 5)
    np.testing.assert_allclose(states, np.exp(np.outer(np.linspace(0, 2, 6), linear)), atol=1e-14)


def test_steps_must_divide_into_saves():
    with pytest.raises(ValueError, match="10 steps cannot be saved 4 times"):
        integrate(np.zeros(1), np.zeros_like, np.ones(1), 1.0, 10, 4)


def test_imex_euler_has_order_one():
    x = np.linspace(-1, 1, 65)

    def solve(steps):
        start = 0.8 * np.sin(np.pi * x)
        return imex_euler(0.1, lambda u: u - u**3, start, x[1] - x[0], 1.0, steps)[-1]

    assert np.all(np.abs(orders(solve, (20, 40, 80, 160)) - 1) < 0.1)


def test_imex_euler_decays_a_sine_mode_as_the_scheme_says():
    x = np.linspace(-1, 1, 33)
    states = imex_euler(0.3, np.zeros_like, np.sin(np.pi * x), x[1] - x[0], 0.5, 4)
    laplacian = -((2 / (x[1] - x[0]) * np.sin(np.pi * (x[1] - x[0]) / 2)) ** 2)
    factor = 1 / (1 - 0.3 * 0.125 * laplacian)
    np.testing.assert_allclose(states, np.outer(factor ** np.arange(5), states[0]), atol=1e-14)


def waves(x, y=0.0):
    """A function of period 2 in x and 3 in y with waves up to 6 and 5, and its derivatives."""
    a, b, c = 5 * np.pi * x, 6 * np.pi * x, 2 * np.pi / 3 * 5 * y
    value = 0.5 + np.sin(a) * np.cos(c) + 0.3 * np.cos(b + c)
    by_x = 5 * np.pi * np.cos(a) * np.cos(c) - 6 * np.pi * 0.3 * np.sin(b + c)
    by_y = 10 * np.pi / 3 * (-np.sin(a) * np.sin(c) - 0.3 * np.sin(b + c))
    k, m = (5 * np.pi) ** 2, (6 * np.pi) ** 2
    n = (10 * np.pi / 3) ** 2
    by_xx = -k * np.sin(a) * np.cos(c) - m * 0.3 * np.cos(b + c)
    by_yy = -n * (np.sin(a) * np.cos(c) + 0.3 * np.cos(b + c))
    return {"": value, "x": by_x, "y": by_y, "xx": by_xx, "yy": by_yy}


BOUNDS = ((-1, 1), (0.5, 3.5))


def known(torus):
    """That function on the torus's own grid."""
    return waves(*np.moveaxis(torus.points(), -1, 0))


@pytest.mark.parametrize("dimension", [1, 2])
def test_the_torus_differentiates(dimension):
    torus = Torus(BOUNDS[:dimension], 16)
    expected = known(torus)
    spectrum = torus.to_spectrum(expected[""])
    for axis, name in enumerate("xy"[:dimension]):
        slope = torus.to_fields(torus.derivative(axis) * spectrum)
        np.testing.assert_allclose(slope, expected[name], atol=1e-12)
    second = sum(expected[name] for name in ("xx", "yy")[:dimension])
    np.testing.assert_allclose(torus.to_fields(torus.laplacian * spectrum), second, atol=1e-10)


def test_an_odd_derivative_leaves_the_highest_wave_out():
    """Its sine is zero on the grid, so its slope cannot be told: zero keeps the field real."""
    torus = Torus(((0, 2 * np.pi),), 8)
    highest = torus.to_spectrum(np.cos(4 * torus.points()[:, 0]))
    np.testing.assert_allclose(torus.derivative() * highest, 0)
    np.testing.assert_allclose(torus.laplacian * highest, -16 * highest)


@pytest.mark.parametrize("several", [(), (3,), (2, 3)])
@pytest.mark.parametrize("dimension", [1, 2])
def test_spectra_and_fields_are_inverse_to_one_another(dimension, several):
    """Random values, so also the highest wave; several fields at once."""
    torus = Torus(BOUNDS[:dimension], 12)
    fields = np.random.default_rng(0).normal(size=(*several, *torus.shape))
    spectrum = torus.to_spectrum(fields)
    assert spectrum.shape == (*several, *torus.shape[:-1], 7)
    np.testing.assert_allclose(torus.to_fields(spectrum), fields, atol=1e-14)
    np.testing.assert_allclose(torus.to_fields(0 * spectrum), 0)


@pytest.mark.parametrize("dimension", [1, 2])
def test_projection_drops_the_waves_that_the_grid_does_not_have(dimension):
    """Sampled on the coarse grid, the tenth wave would look like the second."""
    few = Torus(BOUNDS[:dimension], 8)
    spectrum = few.project(
        lambda x: np.cos(np.pi * x[..., 0]) + np.cos(10 * np.pi * x[..., 0]), finer=4
    )
    low = np.cos(np.pi * few.points()[..., 0])
    np.testing.assert_allclose(few.to_fields(spectrum), low, atol=1e-14)


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("count", [4, 8, 16, 32, 48, 1, 5, 11, 20, 45])
def test_the_interpolant_is_exact_for_few_waves(dimension, count):
    """On divisors, multiples and neither of the 16 modes; also on grids too coarse for the waves."""
    torus, other = (Torus(BOUNDS[:dimension], n) for n in (16, count))
    fields = torus.on_grid(torus.to_spectrum(known(torus)[""]), count)
    assert fields.shape == (count,) * dimension
    np.testing.assert_allclose(fields, known(other)[""], atol=1e-13)


@pytest.mark.parametrize("dimension", [1, 2])
def test_the_interpolant_goes_through_the_values_on_the_grid(dimension):
    """Whatever they are: also the highest wave, which is one number on the grid and two finer."""
    torus = Torus(BOUNDS[:dimension], 8)
    fields = np.random.default_rng(0).normal(size=torus.shape)
    finer = torus.on_grid(torus.to_spectrum(fields), 24)
    np.testing.assert_allclose(finer[(slice(None, None, 3),) * dimension], fields, atol=1e-13)


def test_a_projection_sees_a_kink_better_than_samples():
    """x² on [−1, 1) is 1/3 + Σ 4(−1)ᵏ/(πk)² cos πkx; samples err by the aliases, like 1/n²."""
    torus = Torus(((-1, 1),), 32)
    k = np.arange(1, 9)
    exact = np.array([1 / 3, *(2 / (np.pi * k) ** 2)])  # the grid begins at −1: no (−1)ᵏ is left

    def error(finer):
        spectrum = torus.project(lambda x: x[..., 0] ** 2, finer) / torus.modes
        return np.abs(spectrum[:9] - exact).max()

    assert error(1) > 3e-4
    assert error(64) < 2e-7
    assert 3.9 < error(16) / error(32) < 4.1


@pytest.mark.parametrize("dimension", [1, 2])
def test_heat_spreads_as_the_formula_says(dimension):
    """Exact whatever the step, also at times that do not begin at zero and on another grid."""
    torus, other = (Torus(BOUNDS[:dimension], n) for n in (16, 10))
    times = np.array([0.5, 0.75, 1.0])

    def heat(torus, t):
        x, y = (*np.moveaxis(torus.points(), -1, 0), 0.0)[:2]
        k, m, n = np.pi**2, 9 * np.pi**2, (4 * np.pi / 3) ** 2 * (dimension > 1)
        slow = np.exp(-0.1 * k * t) * np.cos(np.pi * x)
        return 2 + slow + np.exp(-0.1 * (m + n) * t) * np.sin(3 * np.pi * x + 4 * np.pi / 3 * y)

    states = evolve(
        torus,
        0.1 * torus.laplacian,
        np.zeros_like,
        torus.to_spectrum(heat(torus, 0.5)),
        times,
        steps=3,
        count=10,
    )
    assert states.shape == (3, *other.shape)
    for state, t in zip(states, times, strict=True):
        np.testing.assert_allclose(state, heat(other, t), atol=1e-13)


class Fine(AllenCahnDirichlet):
    """The same problem on a grid four times as fine, for finite differences."""

    test_grid = (801, 2049)


def made(problem, like=None, **settings):
    """The fields of a problem on its own grid, by the recipe of the class that it varies."""
    recipe = REFERENCES[like or type(problem)]["converged"]
    return recipe.make(problem, error_axes(problem), **{**recipe.settings, **settings})


@pytest.fixture(scope="module")
def fine():
    return made(Fine(), AllenCahnDirichlet)["u"]


def test_the_converged_reference_is_registered_with_its_figure(fine):
    reference = reference_of(AllenCahnDirichlet())
    assert reference.values["u"].shape == (201, 513)
    assert reference.points.shape == (201 * 513, 2)
    np.testing.assert_allclose(reference.values["u"], fine[::4, ::4], atol=1e-13)
    assert reference.self_convergence == stored_self_convergence(AllenCahnDirichlet())
    assert 0 < reference.self_convergence <= 1e-9
    assert stored_self_convergence(Heat1D()) is None


def test_it_has_the_initial_and_boundary_values(fine):
    x = np.linspace(-1, 1, 2049)
    start = -2 * np.sin(2 * np.pi * x) * (
        2 * np.exp(-8 * (x - 0.5) ** 2) - np.exp(-5 * (x + 0.5) ** 2)
    )  # fmt: skip
    np.testing.assert_allclose(fine[0], start, atol=1e-12)
    np.testing.assert_array_equal(fine[:, [0, -1]], 0.0)


def test_it_satisfies_the_equation(fine):
    """Central differences of order four in time and six in space; the terms are of size 1 to 70."""
    dt, dx = 1 / 800, 1 / 1024
    u = fine[80:]  # the data of t = 0 do not satisfy u_xx = 0 at the ends: a layer, soon gone
    u_t = (u[:-4] - 8 * u[1:-3] + 8 * u[3:-1] - u[4:])[:, 3:-3] / (12 * dt)
    weights = np.array([1 / 90, -3 / 20, 3 / 2, -49 / 18, 3 / 2, -3 / 20, 1 / 90])
    u_xx = sum(w * u[2:-2, i : 2043 + i] for i, w in enumerate(weights)) / dx**2
    u = u[2:-2, 3:-3]
    assert np.abs(u_t - 1e-3 * u_xx + 5 * u**3 - 5 * u).max() < 1e-6


@pytest.mark.parametrize(
    ("cells", "steps", "error"), [(512, 800, 5e-8), (1000, 2000, 3e-9), (1024, 2000, 3e-9)]
)
def test_it_converges_to_itself(fine, cells, steps, error):
    """Also with cells that the grid of errors does not divide."""
    coarse = make_reference(AllenCahnDirichlet(), cells=cells, steps=steps)
    assert relative_l2(coarse.values["u"], fine[::4, ::4]) < error


@pytest.mark.parametrize(
    ("problem", "settings"),
    [
        (AllenCahnDirichlet(), {"cells": 512, "steps": 400}),
        (AllenCahnDirichlet(epsilon=2e-3), {"cells": 2048, "steps": 200}),
        (Burgers(nu=0.02), {}),
    ],
)
def test_the_stored_figure_is_claimed_for_the_stored_case_alone(problem, settings):
    assert stored_self_convergence(type(problem)()) is not None
    reference = make_reference(problem, **settings)
    assert reference.self_convergence is None
    for value in settings.values():
        assert str(value) in reference.description


def test_the_papers_reference_is_as_far_off_as_decision_d8_says(fine):
    paper = reference_of(AllenCahnDirichlet(reference="paper"))
    assert paper.self_convergence is None
    assert "600 steps" in paper.description
    assert 2.39e-3 < relative_l2(paper.values["u"], fine[::4, ::4]) < 2.41e-3


def test_the_papers_reference_of_a_problem():
    asked = reference_of(AllenCahnDirichlet(reference="paper"))
    found = reference_of_the_paper(AllenCahnDirichlet())
    assert found.description == asked.description
    np.testing.assert_array_equal(found.values["u"], asked.values["u"])
    assert reference_of_the_paper(AllenCahnDirichlet(reference="paper")) is None
    assert reference_of_the_paper(hp.problems.Heat1D()) is None


def test_errors_up_to_a_time_are_those_of_the_part():
    reference = reference_of(hp.problems.Heat1D())
    off = {"u": reference.values["u"] * np.linspace(1, 2, len(reference.axes["t"]))[:, None]}
    part = reference.until(0.4)
    assert part.axes["t"][-1] == pytest.approx(0.4)
    count = len(part.axes["t"])
    expected = relative_l2(off["u"][:count], reference.values["u"][:count])
    assert part.errors(off, {}) == {"u": pytest.approx(expected, rel=1e-12)}
    assert part.errors(off, {})["u"] < reference.errors(off, {})["u"]
    assert len(reference.until(1.0).axes["t"]) == len(reference.axes["t"])


@pytest.mark.slow
def test_the_papers_periodic_reference_is_as_far_off_as_decision_d9_says():
    converged = reference_of(AllenCahnPeriodic())
    paper = make_reference(AllenCahnPeriodic(reference="paper"))
    assert paper.self_convergence is None
    assert "512 modes" in paper.description
    assert 1.1e-5 < relative_l2(paper.values["u"], converged.values["u"]) < 1.25e-5


class Short(GreyScott):
    """The first fifth of the reaction, on a coarse grid."""

    domain = hp.TimeBox(t=(0, 0.4), x=(-1, 1), y=(-1, 1))
    test_grid = (5, 32, 32)


def test_the_printed_start_of_grey_scott_dies_out_as_decision_d7_says():
    settings = {"modes": 32, "steps": 200, "samples": 64}
    printed, gaussian = (
        made(Short(initial=initial), GreyScott, **settings) for initial in ("printed", "gaussian")
    )
    assert printed["v"].shape == (5, 32, 32)
    assert 0.9 < printed["v"][0].max() <= 1
    assert printed["v"][-1].max() < 1e-6
    assert 0.9 < gaussian["v"][0].max() <= 1
    assert gaussian["v"][-1].max() > 0.2


def test_cole_and_hopf_agree_with_a_spectral_solution_of_burgers():
    """−sin πx stays odd, so the solution on [−1, 1] is the periodic one."""
    problem = Burgers()
    torus = Torus(((-1, 1),), 4096)
    half = -0.5 * torus.derivative()
    start = torus.to_spectrum(-np.sin(np.pi * torus.points()[:, 0]))
    spectral = evolve(
        torus,
        problem.nu * torus.laplacian,
        lambda v: half * torus.to_spectrum(torus.to_fields(v) ** 2),
        start,
        np.linspace(0, 1, 5),
        steps=2000,
        count=512,
    )
    formula = make_reference(problem).values["u"]
    np.testing.assert_allclose(formula[::50, :-1], spectral, atol=1e-7)
    np.testing.assert_allclose(formula[:, [0, -1]], 0, atol=1e-14)


STORED = json.loads(self_convergence.FILE.read_text())
LIMITS = {
    "allen-cahn-dirichlet": 1e-9,
    "allen-cahn-periodic": 1e-7,
    "korteweg-de-vries": 1e-8,
    "kuramoto-sivashinsky": 1e-6,
    "grey-scott": 1e-6,
    "burgers": 1e-12,
}


def test_every_reference_with_a_resolution_has_a_stored_figure():
    assert set(STORED) == set(LIMITS) == set(self_convergence.names())


@pytest.mark.parametrize("name", LIMITS)
def test_the_stored_figures_are_small_enough_and_of_the_present_recipe(name):
    """A changed recipe needs a new measurement."""
    entry, problem = STORED[name], PROBLEMS[name]()
    recipe = recipe_of(problem)
    assert entry["reference"] == recipe.description.format(**recipe.settings)
    assert set(entry["doubled"]) == set(recipe.settings)
    assert entry["relative_l2"] == pytest.approx(sum(entry["doubled"].values()))
    assert 0 < entry["relative_l2"] <= LIMITS[name]
    assert stored_self_convergence(problem) == entry["relative_l2"]
    assert 0 < entry["seconds"] <= 120
    assert 0 < entry["peak_gigabytes"] <= 2


def test_a_figure_can_be_measured_again():
    measured = self_convergence.measure("burgers")
    assert set(measured) == set(STORED["burgers"])
    assert measured["reference"] == STORED["burgers"]["reference"]
    assert measured["relative_l2"] == sum(measured["doubled"].values()) <= LIMITS["burgers"]
    assert measured["seconds"] < 60


def test_only_problems_with_a_resolution_are_measured():
    with pytest.raises(UserError, match=r"Unknown reference 'heat-1d'.*Known: .*burgers"):
        self_convergence.main(["heat-1d"])


class Pair(hp.Problem):
    """Two fields with an exact solution, periodic along x."""

    rate: float = 2.0
    domain = hp.TimeBox(t=(0, 1), x=(0, 4), y=(0, 1))
    fields = ("u", "v")
    test_grid = (3, 8, 5)

    def residual(self, u, v, p):
        return u.x - jnp.exp(-self.rate * p.t) * jnp.cos(p.x), v - 0.5

    def conditions(self):
        return [hp.Periodic("x")]

    def exact(self, p):
        return jnp.exp(-self.rate * p.t) * jnp.sin(p.x) + p.y, 0.5


def test_the_exact_solution_is_a_reference_in_double_precision():
    reference = reference_of(Pair(rate=3.0))
    t, x, y = np.meshgrid([0, 0.5, 1], 0.5 * np.arange(8), np.linspace(0, 1, 5), indexing="ij")
    np.testing.assert_allclose(
        reference.values["u"], np.exp(-3 * t) * np.sin(x) + y, rtol=0, atol=1e-15
    )
    np.testing.assert_array_equal(reference.values["v"], np.full((3, 8, 5), 0.5))
    np.testing.assert_array_equal(reference.points, np.stack([t, x, y], -1).reshape(-1, 3))
    assert list(reference.arrays()) == ["t", "x", "y", "u", "v"]
    assert reference.values["u"].dtype == np.float64


def test_a_problem_without_exact_solution_has_no_reference():
    class Unknown(Pair):
        def exact(self, p):
            return None

    assert reference_of(Unknown()) is None


def test_error_axes_drop_the_right_end_of_periodic_axes_alone():
    axes = references.error_axes(Pair())
    assert {c: (len(a), a[0], a[-1]) for c, a in axes.items()} == {
        "t": (3, 0, 1), "x": (8, 0, 3.5), "y": (5, 0, 1)}  # fmt: skip
