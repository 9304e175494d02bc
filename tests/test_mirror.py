"""Walls as mirrors: which problems have them, what is behind them, and what comes of it."""

from __future__ import annotations

import dataclasses

import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.derivatives import closure, coordinates, lift
from hyrespinn.errors import UserError
from hyrespinn.experiments.presets import configure
from hyrespinn.geometry.sampling import kronecker
from hyrespinn.models import PINN
from hyrespinn.problems.ansatz import build_ansatz
from hyrespinn.problems.continuation import goes_on_smoothly
from hyrespinn.problems.fields import Point
from hyrespinn.problems.mirror import EVEN, ODD, mirrored
from hyrespinn.problems.problem import anatomy, residuals_of
from hyrespinn.problems.waves import finest_wave, keeps_its_waves
from hyrespinn.solution import inputs_of

from helpers import TINY, some_slow

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
    assert [(m.axis, m.parity) for m in mirrored(made).mirrors] == walls


NOT_FOUND = {
    "another value": [hp.Dirichlet(1.0)],
    "a function": [hp.Dirichlet(lambda p: 0 * p.t)],
    "one wall": [hp.Dirichlet(0.0, on="x.min")],
    "one of each kind": [hp.Dirichlet(0.0, on="x.min"), hp.Neumann(0.0, on="x.max")],
    "both at once": [ZERO, FLAT],
    "as a term of the loss": [hp.Dirichlet(0.0, exact=False)],
    "a third condition": [ZERO, hp.MeanValue(0.0)],
}


@pytest.mark.parametrize("conditions", NOT_FOUND.values(), ids=NOT_FOUND.keys())
def test_what_is_no_mirror_is_explained(conditions):
    with pytest.raises(UserError, match="no walls that mirror"):
        mirrored(problem(conditions))
    assert not goes_on_smoothly(problem(conditions))


def test_fields_of_different_parity_have_no_mirror():
    different = [hp.Dirichlet(0.0, field="u"), hp.Neumann(0.0, field="v")]
    with pytest.raises(UserError, match="no walls that mirror"):
        mirrored(problem(different, fields=("u", "v")))


def windy(self, u, p):
    return u.t + 0.3 * u.x - 0.1 * u.xx + jnp.exp(p.x) * u


@pytest.mark.parametrize("wall", [ZERO, FLAT], ids=["odd", "even"])
def test_behind_a_wall_the_equation_is_its_own_image(wall, x64):
    """An odd or even function has, behind the wall, the residual of its image, odd or even too."""
    made = problem([wall], windy)
    doubled = mirrored(made)
    (mirror,) = doubled.mirrors
    assert doubled.domain.bounds == ((0.0, 1.0), (-1.0, 5.0))
    shape = jnp.sin if mirror.parity == ODD else jnp.cos

    def field(points):
        t, x = points[:, :1], points[:, 1:]
        return jnp.exp(t) * shape(np.pi * (x + 1) / 3) + t * shape(2 * np.pi * (x + 1) / 3)

    def residual(of, points):
        indices = closure(anatomy(made).requested, 2)
        return residuals_of(of, lift(field, coordinates(points, indices)), points)["residual"]

    inside = some_points(made.domain)
    behind = inside.at[:, 1].set(4.0 - inside[:, 1])
    np.testing.assert_allclose(residual(doubled, inside), residual(made, inside), rtol=1e-13)
    np.testing.assert_allclose(
        residual(doubled, behind), mirror.parity * residual(made, inside), rtol=1e-9
    )
    initial = next(c for c in doubled.conditions() if isinstance(c, hp.Initial))
    values = [initial.value(Point(p, ("t", "x"))) for p in (inside, behind)]
    np.testing.assert_allclose(values[1], mirror.parity * values[0], rtol=1e-9)


def test_systems_and_named_residuals_are_mirrored(x64):
    both = [hp.Dirichlet(0.0, field=f) for f in "uv"]
    named = problem(both, lambda self, u, v, p: {"a": u.t - v, "b": v.t - u.x}, fields=("u", "v"))
    listed = problem(both, lambda self, u, v, p: [u.t - v, v.t - u.x], fields=("u", "v"))
    points = jnp.asarray([[0.2, 0.5], [0.2, 3.5]])
    values = {i: jnp.ones((2, 2)) for i in anatomy(named).requested}
    for made in (named, listed):
        first, second = residuals_of(mirrored(made), values, points).values()
        np.testing.assert_allclose(first, [0.0, 0.0])
        np.testing.assert_allclose(second, [0.0, 2.0])  # v_t is odd, u_x even


@pytest.mark.parametrize("name", ["zero at both ends", "no slope", "one of each kind"])
def test_the_conditions_hold_for_any_periodic_network(name, x64):
    made, walls = FOUND[name]
    ansatz, left = build_ansatz(made, True, mirror=True)
    assert [type(c) for c in left] == [hp.Initial]
    config = PINN(width=7, depth=2)
    inputs = inputs_of(made, anatomy(made), True, mirror=True)
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
    "a beam, whose mirror asks for more": (problem(residual=lambda s, u, p: u.t + u.xxxx), False),
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
    "a beam, whose mirror asks for more", "a start with a kink, no slope", "a tiny source",
)  # fmt: skip


@pytest.mark.parametrize("name", some_slow(SMOOTH, SLOW))
def test_whether_a_solution_goes_on_smoothly(name):
    made, smooth = SMOOTH[name]
    assert goes_on_smoothly(made) is smooth


def test_a_steady_problem_is_not_mirrored_by_the_rules():
    assert not goes_on_smoothly(hp.problems.Helmholtz2D())


def test_which_equations_keep_their_waves():
    assert keeps_its_waves(problem())
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
        assert not keeps_its_waves(problem(residual=other))


def test_the_finest_wave_of_a_start():
    """sin³ has waves one and three of its half length; on twice the length they are the same."""
    assert finest_wave(mirrored(problem())) == 3
    assert finest_wave(mirrored(problem(start=lambda p: 0 * p.x))) == 0


class Ripples(hp.Problem):
    """Heat from a wave of one's choice."""

    waves: int = 1
    domain = hp.TimeBox(t=(0, 1), x=(0, 1))
    fields = ("u",)

    def residual(self, u, p):
        return u.t - u.xx

    def conditions(self):
        return [hp.Initial(lambda p: jnp.sin(self.waves * jnp.pi * p.x)), ZERO]


def test_a_preset_looks_at_the_problem_with_its_changed_parameters():
    changed = configure(Ripples(), settings={"problem.waves": "100"})
    assert changed == dataclasses.replace(configure(Ripples(waves=100)), problem=changed.problem)
    assert changed.model_config.lattice[1] >= 6 * 100


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
    assert goes_on_smoothly(made)
    assert not configure(made).model_config.lattice


def test_a_slope_that_is_given_at_the_start_is_mirrored_as_a_slope():
    speeds = [hp.Initial(lambda p: jnp.cos(jnp.pi * (p.x + 1) / 3), derivative="x"), ZERO]
    doubled = mirrored(problem(speeds))
    (slope,) = (c for c in doubled.conditions() if getattr(c, "derivative", "") == "x")
    points = jnp.asarray([[0.0, 0.5], [0.0, 3.5], [0.0, 2.5]])
    found = slope.value(Point(points, ("t", "x")))
    np.testing.assert_allclose(found, jnp.cos(jnp.pi * (points[:, 1] + 1) / 3), atol=1e-6)


def test_mirrors_and_terms_of_the_loss_exclude_each_other():
    with pytest.raises(UserError, match=r"train\.mirror=false"):
        configure(hp.problems.Burgers(), settings={"train.exact": "false"})


def test_the_rules_take_few_kernels_where_a_solution_stays_smooth():
    smooth, sharp = configure(problem()), configure(hp.problems.Burgers())
    assert smooth.train.mirror
    assert sharp.train.mirror
    assert smooth.model_config.lattice[1] < sharp.model_config.lattice[1] / 10
    assert not configure(hp.problems.AllenCahnPeriodic()).train.mirror
    assert not configure(hp.problems.Burgers(), model="pinn").train.mirror


def test_single_precision_gets_a_network_that_it_can_train():
    for made in (hp.problems.Burgers(), hp.problems.KortewegDeVries()):
        config = configure(made, precision="float32")
        assert not config.model_config.lattice
        assert [name for name, _ in config.train.plan()] == ["adam", "ssbroyden"]


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
    solution = hp.solve(Cooling(), progress=False, settings={"train.windows": 20})
    assert solution.mirror
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
def test_any_model_takes_mirrors_without_a_lattice():
    settings = {**TINY, "train.mirror": True, "train.ssbroyden_steps": 0}
    del settings["model.kernels.count"]
    solution = hp.solve(
        hp.problems.Burgers(), model="pinn", preset="smoke", progress=False, settings=settings
    )
    np.testing.assert_array_equal(solution(t=0.7, x=[-1.0, 1.0]), 0.0)
    assert abs(solution(t=0.7, x=0.4)) > 1e-3
