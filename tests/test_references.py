"""Reference solvers: orders of convergence, and that the references solve what they claim to."""

from __future__ import annotations

from itertools import pairwise
from math import factorial

import hyrespinn as hp
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn import references
from hyrespinn.metrics import relative_l2
from hyrespinn.problems import AllenCahnDirichlet
from hyrespinn.references import allen_cahn, reference_of
from hyrespinn.references.etdrk4 import coefficients, integrate
from hyrespinn.references.imex import imex_euler
from hyrespinn.references.reference import stored_self_convergence


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


@pytest.mark.parametrize(
    ("solve", "counts"), [(dissipative, (10, 20, 40, 80)), (dispersive, (50, 100, 200, 400))]
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


class Fine(AllenCahnDirichlet):
    """The same problem on a grid four times as fine, for finite differences."""

    test_grid = (801, 2049)


@pytest.fixture(scope="module")
def fine():
    return allen_cahn.converged(Fine()).values["u"]


def test_the_converged_reference_is_registered_with_its_figure(fine):
    reference = reference_of(AllenCahnDirichlet())
    assert reference.values["u"].shape == (201, 513)
    assert reference.points.shape == (201 * 513, 2)
    np.testing.assert_allclose(reference.values["u"], fine[::4, ::4], atol=1e-13)
    assert reference.self_convergence == stored_self_convergence("allen-cahn-dirichlet")
    assert 0 < reference.self_convergence <= 1e-9
    assert stored_self_convergence("no-such-problem") is None


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


@pytest.mark.parametrize(("cells", "steps", "error"), [(512, 800, 5e-8), (1024, 2000, 3e-9)])
def test_it_converges_to_itself(fine, cells, steps, error):
    coarse = allen_cahn.converged(AllenCahnDirichlet(), cells, steps)
    assert relative_l2(coarse.values["u"], fine[::4, ::4]) < error


@pytest.mark.parametrize(
    ("problem", "resolution"),
    [(AllenCahnDirichlet(), (512, 400)), (AllenCahnDirichlet(epsilon=2e-3), (2048, 200))],
)
def test_the_stored_figure_is_claimed_for_the_stored_case_alone(problem, resolution):
    assert allen_cahn.converged(problem, *resolution).self_convergence is None


def test_the_papers_reference_is_as_far_off_as_decision_d8_says(fine):
    paper = reference_of(AllenCahnDirichlet(reference="paper"))
    assert paper.self_convergence is None
    assert "600 steps" in paper.description
    assert 2.39e-3 < relative_l2(paper.values["u"], fine[::4, ::4]) < 2.41e-3


class Pair(hp.Problem):
    """Two fields with an exact solution, periodic along x."""

    rate: float = 2.0
    domain = hp.TimeBox(t=(0, 1), x=(0, 4), y=(0, 1))
    fields = ("u", "v")
    test_grid = (3, 8, 5)

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
