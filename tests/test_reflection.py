"""Reflection in walls: which problems have them, what is behind them, and what comes of it."""

from __future__ import annotations

import dataclasses

import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.derivatives import closure, coordinates, lift
from hyrespinn.discretise import Lifted, Reflected
from hyrespinn.errors import UserError
from hyrespinn.geometry.sampling import kronecker
from hyrespinn.models import PINN, KernelExpansion, Lattice
from hyrespinn.optim import Adam, TrustRegion
from hyrespinn.problems.conditions import EVEN, ODD
from hyrespinn.problems.fields import Point
from hyrespinn.problems.spectrum import bandwidth_of
from hyrespinn.problems.statement import state
from hyrespinn.run.config import configure

from helpers import some_slow

LINE = hp.TimeBox(t=(0.0, 1.0), x=(-1.0, 2.0))
PLANE = hp.TimeBox(t=(0.0, 1.0), x=(0.0, 1.0), y=(0.0, 2.0))
ZERO, FLAT = hp.Dirichlet(0.0), hp.Neumann(0.0)


def bump(p):
    return jnp.sin(jnp.pi * (p.x + 1) / 3) ** 3


def problem(conditions=(ZERO,), residual=None, domain=LINE, fields=("u",), start=bump):
    def diffusion(self, u, *rest):
        return u.t - 0.1 * u.laplacian

    starts = [hp.Initial(start, field=field) for field in fields]
    body = {
        "domain": domain,
        "fields": fields,
        "conditions": lambda self: [*starts, *conditions],
        "residual": residual or diffusion,
    }
    return type("Made", (hp.Problem,), body)()


def some_points(domain):
    return domain.interior(jax.random.key(0), 20, kronecker, jnp.dtype("float64"))


HALVES = (hp.Dirichlet(0.0, on="x.min"), hp.Dirichlet(0.0, on="x.max"))
FOUND = {
    "zero at both ends": (problem(), [(1, ODD)]),
    "zero at one end, then at the other": (problem(HALVES), [(1, ODD)]),
    "no slope": (problem([FLAT]), [(1, EVEN)]),
    "two coordinates": (problem(domain=PLANE), [(1, ODD), (2, ODD)]),
    "one of each kind": (
        problem([hp.Dirichlet(0.0, on="x"), hp.Neumann(0.0, on="y")], domain=PLANE),
        [(1, ODD), (2, EVEN)],
    ),
    "walls and a seam": (
        problem([hp.Dirichlet(0.0, on="y"), hp.Periodic("x")], domain=PLANE),
        [(2, ODD)],
    ),
    "two fields": (
        problem([hp.Dirichlet(0.0, field=f) for f in "uv"], fields=("u", "v")),
        [(1, ODD)],
    ),
}


@pytest.mark.parametrize(("made", "walls"), FOUND.values(), ids=FOUND.keys())
def test_walls_are_found(made, walls):
    statement = state(made)
    assert [(r.axis, r.parity) for r in statement.reflections] == walls
    assert statement.why_not_reflected() is None


NOT_FOUND = {
    "another value": ([hp.Dirichlet(1.0)], "u is not 0 at x = -1"),
    "another slope": ([hp.Neumann(1.0, on="x.max")], "the slope of u is not 0 at x = 2"),
    "a function": ([hp.Dirichlet(lambda p: 0 * p.t)], "u is not 0 at x = -1"),
    "one wall": (
        [hp.Dirichlet(0.0, on="x.min")],
        "there is neither a value nor a slope of u at x = 2",
    ),
    "one of each kind": (
        [hp.Dirichlet(0.0, on="x.min"), hp.Neumann(0.0, on="x.max")],
        "there is a value at one wall along x and a slope at another",
    ),
    "both at once": ([ZERO, FLAT], "there are both a value and a slope of u at x = -1"),
    "as a term of the loss": (
        [hp.Dirichlet(0.0, exact=False)],
        "u at x = -1 is to be a term of the loss",
    ),
    "a third condition": ([ZERO, hp.MeanValue(0.0)], "there is also the condition meanvalue"),
    "no walls": ([hp.Periodic("x")], "there are no walls"),
}


@pytest.mark.parametrize(("conditions", "reason"), NOT_FOUND.values(), ids=NOT_FOUND.keys())
def test_why_walls_reflect_nothing_is_told(conditions, reason):
    statement = state(problem(conditions))
    assert statement.why_not_reflected() == reason
    assert statement.why_not_smooth() == reason
    assert not statement.extends_smoothly
    for use in (Reflected().impose, Reflected().inputs, Reflected().on_lattice):
        with pytest.raises(UserError, match=f"no walls that reflect its solution: {reason}"):
            use(statement)


def test_fields_of_different_parity_have_no_reflection():
    different = [hp.Dirichlet(0.0, field="u"), hp.Neumann(0.0, field="v")]
    statement = state(problem(different, fields=("u", "v")))
    assert statement.reflections == ()
    assert "a slope at another" in statement.why_not_reflected()


def test_what_is_no_box_has_no_walls():
    class Ring(hp.problems.Darcy2DDirichlet):
        pass

    assert "is not a box" in state(Ring()).why_not_reflected()


def windy(self, u, p):
    return u.t + 0.3 * u.x - 0.1 * u.xx + jnp.exp(p.x) * u


@pytest.mark.parametrize("wall", [ZERO, FLAT], ids=["odd", "even"])
def test_behind_a_wall_the_equation_is_its_own_image(wall, x64):
    """An odd or even function has, behind the wall, the residual of its image, odd or even too."""
    made = problem([wall], windy)
    doubled = state(made).reflected
    (reflection,) = state(made).reflections
    assert doubled.domain.bounds == ((0.0, 1.0), (-1.0, 5.0))
    shape = jnp.sin if reflection.parity == ODD else jnp.cos

    def field(points):
        t, x = points[:, :1], points[:, 1:]
        return jnp.exp(t) * shape(np.pi * (x + 1) / 3) + t * shape(2 * np.pi * (x + 1) / 3)

    def residual(of, points):
        indices = closure(of.requested, 2)
        return of.residuals(lift(field, coordinates(points, indices)), points)["residual"]

    inside = some_points(made.domain)
    behind = inside.at[:, 1].set(4.0 - inside[:, 1])
    np.testing.assert_allclose(residual(doubled, inside), residual(state(made), inside), rtol=1e-13)
    np.testing.assert_allclose(
        residual(doubled, behind), reflection.parity * residual(state(made), inside), rtol=1e-9
    )
    initial = next(c for c in doubled.conditions if isinstance(c, hp.Initial))
    values = [initial.value(Point(p, ("t", "x"))) for p in (inside, behind)]
    np.testing.assert_allclose(values[1], reflection.parity * values[0], rtol=1e-9)


def test_systems_and_named_residuals_are_reflected(x64):
    both = [hp.Dirichlet(0.0, field=f) for f in "uv"]
    named = problem(both, lambda self, u, v, p: {"a": u.t - v, "b": v.t - u.x}, fields=("u", "v"))
    listed = problem(both, lambda self, u, v, p: [u.t - v, v.t - u.x], fields=("u", "v"))
    points = jnp.asarray([[0.2, 0.5], [0.2, 3.5]])
    values = {i: jnp.ones((2, 2)) for i in state(named).requested}
    for made in (named, listed):
        first, second = state(made).reflected.residuals(values, points).values()
        np.testing.assert_allclose(first, [0.0, 0.0])
        np.testing.assert_allclose(second, [0.0, 2.0])  # v_t is odd, u_x even


@pytest.mark.parametrize("name", ["zero at both ends", "no slope", "one of each kind"])
def test_the_conditions_hold_for_any_periodic_network(name, x64):
    made, walls = FOUND[name]
    statement = state(made)
    ansatz, left = Reflected().impose(statement)
    assert [type(statement.conditions[place]) for place in left] == [hp.Initial]
    config = PINN(width=7, depth=2)
    inputs = Reflected().inputs(statement)
    assert inputs.periodic[1:] == (True,) * len(walls)
    network = config.build(inputs, jax.random.key(3))
    for axis, parity in walls:
        unit = tuple(int(i == axis) for i in range(made.domain.dimension))
        for wall in made.domain.bounds[axis]:
            points = some_points(made.domain).at[:, axis].set(wall)
            series = ansatz(network, coordinates(points, closure([unit], len(unit))))
            held = series.value if parity == ODD else series[unit]
            np.testing.assert_allclose(held, 0.0, atol=1e-15)
            free = series[unit] if parity == ODD else series.value
            assert np.abs(np.asarray(free)).max() > 1e-3


SMOOTH = {
    "diffusion": (problem(), True),
    "no slope": (problem([FLAT], start=lambda p: 1 + bump(p)), True),
    "an odd reaction": (problem(residual=lambda s, u, p: u.t - u.xx + u**3), True),
    "transport of itself": (problem(residual=lambda s, u, p: u.t + u * u.x - u.xx), True),
    "a wind": (problem(residual=lambda s, u, p: u.t + u.x - u.xx), False),
    "an even reaction": (problem(residual=lambda s, u, p: u.t - u.xx + u**2), False),
    "an even reaction, no slope": (problem([FLAT], lambda s, u, p: u.t - u.xx + u**2), True),
    "a source": (problem(residual=lambda s, u, p: u.t - u.xx - 1), False),
    "a source inside": (problem(residual=lambda s, u, p: u.t - u.xx - bump(p)), True),
    "a beam, whose reflection asks for more": (
        problem(residual=lambda s, u, p: u.t + u.xxxx),
        False,
    ),
    "a start that jumps": (problem(start=lambda p: 1 + bump(p)), False),
    "a start with a kink, no slope": (problem([FLAT], start=lambda p: p.x), False),
    "a tiny source": (
        problem(residual=lambda s, u, p: u.t - u.xx - 1e-6, start=lambda p: 1e-6 * bump(p)),
        False,
    ),
    "a strong source inside": (problem(residual=lambda s, u, p: u.t - u.xx - 1e4 * bump(p)), True),
    "infinite at a wall": (problem(residual=lambda s, u, p: u.t - u.xx + u / (p.x + 1)), False),
    "infinite inside": (problem(residual=lambda s, u, p: u.t - u.xx + u / (p.x - 0.5)), False),
}


SLOW = (
    "transport of itself", "an even reaction, no slope", "a source inside", "infinite inside",
    "a beam, whose reflection asks for more", "a start with a kink, no slope", "a tiny source",
)  # fmt: skip


@pytest.mark.parametrize("name", some_slow(SMOOTH, SLOW))
def test_whether_a_solution_extends_smoothly(name):
    made, smooth = SMOOTH[name]
    assert state(made).extends_smoothly is smooth
    assert (state(made).why_not_smooth() is None) is smooth


REASONS = {
    "a wind": "wind through the wall at x = -1",
    "a source": "there is a source at the wall x = -1",
    "an even reaction": "the residual looks different from behind the wall at x = -1",
    "a start that jumps": "the start of u would have a jump at x = -1",
    "a start with a kink, no slope": "the start of u would have a kink at x = -1",
    "infinite inside": "the residual is not finite at x = 0.5",
    "a beam, whose reflection asks for more": "the equation is of order 4 in space",
}


@pytest.mark.parametrize("name", REASONS)
def test_why_a_solution_does_not_extend_smoothly_is_told(name):
    assert state(SMOOTH[name][0]).why_not_smooth().startswith(REASONS[name])


def test_a_steady_problem_has_no_smooth_extension_to_march_with():
    assert state(hp.problems.Helmholtz2D()).why_not_smooth() == "there is no time"


def test_which_equations_are_linear_with_constant_coefficients():
    assert state(problem()).linear_constant_coefficients
    assert state(hp.problems.Wave1D()).linear_constant_coefficients
    for other in (
        lambda s, u, p: u.t - u.xx + u**3,
        lambda s, u, p: u.t - (1 + p.x**2) * u.xx,
        lambda s, u, p: u.t - u.xx - jnp.sin(p.x),
        lambda s, u, p: u.t - u.xx - 1,
        lambda s, u, p: u.t - u.xx + jnp.maximum(u, 0),
        lambda s, u, p: u.t - u.xx + 50 * jnp.where(jnp.abs(u.value) > 0.5, u.value, 0.0),
        lambda s, u, p: u.t - u.xx - jnp.where(jnp.abs(p.x - 0.43) < 0.02, 1.0, 0.0),
        lambda s, u, p: u.t - jnp.where(jnp.abs(p.x - 0.43) < 0.02, 1e-3, 1.0) * u.xx,
    ):
        assert not state(problem(residual=other)).linear_constant_coefficients


def test_the_bandwidth_of_a_start():
    """sin³ has waves one and three of its half length; on twice the length they are the same."""
    assert state(problem()).bandwidth == 3
    assert bandwidth_of(state(problem()).reflected.starts) == 3
    assert state(problem(start=lambda p: 0 * p.x)).bandwidth == 0
    assert state(problem(residual=lambda s, u, p: u.t - u.xx + u**3)).bandwidth == 0, "not known"
    around = problem([hp.Periodic("x")], start=lambda p: jnp.cos(14 * jnp.pi * (p.x + 1) / 3))
    assert state(around).bandwidth == 7


class Ripples(hp.Problem):
    """Heat from a wave of one's choice."""

    waves: int = 1
    domain = hp.TimeBox(t=(0, 1), x=(0, 1))
    fields = ("u",)

    def residual(self, u, p):
        return u.t - u.xx

    def conditions(self):
        return [hp.Initial(lambda p: jnp.sin(self.waves * jnp.pi * p.x)), ZERO]


def lattice(config):
    """The kernels along each coordinate of a lattice, where the model has one."""
    model = config.discretisation.model
    on_lattice = isinstance(model, KernelExpansion) and isinstance(model.kernels, Lattice)
    return model.kernels.counts if on_lattice else None


def test_a_method_looks_at_the_problem_with_its_changed_parameters():
    changed = configure(Ripples(), settings={"problem.waves": "100"})
    assert changed == dataclasses.replace(configure(Ripples(waves=100)), problem=changed.problem)
    assert lattice(changed)[1] >= 6 * 100


class Separating(hp.Problem):
    """Cahn and Hilliard's equation as two, one of which has no derivative by time."""

    domain = LINE
    fields = ("c", "m")

    def residual(self, c, m, p):
        return c.t - m.xx, m - c**3 + c + 0.01 * c.xx

    def conditions(self):
        walls = [hp.Neumann(0.0, field=field) for field in self.fields]
        return [hp.Initial(1.0, field="c"), *walls]


class Heated(hp.Problem):
    """A string and its warmth: of two orders in time."""

    domain = LINE
    fields = ("u", "v")

    def residual(self, u, v, p):
        return u.tt - u.xx + v, v.t - v.xx

    def conditions(self):
        ends = [hp.Dirichlet(0.0, field=field) for field in self.fields]
        starts = [hp.Initial(bump, field=field) for field in self.fields]
        return [*starts, hp.Initial(0.0, field="u", derivative="t"), *ends]


@pytest.mark.parametrize("made", [Separating(), Heated()], ids=lambda made: made.name)
def test_systems_with_too_few_starts_get_no_lattice(made):
    assert state(made).extends_smoothly
    assert not state(made).is_started
    assert lattice(configure(made)) is None


def test_a_slope_that_is_given_at_the_start_is_reflected_as_a_slope():
    speeds = [hp.Initial(lambda p: jnp.cos(jnp.pi * (p.x + 1) / 3), derivative="x"), ZERO]
    doubled = state(problem(speeds)).reflected
    (slope,) = (start for start in doubled.starts if start.derivative == "x")
    points = jnp.asarray([[0.0, 0.5], [0.0, 3.5], [0.0, 2.5]])
    found = slope.value(Point(points, ("t", "x")))
    np.testing.assert_allclose(found, jnp.cos(jnp.pi * (points[:, 1] + 1) / 3), atol=1e-6)


def test_walls_are_reflected_or_terms_of_the_loss_never_both():
    with pytest.raises(UserError, match=r"boundary.*lifted.*penalty.*reflected"):
        configure(hp.problems.Burgers(), settings={"boundary": "reflected, penalty"})
    with pytest.raises(UserError, match="periodic along all"):
        hp.solve("burgers", preset="smoke", settings={"boundary": "penalty"}, progress=False)


def boundary(problem, **options):
    return configure(problem, **options).discretisation.boundary


def test_the_rules_take_few_kernels_where_a_solution_stays_smooth():
    smooth, sharp = problem(), hp.problems.Burgers()
    assert boundary(smooth) == boundary(sharp) == Reflected()
    assert lattice(configure(smooth))[1] < lattice(configure(sharp))[1] / 10
    assert boundary(hp.problems.AllenCahnPeriodic()) == Lifted()
    assert boundary(hp.problems.Burgers(), model="pinn") == Lifted()


def test_single_precision_gets_a_network_that_it_can_train():
    for made in (hp.problems.Burgers(), hp.problems.KortewegDeVries()):
        config = configure(made, precision="float32")
        assert config.method == "network"
        assert "single precision" in config.rejected["collocation"]
        assert lattice(config) is None
        assert [type(stage) for stage in config.discretisation.stages] == [TrustRegion, TrustRegion]


class Cooling(hp.Problem):
    """Heat between insulated ends, so that slopes are zero there."""

    domain = hp.TimeBox(t=(0, 0.5), x=(1, 3))
    fields = ("u",)
    test_grid = (11, 41)

    def residual(self, u, p):
        return u.t - 0.1 * u.xx

    def conditions(self):
        return [hp.Initial(lambda p: self.exact(p)), FLAT]

    def exact(self, p):
        rate = 0.1 * (jnp.pi / 2) ** 2
        return 2 + jnp.exp(-rate * p.t) * jnp.cos(jnp.pi * (p.x - 1) / 2)


@pytest.mark.slow
def test_insulated_ends_are_solved_with_a_lattice_and_kept_in_a_file(tmp_path):
    solution = hp.solve(Cooling(), progress=False, settings={"marching.count": 20})
    assert solution.boundary == Reflected()
    assert solution.result["rel_l2"]["u"] < 1e-6
    np.testing.assert_array_equal(solution.derivative("x", t=0.2, x=[1.0, 3.0]), 0.0)
    solution.save(tmp_path / "cooling.hyres")
    again = hp.Solution.load(tmp_path / "cooling.hyres", Cooling())
    where = {"t": 0.3, "x": np.linspace(1, 3, 7)}
    np.testing.assert_array_equal(again(**where), solution(**where))


@pytest.mark.slow
def test_waves_between_walls_are_solved_with_a_lattice():
    """Of the second order in time: the speed is handed on from window to window, too."""
    solution = hp.solve(hp.problems.Wave1D(), progress=False)
    assert solution.result["rel_l2"]["u"] < 1e-6
    np.testing.assert_array_equal(solution(t=0.7, x=[0.0, 1.0]), 0.0)


@pytest.mark.slow
def test_any_model_takes_reflections_without_a_lattice():
    settings = {
        "model.width": 6,
        "boundary": "reflected",
        "stages": (Adam(40, batch=32),),
        "points.interior": 64,
        "points.initial": 16,
    }
    solution = hp.solve(
        hp.problems.Burgers(), model="pinn", preset="smoke", progress=False, settings=settings
    )
    np.testing.assert_array_equal(solution(t=0.7, x=[-1.0, 1.0]), 0.0)
    assert abs(solution(t=0.7, x=0.4)) > 1e-3
