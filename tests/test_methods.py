"""Methods: which of them is chosen for a problem, what it chooses, and why not another."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import hyrespinn as hp
import jax.numpy as jnp
import pytest
from hyrespinn.bench.plan import COMPARED
from hyrespinn.discretise import (
    Discretisation,
    Drawn,
    Fixed,
    Grid,
    Lifted,
    Reflected,
    Stopping,
    Weights,
    Whole,
)
from hyrespinn.errors import UserError
from hyrespinn.methods import (
    ACCURATE,
    FAST,
    METHODS,
    SMOKE,
    Collocation,
    Effort,
    Method,
    Network,
    Suits,
    WhyNot,
    choose,
    collocation_lattice,
    collocation_scattered,
)
from hyrespinn.methods.network import HYRESPINN, SHAPES
from hyrespinn.models import HyResPINN, KernelExpansion, Lattice, Scattered
from hyrespinn.models.kernels import Gaussian
from hyrespinn.optim import GaussNewton, GaussNewtonCG, SSBroyden, TrustRegion
from hyrespinn.problems import problem_named
from hyrespinn.problems.statement import state
from hyrespinn.run.config import configure

ROOT = Path(__file__).parents[1]


class Beam(hp.Problem):
    """Of the fourth order in space, and of the second in time, which does not count."""

    domain = hp.TimeBox(t=(0.0, 1.0), x=(0.0, 1.0))
    fields = ("u",)

    def residual(self, u, p):
        return u.tt + 0.01 * u.xxxx

    def conditions(self):
        return [hp.Initial(0.0), hp.Initial(1.0, derivative="t"), hp.Dirichlet(0.0)]


class Blown(hp.Problem):
    """A wind from wall to wall, so that a front stands before one of them and nothing is mirrored."""

    domain = hp.TimeBox(t=(0.0, 1.0), x=(0.0, 1.0))
    fields = ("u",)

    def residual(self, u, p):
        return u.t + u.x - 0.01 * u.xx

    def conditions(self):
        return [hp.Initial(lambda p: p.x * (1 - p.x)), hp.Dirichlet(0.0)]


class Swirl(hp.Problem):
    """Diffusion in a square of which only two sides are glued together."""

    domain = hp.TimeBox(t=(0.0, 1.0), x=(0.0, 1.0), y=(0.0, 1.0))
    fields = ("u",)

    def residual(self, u, p):
        return u.t - u.xx - u.yy

    def conditions(self):
        start = hp.Initial(lambda p: jnp.sin(jnp.pi * p.y))
        return [start, hp.Periodic("x"), hp.Dirichlet(0.0, on="y")]


class OnARing(hp.Problem):
    """Diffusion and a reaction on a ring, from a start with a kink."""

    domain = hp.TimeBox(t=(0.0, 1.0), x=(0.0, 1.0))
    fields = ("u",)

    def residual(self, u, p):
        return u.t - u.xx + u**3

    def conditions(self):
        return [hp.Initial(lambda p: p.x * (1 - p.x)), hp.Periodic("x")]


# What is read off a problem.


@pytest.mark.parametrize(
    ("problem", "wanted"),
    [
        (Beam(), (True, 4, 2, 2, False, False, 0)),
        (hp.problems.Wave1D(), (True, 2, 2, 2, False, True, 4)),
        (hp.problems.Darcy3DNeumann(), (False, 2, 3, 0, False, False, 0)),
        (hp.problems.KortewegDeVries(), (True, 3, 2, 1, True, False, 0)),
        (hp.problems.GreyScott(), (True, 2, 3, 1, True, False, 0)),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_what_methods_look_at_is_read_off_the_equation(problem, wanted):
    s = state(problem)
    dimension = s.domain.dimension
    walls = (s.is_periodic, s.is_started and s.extends_smoothly)
    found = (s.has_time, s.space_order, dimension, s.time_order, *walls, s.bandwidth)
    assert found == wanted


# The choice.


@pytest.mark.parametrize("name", list(hp.problems.PROBLEMS))
def test_collocation_suits_every_problem_of_the_package(name):
    choice = choose("auto", state(problem_named(name)()))
    assert choice.method == "collocation"
    assert choice.rejected == {"network": "slower and less accurate where collocation suits"}
    assert ("lattice" in choice.why) == isinstance(choice.discretisation.points, Grid)


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (hp.problems.Poisson2D(), "a steady equation"),
        (hp.problems.KortewegDeVries(), "periodic in space with all starts given"),
        (hp.problems.Burgers(), "walls that reflect the solution smoothly"),
        (Beam(), "an equation of a high order in space"),
    ],
)
def test_the_reason_for_collocation_is_told(problem, why):
    assert choose("auto", state(problem)).why.startswith(why)


def test_what_collocation_does_not_suit_gets_a_network():
    choice = choose("auto", state(Blown()))
    assert (choice.method, choice.why) == ("network", "it takes any problem")
    reason = choice.rejected["collocation"]
    assert "no lattice: there is no Periodic condition along x, and no reflection: " in reason
    assert "with time and at most two derivatives in space solutions may have fronts" in reason


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (Swirl(), "no lattice: there is no Periodic condition along y, and no reflection: walls in 2"),
        (hp.problems.Poisson2D(), "no lattice: there is no time"),
    ],
)  # fmt: skip
def test_why_there_is_no_lattice(problem, reason):
    found = collocation_lattice.suits(state(problem))
    assert isinstance(found, WhyNot)
    assert found.reason.startswith(reason)


def test_a_lattice_needs_double_precision():
    """What nearly dependent kernels make together is lost in single precision."""
    around = state(OnARing())
    assert choose("auto", around).method == "collocation"
    choice = choose("auto", around, precision="float32")
    assert choice.method == "network"
    assert "lost in single precision" in choice.rejected["collocation"]
    assert (
        choose("auto", state(hp.problems.Poisson2D()), precision="float32").method == "collocation"
    )
    with pytest.raises(UserError, match=r"does not suit .*: .*single precision.* --method auto"):
        choose("collocation", around, precision="float32")


def test_a_method_that_does_not_suit_is_refused_with_its_reason():
    with pytest.raises(
        UserError, match=r"collocation does not suit blown: no lattice: .*network\."
    ):
        choose("collocation", state(Blown()))
    with pytest.raises(UserError, match="does not suit blown: with time"):
        Collocation().discretise(state(Blown()), FAST)


def test_a_network_marches_in_windows_that_begin_short():
    """More of them for stiff equations and in more dimensions; steady problems have none."""
    cases = {"burgers": 4, "kuramoto-sivashinsky": 20, "grey-scott": 10}
    for name, count in cases.items():
        problem = problem_named(name)()
        chosen = configure(problem, method="network").discretisation
        assert chosen.marching.count == count
        (begin, end), windows = problem.domain.bounds[0], chosen.marching.windows(problem.domain, 1)
        first = windows.following([])
        assert first.end - first.start == pytest.approx(0.01 * (end - begin))
        assert first.effort > 1, "what is missed there spoils the rest"
    steady = configure(hp.problems.Poisson2D(), method="network").discretisation
    assert steady.marching == Whole()


def test_a_model_implies_a_network():
    for model, name in (("pinn", "pinn"), (HyResPINN(width=4), "HyResPINN")):
        choice = choose("auto", state(hp.problems.Poisson2D()), model=model)
        assert choice.method == "network"
        assert choice.why == f"the model {name} was asked for"
        assert choice.rejected == {"collocation": "it has no choice of model"}
    assert choice.discretisation.model == HyResPINN(width=4)


def test_collocation_has_no_choice_of_model():
    with pytest.raises(UserError, match="collocation has no choice of model: pinn is for"):
        choose("collocation", state(hp.problems.Poisson2D()), model="pinn")


def test_unknown_names_are_refused_with_what_there_is():
    steady = state(hp.problems.Poisson2D())
    with pytest.raises(UserError, match=r"Did you mean 'network'\? Known: auto, coll"):
        choose("netwrk", steady)
    with pytest.raises(
        UserError, match="network has no preset 'full'; it has smoke, fast, accurate"
    ):
        choose("network", steady, preset="full")
    with pytest.raises(UserError, match="Did you mean 'respinn'"):
        choose("network", steady, model="respin")


def test_a_discretisation_is_taken_as_it_is():
    steady = state(hp.problems.Poisson2D())
    given = choose("collocation", steady).discretisation
    choice = choose(given, steady)
    assert (choice.method, choice.discretisation, choice.why) == ("given", given, "it was given")
    with pytest.raises(UserError, match="has its model already; leave model="):
        choose(given, steady, model="pinn")


def test_a_method_of_ones_own_is_one_class(monkeypatch):
    @dataclass(frozen=True)
    class Coarse(Method):
        """Few kernels, for an effort of its own."""

        kernels: int = 20
        efforts: ClassVar = {"quick": Effort("quick", 1.0), "fast": Effort("fast", 2.0)}

        def suits(self, statement, precision):
            return WhyNot("it has time") if statement.has_time else Suits("it is steady")

        def discretise(self, statement, effort):
            count = round(self.kernels * effort.scale)
            made = Collocation().discretise(statement, FAST)
            return replace(made, model=KernelExpansion(Scattered(count)))

    monkeypatch.setitem(METHODS._classes, "coarse", Coarse)
    steady = state(hp.problems.Poisson2D())
    assert choose("coarse", steady).discretisation.model.kernels.count == 40
    assert choose(Coarse(7), steady, preset="quick").discretisation.model.kernels.count == 7
    assert choose(Coarse(7), steady, preset="quick").method == "coarse"
    with pytest.raises(UserError, match="coarse has no preset 'smoke'; it has quick, fast"):
        choose("coarse", steady, preset="smoke")
    with pytest.raises(UserError, match="coarse does not suit blown: it has time"):
        choose("coarse", state(Blown()))


# Collocation.


@pytest.mark.parametrize(("preset", "windows"), [("fast", 50), ("accurate", 80)])
def test_an_equation_of_ones_own_gets_its_windows(preset, windows):
    chosen = configure(Beam(), preset=preset).discretisation
    assert chosen.marching == Fixed(windows)
    assert chosen.model.kernels.time_width > 1, "flat along the time of a window"
    whole = configure(Blown(), preset=preset).discretisation
    assert whole.marching.count < windows, "of a network, which learns more of the time at once"
    assert chosen.model.kernels.count > 50 * whole.model.kernels.count


@pytest.mark.parametrize("preset", ["smoke", "fast", "accurate"])
def test_smooth_problems_get_fixed_kernels_and_gauss_newton(preset):
    """Steady ones and those in windows; fronts in time get kernels that move, and a trust region."""
    for problem in (hp.problems.Poisson2D(), hp.problems.Darcy3DNeumann(), Beam()):
        chosen = configure(problem, preset=preset).discretisation
        (optimiser,) = chosen.stages
        assert isinstance(optimiser, GaussNewton)
        assert optimiser.progress == (0.1 if preset == "accurate" else 0.5)
        kernels = chosen.model.kernels
        assert isinstance(kernels, Scattered)
        assert kernels.kernel == Gaussian()
        assert chosen.points.interior > 2 * kernels.count, "overdetermined"
        assert chosen.points.adaptive is None, "one round of evenly spread points"
        assert chosen.stopping == Stopping(), "to the last step"
        assert chosen.boundary == Lifted()
        steady = not problem.domain.has_time
        assert (kernels.exterior > 1) is steady, "kernels around the domain too"
        assert (chosen.weights.per_order > 1) is steady, "values count more than slopes"
    moving = configure(Blown(), preset=preset).discretisation
    assert moving.weights.per_order == 1
    assert [type(stage) for stage in moving.stages] == [TrustRegion, TrustRegion]
    assert moving.model.kernels.train_centers


def test_the_number_of_scattered_kernels_grows_with_effort_and_dimension():
    def count(problem, effort):
        return Collocation().discretise(state(problem), effort).model.kernels.count

    plane, body = hp.problems.Poisson2D(), hp.problems.Darcy3DNeumann()
    assert [count(plane, e) for e in (SMOKE, FAST, ACCURATE)] == [256, 1024, 1638]
    assert [count(body, e) for e in (SMOKE, FAST, ACCURATE)] == [128, 2048, 5243]
    assert [count(Beam(), e) for e in (FAST, ACCURATE)] == [1536, 2458]


def test_the_windows_of_an_order():
    march_of = collocation_scattered.march_of
    assert march_of(state(Beam())).windows == 50
    assert march_of(state(hp.problems.KortewegDeVries())).windows == 20
    assert march_of(state(Blown())) is None
    assert march_of(state(hp.problems.Poisson2D())) is None


ON_LATTICES = (
    hp.problems.AllenCahnDirichlet, hp.problems.Burgers,
    hp.problems.AllenCahnPeriodic, hp.problems.GreyScott,
    hp.problems.KortewegDeVries, hp.problems.KuramotoSivashinsky,
)  # fmt: skip


@pytest.mark.parametrize("problem", ON_LATTICES)
@pytest.mark.parametrize("preset", ["fast", "accurate"])
def test_problems_in_time_that_are_periodic_or_between_mirrors_get_a_lattice(problem, preset):
    chosen = configure(problem(), preset=preset).discretisation
    assert isinstance(chosen.model.kernels, Lattice)
    levels, *space = chosen.model.kernels.counts
    assert chosen.stages == (GaussNewtonCG(steps=12),)
    assert chosen.points == Grid((levels - 1, *space)), "as many equations as kernels"
    assert chosen.marching.count >= 160
    assert (chosen.marching.growth, chosen.marching.start) == (0.25, "warm")
    assert chosen.weights == Weights(initial=1.0)
    walls = not state(problem()).is_periodic
    assert chosen.boundary == (Reflected() if walls else Lifted())
    assert chosen.model.kernels.partition_of_unity == (len(space) == 1)


@pytest.mark.parametrize("problem", ON_LATTICES)
def test_more_effort_is_a_finer_lattice(problem):
    fast, accurate = (configure(problem(), preset=p).discretisation for p in ("fast", "accurate"))
    coarse, fine = fast.model.kernels.counts, accurate.model.kernels.counts
    assert fine[1] > coarse[1]
    walls = fast.boundary == Reflected()
    assert fine[0] - coarse[0] == (2 if walls else 0)
    assert accurate.marching.count == (0.8 if walls else 1.6) * fast.marching.count


@pytest.mark.parametrize(
    ("problem", "counts"),
    [
        (hp.problems.AllenCahnPeriodic(), {0.25: (8, 64), 1.0: (8, 1024), 1.6: (8, 2624)}),
        (hp.problems.AllenCahnDirichlet(), {0.25: (8, 512), 1.0: (8, 1024), 1.6: (10, 1296)}),
        (hp.problems.KortewegDeVries(), {0.25: (8, 160), 1.0: (8, 320), 1.6: (8, 408)}),
        (hp.problems.GreyScott(), {0.25: (8, 32, 32), 1.0: (8, 72, 72), 1.6: (8, 88, 88)}),
        (hp.problems.Wave1D(), {0.25: (10, 64), 1.0: (10, 64), 1.6: (12, 64)}),
    ],
)
def test_the_kernels_along_each_coordinate(problem, counts):
    """By the order in space, the dimension, and the finest wave where that is known."""
    statement = state(problem)
    assert {e: collocation_lattice.counts_of(statement, e) for e in counts} == counts


@pytest.mark.parametrize(
    ("problem", "windows"),
    [
        (hp.problems.AllenCahnPeriodic(), [50, 200, 320]),
        (hp.problems.AllenCahnDirichlet(), [50, 200, 160]),
        (hp.problems.Wave1D(), [12, 50, 40]),
    ],
)
def test_the_windows_of_a_lattice(problem, windows):
    found = [collocation_lattice.windows_of(state(problem), e) for e in (0.25, 1.0, 1.6)]
    assert found == windows


def test_an_equation_of_the_second_order_in_time_has_a_level_less_of_points():
    chosen = choose("auto", state(hp.problems.Wave1D())).discretisation
    levels, *space = chosen.model.kernels.counts
    assert chosen.points.counts == (levels - 2, *space)


def test_a_surface_gets_more_points_than_a_line():
    """The boundary of a body against that of a plane."""
    for method in ("collocation", "network"):
        plane, body = (
            configure(problem, method=method).discretisation.points
            for problem in (hp.problems.Darcy2DDirichlet(), hp.problems.Darcy3DDirichlet())
        )
        assert body.boundary >= 4 * plane.boundary
        assert body.interior >= (2 if method == "collocation" else 1) * plane.interior


def test_every_field_has_coefficients_of_its_own():
    class Two(Beam):
        """A beam and its twin."""

        fields = ("u", "v")

        def residual(self, u, v, p):
            return [u.tt + 0.01 * u.xxxx, v.tt + 0.01 * v.xxxx]

        def conditions(self):
            return [
                condition
                for field in self.fields
                for condition in (
                    hp.Initial(0.0, field=field),
                    hp.Initial(1.0, field=field, derivative="t"),
                    hp.Dirichlet(0.0, field=field),
                )
            ]

    one, two = (choose("auto", state(p)).discretisation for p in (Beam(), Two()))
    assert one == two
    counts = [d.model.count(d.inputs(state(p))) for d, p in ((one, Beam()), (two, Two()))]
    assert counts[1] == 2 * counts[0]


# The network.


@pytest.mark.parametrize("preset", ["fast", "accurate"])
@pytest.mark.parametrize("problem", [hp.problems.Poisson2D(), hp.problems.KortewegDeVries()])
def test_all_models_get_one_size_and_one_training(problem, preset):
    """The same for HyResPINN and for every problem of as many dimensions."""
    theirs = configure(problem, model="pinn", preset=preset).discretisation
    after = [] if problem.domain.has_time else [SSBroyden]
    assert [type(stage) for stage in theirs.stages] == [TrustRegion, TrustRegion, *after]
    assert theirs.stages[0].points < theirs.points.interior, "fewer points for the first steps"
    ours = configure(problem, method="network", preset=preset).discretisation
    assert replace(theirs, model=ours.model) == ours
    alike = Blown() if problem.domain.has_time else hp.problems.DarcyFiveStrip()
    other = configure(alike, method="network", preset=preset).discretisation
    assert replace(other, model=ours.model) == ours
    sizes = [d.model.count(d.inputs(state(problem))) for d in (ours, theirs)]
    assert abs(sizes[1] - sizes[0]) < 0.05 * sizes[0]


def test_the_efforts_of_the_network():
    steady = state(hp.problems.Poisson2D())
    smoke, fast, accurate = (
        Network().discretise(steady, effort) for effort in (SMOKE, FAST, ACCURATE)
    )
    assert [d.steps for d in (smoke, fast, accurate)] == [20, 14_100, 40_300]
    assert [d.points.interior for d in (smoke, fast, accurate)] == [1024, 6144, 6144]
    assert fast.model == accurate.model
    inputs = fast.inputs(steady)
    assert smoke.model.count(inputs) < fast.model.count(inputs)
    assert fast.points.interior > 3 * fast.model.count(inputs), "well overdetermined"
    assert accurate.stopping.relative_loss < fast.stopping.relative_loss


TRIALS = json.loads((ROOT / "results" / "model_tuning.json").read_text())["result"]


def flat_shape(spec):
    """The sizes by which trials differ, under the names that they were recorded with; the width
    follows from the number of parameters, which was another one then."""
    names = ("depth", "levels", "blocks")
    shape = {name: getattr(spec, name) for name in names if hasattr(spec, name)}
    if spec.fourier is not None:
        shape["fourier_scale"] = spec.fourier.scale
    return shape


@pytest.mark.parametrize("name", ["allen-cahn-dirichlet", "darcy-2d-dirichlet"])
@pytest.mark.parametrize("model", sorted(set(SHAPES) - {"hyrespinn"}))
def test_a_baseline_has_the_best_shape_of_as_many_trials(model, name):
    trials = [trial[name] for trial in TRIALS[model].values()]
    assert len(trials) == 4
    spec = configure(problem_named(name)(), method="network", model=model).discretisation.model
    shape = flat_shape(spec)
    (ours,) = (trial for trial in trials if trial["settings"].items() >= shape.items())
    best = min(trial["rel_l2"]["u"] for trial in trials)
    assert ours["rel_l2"]["u"] == best


@pytest.mark.parametrize("problem", [hp.problems.Poisson2D(), hp.problems.KortewegDeVries()])
@pytest.mark.parametrize("model", COMPARED)
def test_all_models_of_the_network_have_one_size(model, problem):
    inputs = Lifted().inputs(state(problem))
    chosen = configure(problem, method="network", model=model).discretisation
    wanted = HYRESPINN.of(state(problem)).count(inputs)
    assert abs(chosen.model.count(inputs) - wanted) <= 0.05 * wanted


# Solving with what was chosen.


def solved(problem, **options):
    return hp.solve(problem, progress=False, **options).result


def test_solve_takes_a_class_a_name_a_method_and_a_discretisation():
    few = Discretisation(
        KernelExpansion(Scattered(60)),
        Drawn(200, 20, 60, adaptive=None),
        Lifted(),
        Weights(),
        Whole(),
        (GaussNewton(steps=2),),
    )
    found = [
        solved(hp.problems.Poisson2D, method=few),
        solved("poisson-2d", method=few),
        solved(hp.problems.Poisson2D(), method=few),
    ]
    assert len({result["rel_l2"]["u"] for result in found}) == 1
    assert {result["problem"] for result in found} == {"poisson-2d"}
    result = found[0]
    assert (result["method"], result["why"], result["rejected"]) == ("given", "it was given", {})
    assert result["n_params"] == result["n_params_window"] == 63

    @dataclass(frozen=True)
    class Few(Method):
        """Always the same."""

        def discretise(self, statement, effort):
            return few

    result = solved("poisson-2d", method=Few())
    assert (result["method"], result["why"]) == ("Few", "it was asked for")
    assert result["rel_l2"] == found[0]["rel_l2"]
    with pytest.raises(UserError, match="Did you mean 'poisson-2d'"):
        solved("poison-2d")
