"""Darcy flow: the tensor μ, the flux and its divergence, the five strips, derived quantities."""

from __future__ import annotations

import json
import zipfile
from itertools import product

import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.derivatives import closure, coordinates, lift
from hyrespinn.discretise import Drawn
from hyrespinn.errors import UserError
from hyrespinn.optim import Adam
from hyrespinn.problems import (
    Darcy2DDirichlet,
    Darcy2DNeumann,
    Darcy3DDirichlet,
    DarcyFiveStrip,
)
from hyrespinn.problems.fields import Field, Point, fields_of
from hyrespinn.problems.permeability import Permeability, flux, minus_divergence
from hyrespinn.problems.statement import state
from hyrespinn.references import reference_of
from hyrespinn.run.config import configure, with_settings

RING = hp.Annulus(0.25, 1.0)
TUBE = RING.extrude(z=(0, 1))


def scalar(p):
    return 1.5 + jnp.sin(p.x * p.y)


def full(p):
    return [[2 + p.x, 0.4 * p.y**2], [0.4 * p.y**2, 1 + p.x**2]]


def full3(p):
    return [
        [3 + p.x * p.z, 0.3 * p.y, 0.2 * p.z**2],
        [0.3 * p.y, 2 + p.y * p.z, 0.1 * p.x * p.y],
        [0.2 * p.z**2, 0.1 * p.x * p.y, 2.5 - p.x],
    ]


MATRIX = [[2.0, 0.5], [0.5, 1.0]]
MATRIX3 = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 4.0]])
CASES = {
    "number": (RING, 2.5, lambda x: 2.5 * jnp.eye(2)),
    "whole number": (RING, 3, lambda x: 3 * jnp.eye(2)),
    "matrix": (RING, MATRIX, lambda x: jnp.asarray(MATRIX)),
    "rows": (RING, ((2, 0.5), (0.5, 1)), lambda x: jnp.asarray(MATRIX)),
    "varying number": (RING, scalar, lambda x: (1.5 + jnp.sin(x[0] * x[1])) * jnp.eye(2)),
    "varying matrix": (RING, full, lambda x: by_hand(full, "xy", x)),
    "constant function": (RING, lambda p: MATRIX, lambda x: jnp.asarray(MATRIX)),
    "array of a function": (RING, lambda p: jnp.asarray(MATRIX), lambda x: jnp.asarray(MATRIX)),
    "number in space": (TUBE, 0.5, lambda x: 0.5 * jnp.eye(3)),
    "matrix in space": (TUBE, MATRIX3, lambda x: jnp.asarray(MATRIX3)),
    "varying number in space": (TUBE, lambda p: 1 + p.z**2, lambda x: (1 + x[2] ** 2) * jnp.eye(3)),
    "varying matrix in space": (TUBE, full3, lambda x: by_hand(full3, "xyz", x)),
}


def by_hand(mu, names, x):
    """μ at one point, from the same formula."""
    point = Point.of_columns(dict(zip(names, x, strict=True)))
    return jnp.asarray(mu(point))


def pressure(x):
    """A function of one point without symmetries."""
    z = x[2] if x.size > 2 else 0.3
    return jnp.sin(2 * x[0] + x[1] * z) * jnp.exp(0.5 * x[1]) + x[0] ** 2 * z


def field_at(domain, points):
    """The same function as a field with derivatives, as a residual gets it."""
    dimension = domain.dimension
    indices = [i for i in product(range(3), repeat=dimension) if sum(i) <= 2]
    values = jax.vmap(lambda x: pressure(x)[None])
    series = lift(values, coordinates(points, closure(indices, dimension)))
    (u,) = fields_of(series, ("u",), domain.coordinates, domain.space)
    return u, Point(points, domain.coordinates)


@pytest.mark.parametrize("name", CASES)
def test_flux_and_divergence_agree_with_reverse_mode(name, x64):
    """−μ∇u, and −∇·(μ∇u) as the trace of the Jacobian of the flux."""
    domain, mu, matrix = CASES[name]
    points = jnp.asarray(domain.sample(20))

    def flow(x):
        return -matrix(x) @ jax.grad(pressure)(x)

    @jax.jit
    def oracle(points):
        return jax.vmap(flow)(points), jax.vmap(lambda x: jnp.trace(jax.jacrev(flow)(x)))(points)

    @jax.jit
    def computed(points):
        u, p = field_at(domain, points)
        permeability = Permeability(mu, domain)
        flows = jnp.stack(flux(permeability, u, p), axis=-1)
        return flows, minus_divergence(permeability, u, p)

    for found, expected in zip(computed(points), oracle(points), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
        assert np.abs(expected).max() > 0.1


MISTAKES = {
    "zero": (0.0, "positive number or a symmetric positive definite"),
    "negative": (-1, r"at one it is \[\[-1\.0, 0\.0\], \[0\.0, -1\.0\]\]"),
    "not a number": (float("nan"), "positive number or a symmetric"),
    "not symmetric": ([[1.0, 0.5], [0.0, 1.0]], r"symmetric.*\[\[1\.0, 0\.5\], \[0\.0, 1\.0\]\]"),
    "indefinite": ([[1.0, 2.0], [2.0, 1.0]], r"positive definite.*\[\[1\.0, 2\.0\]"),
    "negative somewhere": (lambda p: p.x, r"at one it is \[\[-0\.[0-9]+, 0\.0\]"),
    "not symmetric somewhere": (lambda p: [[2.0, 0.1 * p.x], [0.0, 2.0]], "symmetric"),
    "too large": (np.eye(3), "a number or a 2×2 matrix, not "),
    "ragged": ([[1.0, 0.0], [0.0]], r"2×2 matrix, not \[\[1\.0, 0\.0\], \[0\.0\]\]"),
    "empty": ([], r"2×2 matrix, not \[\]"),
    "a vector": ([1.0, 2.0], r"2×2 matrix, not \[1\.0, 2\.0\]"),
    "a vector of a function": (lambda p: [1.0, p.x], "2×2 matrix, not "),
    "words": ("thick", "number or a .*matrix"),
    "nothing": (None, "number or a .*matrix"),
    "another coordinate": (lambda p: 1 + p.z, "A point here has no 'z'; it has x, y"),
    "a mistake": (lambda p: 1 / 0, "raised ZeroDivisionError"),
}


@pytest.mark.parametrize(("mu", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_wrong_permeability_is_explained(mu, message):
    with pytest.raises(UserError, match=message):
        state(Darcy2DDirichlet(mu=mu))


def test_a_matrix_of_the_plane_does_not_fit_space():
    with pytest.raises(UserError, match="a number or a 3×3 matrix"):
        state(Darcy3DDirichlet(mu=MATRIX))


def test_the_radii_are_parameters():
    problem = Darcy2DNeumann(inner=0.5, outer=2.0)
    assert problem.domain.bounds == ((-2, 2), (-2, 2))
    inside = problem.domain.contains(np.array([[0.4, 0.0], [0.6, 0.0], [0.0, 1.9], [1.5, 1.5]]))
    np.testing.assert_array_equal(inside, [False, True, True, False])
    tube = Darcy3DDirichlet(outer=3.0).domain
    assert tube.bounds == ((-3, 3), (-3, 3), (0, 1))
    config = with_settings(configure(problem), {"problem.inner": "0.75"})
    assert config.problem.domain.volume == pytest.approx(np.pi * (4 - 0.75**2))
    axes = reference_of(problem).axes
    assert (axes["x"][0], axes["x"][-1]) == (-2, 2)


@pytest.mark.parametrize("cls", [Darcy2DDirichlet, Darcy2DNeumann, Darcy3DDirichlet])
@pytest.mark.parametrize(
    ("radii", "message"),
    [
        ({"inner": 0.0}, r"problem\.inner must be positive, not 0"),
        ({"inner": -0.5}, r"problem\.inner must be positive"),
        ({"inner": float("nan")}, r"problem\.inner must be positive"),
        ({"inner": 1.0}, "0 ≤ inner < outer, not inner = 1, outer = 1"),
        ({"outer": 0.1}, "0 ≤ inner < outer"),
    ],
)
def test_a_ring_needs_a_hole_and_a_width(cls, radii, message):
    with pytest.raises(UserError, match=message):
        state(cls(**radii))


def sloped(a, b):
    """A field with the slopes a along x and b along y, and nothing else."""
    slopes = {(1, 0): a, (0, 1): b}
    return Field(lambda index: jnp.asarray(slopes[index]), ("x", "y"), ("x", "y"))


def changed(problem, text):
    return with_settings(configure(problem), {"problem.mu": text}).problem


def test_a_matrix_can_be_set_as_text(x64):
    problem = changed(Darcy2DDirichlet(), "[[2,0.5],[0.5,1]]")
    assert problem.mu == MATRIX
    assert changed(Darcy2DDirichlet(), "3").mu == 3
    a, b = np.array([3.0, -1.0]), np.array([0.5, 2.0])
    p = Point(jnp.asarray(RING.sample(2)), ("x", "y"))
    across, up = problem.derived(sloped(a, b), p)["flux"]
    np.testing.assert_allclose(across, -2 * a - 0.5 * b)
    np.testing.assert_allclose(up, -0.5 * a - b)


@pytest.mark.parametrize("text", ["thick", "[[2,0.5],[0.5,1]", "lambda p: p.x", ""])
def test_other_text_is_refused(text):
    with pytest.raises(UserError, match=r"problem\.mu as text must be a number or a list"):
        changed(Darcy2DDirichlet(), text)


def test_strips_have_their_permeability_on_both_sides_of_an_interface(x64):
    problem = DarcyFiveStrip()
    inside = problem.strip(jnp.asarray([0.1, 0.3, 0.5, 0.7, 0.9]))
    np.testing.assert_array_equal(inside, [16, 6, 1, 10, 2])
    heights = jnp.asarray([0.2, 0.4, 0.6, 0.8])
    np.testing.assert_array_equal(problem.strip(heights - 1e-9), [16, 6, 1, 10])
    np.testing.assert_array_equal(problem.strip(heights + 1e-9), [6, 1, 10, 2])
    np.testing.assert_array_equal(problem.strip(jnp.asarray([0.0, 1.0])), [16, 2])
    three = DarcyFiveStrip(mu=(3.0, 1.0, 5.0))
    np.testing.assert_array_equal(three.strip(jnp.asarray([0.32, 0.34, 0.66, 0.67])), [3, 1, 1, 5])


def test_the_normal_flux_jumps_by_the_difference_of_the_strips(x64):
    """Checked on the interfaces themselves, in both precisions."""
    problem = DarcyFiveStrip()
    (interface,) = (c for c in problem.conditions() if isinstance(c, hp.Interface))
    assert interface.planes == pytest.approx((0.2, 0.4, 0.6, 0.8))
    slopes = np.array([1.0, -2.0, 0.5, 3.0])
    for dtype in ("float64", "float32"):
        points = jnp.stack([jnp.full(4, 0.3, dtype), jnp.asarray(interface.planes, dtype)], -1)
        u = sloped(np.full(4, 7.0, dtype), slopes.astype(dtype))
        jump = interface.residual(u, Point(points, ("x", "y")))
        np.testing.assert_array_equal(jump, -np.array([6 - 16, 1 - 6, 10 - 1, 2 - 10]) * slopes)


def test_strips_are_read_from_text_and_from_a_file():
    problem = changed(DarcyFiveStrip(), "[4, 1, 2]")
    assert problem.mu == (4.0, 1.0, 2.0)
    again = DarcyFiveStrip(**json.loads(json.dumps(problem.parameters())))
    assert again.mu == problem.mu
    assert len(again.conditions()[-1].planes) == 2
    assert changed(DarcyFiveStrip(), "[7]").conditions()[-1] == hp.MeanValue(0.5)


@pytest.mark.parametrize(
    "text",
    ["[]", "[1, 0]", "[2, -1, 3]", "null", "3", '["a", 1]', "[[1, 2], [2, 1]]", "[1, NaN]",
     "[1, Infinity]", '"ab"'],
)  # fmt: skip
def test_strips_need_positive_numbers(text):
    with pytest.raises(UserError, match=r"problem\.mu must be a list of positive numbers"):
        changed(DarcyFiveStrip(), text)


def test_the_reference_of_a_ring_has_a_flux_and_nothing_outside():
    problem = Darcy2DDirichlet(mu=MATRIX)
    reference = reference_of(problem)
    x, y = np.moveaxis(reference.mesh, -1, 0)
    inside = (np.hypot(x, y) >= 0.25 - 1e-9) & (np.hypot(x, y) <= 1 + 1e-9)
    np.testing.assert_array_equal(reference.inside, inside)
    slopes = np.pi * np.stack(
        [np.cos(np.pi * x) * np.cos(3 * np.pi * y), -3 * np.sin(np.pi * x) * np.sin(3 * np.pi * y)],
        axis=-1,
    )
    expected = np.where(inside[..., None], -slopes @ np.array(MATRIX), np.nan)
    np.testing.assert_allclose(reference.derived["flux"], expected, atol=1e-12)
    arrays = reference.arrays()
    assert list(arrays) == ["x", "y", "u", "flux_x", "flux_y"]
    assert {a.shape for a in arrays.values()} == {(int(inside.sum()),)}


class Flat(hp.Problem):
    """A plane with derived quantities that a test may change."""

    domain = hp.Box(x=(0, 1), y=(0, 2))
    fields = ("u",)
    test_grid = (5, 7)

    def residual(self, u, p):
        return u.laplacian

    def conditions(self):
        return [hp.Dirichlet(self.exact)]

    def exact(self, p):
        return p.x**2 - p.y**2


def deriving(derived):
    return type("Deriving", (Flat,), {"derived": lambda self, *arguments: derived(*arguments)})()


@pytest.mark.parametrize(
    ("derived", "message"),
    [
        (lambda u, p: [u.x], r"derived\(\) must return a dict of arrays, not list"),
        (lambda u, p: None, "must return a dict of arrays, not NoneType"),
        (lambda u, p: {"slope": jnp.sum(u.x)}, r"quantity slope has shape \(\); expected \(3,\)"),
        (lambda u, p: {"slope": jnp.stack([u.x, u.y])}, r"slope has shape \(2, 3\)"),
        (lambda u, p: {"slope": (u.x, 1.0)}, r"slope has shape \(\)"),
        (lambda u, p: {"slope": u.q}, "no derivative 'q'"),
        (lambda u, p: {"slope": u.x / p.z}, "A point here has no 'z'"),
        (lambda u: {"slope": u.x}, "raised TypeError"),
    ],
)
def test_a_wrong_derived_quantity_is_explained_before_training(derived, message):
    with pytest.raises(UserError, match=message):
        hp.solve(deriving(derived), progress=False)


X, Y = np.meshgrid(np.linspace(0, 1, 5), np.linspace(0, 2, 7), indexing="ij")
DERIVED = {
    "a field": (lambda u, p: {"q": u}, [X**2 - Y**2]),
    "an array": (lambda u, p: {"q": u * p.x}, [(X**2 - Y**2) * X]),
    "a slope": (lambda u, p: {"q": u.y}, [-2 * Y]),
    "a vector": (lambda u, p: {"q": (u.x, u.y)}, [2 * X, -2 * Y]),
    "a vector with a field": (lambda u, p: {"q": [u, u.x, u.y]}, [X**2 - Y**2, 2 * X, -2 * Y]),
    "a second derivative": (lambda u, p: {"q": u.xx}, [2 + 0 * X]),
    "a Laplacian": (lambda u, p: {"q": u.laplacian}, [0 * X]),
}


@pytest.mark.parametrize(("derived", "expected"), DERIVED.values(), ids=DERIVED)
def test_the_reference_has_whatever_is_derived(derived, expected):
    problem = deriving(derived)
    state(problem)
    found = reference_of(problem).derived["q"]
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, np.stack(expected, axis=-1), atol=1e-12)


SETTINGS = {
    "model.width": 6,
    "model.kernels.count": 5,
    "stages": (Adam(10, batch=32),),
    "points": Drawn(64, boundary=16),
}
UNTRAINED = {**SETTINGS, "stages": (Adam(1, rate=1e-12, batch=32),)}


def solve(problem, settings=SETTINGS, **options):
    return hp.solve(problem, method="network", progress=False, settings=settings, **options)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that measures its errors on a coarse grid."""
    out = tmp_path_factory.mktemp("darcy") / "run"
    problem = Darcy2DDirichlet(mu=MATRIX)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Darcy2DDirichlet, "test_grid", (41, 45))
        return out, solve(problem, out=out)


def test_a_solve_reports_the_flux_beside_the_pressure(run):
    out, _ = run
    result = json.loads((out / "result.json").read_text())
    errors = result["rel_l2"]
    assert list(errors) == ["u", "flux", "flux_x", "flux_y"]
    assert all(0 < e < 10 for e in errors.values())
    assert errors["flux"] ** 2 == pytest.approx(errors["flux_x"] ** 2 + errors["flux_y"] ** 2)
    assert set(result["rel_l2_initial"]) == {"u"}
    assert result["rel_l2_initial"]["u"] > 0
    assert set(result["eta_dof"]) == {"u"}
    assert (out / "figures" / "solution.png").exists()


def test_the_flux_error_is_the_one_of_the_flux_on_the_grid(run):
    """From the solution's own derivatives and the formula, at the points in the ring."""
    _, solution = run
    x, y = np.meshgrid(np.linspace(-1, 1, 41), np.linspace(-1, 1, 45), indexing="ij")
    inside = (np.hypot(x, y) >= 0.25 - 1e-9) & (np.hypot(x, y) <= 1 + 1e-9)
    at = {"x": x[inside], "y": y[inside]}
    slopes = np.stack([solution.derivative(c, **at) for c in "xy"], axis=-1)
    px, py = np.pi * at["x"], np.pi * at["y"]
    known = np.pi * np.stack([np.cos(px) * np.cos(3 * py), -3 * np.sin(px) * np.sin(3 * py)], -1)
    difference, size = (slopes - known) @ np.array(MATRIX), np.linalg.norm(known @ np.array(MATRIX))
    errors = solution.result["rel_l2"]
    assert errors["flux"] == pytest.approx(np.linalg.norm(difference) / size)
    assert errors["flux_x"] == pytest.approx(np.linalg.norm(difference[:, 0]) / size)
    assert errors["flux_y"] == pytest.approx(np.linalg.norm(difference[:, 1]) / size)


def test_the_flux_of_a_solution_is_that_of_its_derivatives(run):
    _, solution = run
    x, y = np.array([[0.3], [0.5]]), np.array([0.4, -0.2, 0.7])
    values = solution.quantity("flux", x=x, y=y)
    assert values.shape == (2, 3, 2)
    slopes = np.stack([solution.derivative(c, x=x, y=y) for c in "xy"], axis=-1)
    np.testing.assert_allclose(values, -slopes @ np.array(MATRIX), rtol=1e-12)
    assert solution.quantity("flux", x=0.3, y=0.4).shape == (2,)
    assert solution.quantity("flux", x=[], y=[]).shape == (0, 2)
    with pytest.raises(UserError, match=r"Unknown derived quantity 'fluks'.*Did you mean 'flux'"):
        solution.quantity("fluks", x=0.3, y=0.4)
    with pytest.raises(UserError, match="Give every coordinate by name"):
        solution.quantity("flux", x=0.3)
    with pytest.raises(UserError, match=r"Points must have shape \(n, 2\)"):
        solution.derived_at(np.zeros(3))


def test_a_matrix_for_mu_is_saved_as_plain_data(run):
    out, solution = run
    with zipfile.ZipFile(out / "solution.hyres") as archive:
        assert "problem.pickle" not in archive.namelist()
    again = hp.Solution.load(out / "solution.hyres")
    assert again.problem.mu == MATRIX
    values = [s.quantity("flux", x=[0.3, -0.5], y=[0.4, 0.1]) for s in (again, solution)]
    np.testing.assert_array_equal(*values)


def test_outside_the_ring_there_is_nothing(run):
    _, solution = run
    axes, values = solution.grid(x=9, y=9)
    x, y = np.meshgrid(*axes.values(), indexing="ij")
    inside = (np.hypot(x, y) >= 0.25) & (np.hypot(x, y) <= 1)
    np.testing.assert_array_equal(np.isfinite(values["u"]), inside)
    flow = solution.derived_on_axes(axes)["flux"]
    assert flow.shape == (9, 9, 2)
    np.testing.assert_array_equal(np.isfinite(flow).all(axis=-1), inside)


@pytest.mark.slow
def test_a_function_for_mu_is_saved_with_the_solution(tmp_path):
    """A registered problem, but a parameter that no JSON holds: it is stored as code."""
    problem = Darcy2DDirichlet(mu=lambda p: 1 + p.x**2)
    solution = solve(problem, UNTRAINED, reference=False)
    solution.save(tmp_path / "ring.hyres")
    again = hp.Solution.load(tmp_path / "ring.hyres")
    at = {"x": np.array([0.3, 0.5, -0.9]), "y": np.array([0.4, -0.2, 0.1])}
    np.testing.assert_array_equal(again(**at), solution(**at))
    flow = again.quantity("flux", **at)
    np.testing.assert_array_equal(flow, solution.quantity("flux", **at))
    slopes = np.stack([solution.derivative(c, **at) for c in "xy"], axis=-1)
    np.testing.assert_allclose(flow, -(1 + at["x"] ** 2)[:, None] * slopes, rtol=1e-12)


@pytest.mark.slow
def test_a_scalar_is_derived_too():
    class Energy(Flat):
        def derived(self, u, p):
            return {"energy": 0.5 * (u.x**2 + u.y**2)}

    solution = solve(Energy(), UNTRAINED)
    assert list(solution.result["rel_l2"]) == ["u", "energy"]
    at = {"x": np.array([0.1, 0.9]), "y": np.array([1.5, 0.5])}
    slopes = [solution.derivative(c, **at) for c in "xy"]
    expected = 0.5 * (slopes[0] ** 2 + slopes[1] ** 2)
    np.testing.assert_allclose(solution.quantity("energy", **at)[..., 0], expected, rtol=1e-12)
    grid = solution.quantity("energy", x=X, y=Y)[..., 0]
    known = 2 * (X**2 + Y**2)
    error = np.linalg.norm(grid - known) / np.linalg.norm(known)
    assert solution.result["rel_l2"]["energy"] == pytest.approx(error)
