"""What is chosen for a problem: what does not go together, what changes nothing, and what it makes."""

from __future__ import annotations

from dataclasses import replace

import hyrespinn as hp
import jax
import numpy as np
import pytest
from hyrespinn.discretise import (
    Adaptive,
    Causal,
    Discretisation,
    Drawn,
    Fixed,
    Given,
    GradientNorm,
    Grid,
    Lifted,
    NeuralTangentKernel,
    Penalty,
    Reflected,
    ResidualAdaptive,
    Stopping,
    Weights,
    Whole,
)
from hyrespinn.errors import UserError
from hyrespinn.geometry.sampling import PoissonDisk
from hyrespinn.losses.adaptive import Adaptivity
from hyrespinn.models import PINN, KernelExpansion, Lattice, Scattered, StackedPINN
from hyrespinn.models.parameters import flatten
from hyrespinn.optim import Adam, GaussNewton, GaussNewtonCG, LevenbergMarquardt, Soap, SSBroyden
from hyrespinn.problems.statement import state
from hyrespinn.run.config import RunConfig, settings, with_settings
from hyrespinn.training.adaptive_windows import AdaptiveWindows
from hyrespinn.training.stopping import Stops
from hyrespinn.training.windows import WHOLE

from helpers import Heat

HEAT, STEADY = state(Heat()), state(hp.problems.Poisson2D())
WAVES = state(hp.problems.KortewegDeVries())
NETWORK = Discretisation(
    PINN(width=4),
    Drawn(64, 16, 16),
    Lifted(),
    Weights(),
    Whole(),
    (Adam(20), SSBroyden(20)),
)
LATTICE = Discretisation(
    KernelExpansion(Lattice((4, 8))),
    Grid((3, 8)),
    Lifted(),
    Weights(),
    Fixed(4, start="warm"),
    (GaussNewtonCG(4),),
)
SCATTERED = replace(NETWORK, model=KernelExpansion(Scattered(20)), stages=(GaussNewton(4),))
TOGETHER = "Causal weights and adaptive windows need points that are drawn anew"
FOLLOW = "Weights follow the training with optimisers on fresh points alone"


def changed(base=NETWORK, statement=HEAT, **fields):
    return replace(base, **fields), statement


REFUSED = {
    "no optimiser": (changed(stages=()), "There is no optimiser"),
    "a network on a grid": (changed(points=Grid((3, 8))), "take points=drawn"),
    "scattered kernels on a grid": (changed(SCATTERED, points=Grid((3, 8))), "take points=drawn"),
    "conjugate gradients for a network": (
        changed(stages=(Adam(5), GaussNewtonCG(5))),
        "gauss-newton-cg needs kernels on a lattice and points on a grid; take gauss-newton",
    ),
    "conjugate gradients without a grid": (
        changed(LATTICE, WAVES, points=Drawn(64)),
        "gauss-newton-cg needs kernels on a lattice and points on a grid",
    ),
    "causal weights on a grid": (
        changed(LATTICE, WAVES, weights=Weights(causal=Causal())),
        TOGETHER,
    ),
    "adaptive windows on a grid": (changed(LATTICE, WAVES, marching=Adaptive()), TOGETHER),
    "windows without time": (
        changed(statement=STEADY, marching=Fixed(2)),
        "poisson-2d has no time to be cut into windows; take marching=whole",
    ),
    "given windows without time": (
        changed(statement=STEADY, marching=Given()),
        "no time to be cut",
    ),
    "adaptive windows without time": (
        changed(statement=STEADY, marching=Adaptive()),
        "no time to be cut",
    ),
    "a start without time": (
        changed(statement=STEADY, initial_fit="initial"),
        "poisson-2d has no time; take equation",
    ),
    "causal weights without time": (
        changed(statement=STEADY, weights=Weights(causal=Causal())),
        "Causal weights go by time, and poisson-2d has none; set weights.causal=none",
    ),
    "balanced weights without fresh points": (
        changed(stages=(SSBroyden(20),), weights=Weights(balance=GradientNorm())),
        FOLLOW,
    ),
    "tolerances that follow without fresh points": (
        changed(stages=(LevenbergMarquardt(20),), weights=Weights(causal=Causal(4, (0.1, 1.0)))),
        FOLLOW,
    ),
    "a chain in turn that is continued": (
        changed(model=StackedPINN(), in_turn=True, marching=Fixed(2, start="continued")),
        "let windows begin 'warm' or 'new'",
    ),
}


@pytest.mark.parametrize(("case", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_go_together_is_refused_with_a_way_out(case, reason):
    chosen, statement = case
    with pytest.raises(UserError, match=reason):
        chosen.check(statement)


ACCEPTED = {
    "a network": changed(),
    "a network without time": changed(statement=STEADY, initial_fit="equation"),
    "kernels on a lattice": changed(LATTICE, WAVES),
    "a lattice with drawn points": changed(LATTICE, WAVES, points=Drawn(64), stages=(Adam(5),)),
    "scattered kernels": changed(SCATTERED, marching=Fixed(2)),
    "balanced weights": changed(weights=Weights(balance=NeuralTangentKernel())),
    "balanced weights with soap": changed(
        stages=(Soap(9), SSBroyden(9)), weights=Weights(balance=GradientNorm())
    ),
    "one causal tolerance": changed(stages=(SSBroyden(9),), weights=Weights(causal=Causal())),
    "a chain in turn": changed(model=StackedPINN(), in_turn=True, marching=Fixed(2, start="warm")),
    "continued windows": changed(marching=Fixed(2, start="continued")),
    "adaptive windows": changed(marching=Adaptive(start="warm"), initial_fit="initial"),
}


@pytest.mark.parametrize("case", ACCEPTED.values(), ids=ACCEPTED)
def test_what_goes_together_is_accepted(case):
    chosen, statement = case
    chosen.check(statement)


def test_a_run_is_refused_before_anything_is_computed(tmp_path):
    with pytest.raises(UserError, match="There is no optimiser"):
        hp.solve(Heat(), method=replace(NETWORK, stages=()), out=tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


NO_TIME = "poisson-2d has no time"
BUILT_IN = "no condition on the boundary is left to the loss"
IDLE = {
    "the start": (changed(statement=STEADY), "points.initial", NO_TIME),
    "its weight": (changed(statement=STEADY), "weights.initial", NO_TIME),
    "widths along time": (
        changed(SCATTERED, STEADY),
        "model.kernels.time_width",
        NO_TIME,
    ),
    "windows": (changed(statement=STEADY), "marching", NO_TIME),
    "causal weights": (changed(statement=STEADY), "weights.causal", NO_TIME),
    "one network in turn": (
        changed(),
        "in_turn",
        "the model is one network, and no chain of them",
    ),
    "points of walls that are built in": (changed(), "points.boundary", BUILT_IN),
    "their weight": (changed(), "weights.boundary", BUILT_IN),
    "their weight by order": (changed(), "weights.per_order", BUILT_IN),
    "harmonics": (changed(), "model.harmonics", "no coordinate is periodic"),
    "a choice among points that are always new": (
        changed(stages=(Adam(9),)),
        "points.adaptive.pool",
        "every step has new points",
    ),
    "a choice in one fixed set": (
        changed(points=Drawn(64, sampler=PoissonDisk())),
        "points.adaptive.power",
        "the sampler has one fixed set of points",
    ),
    "levels of kernels that are round": (
        changed(SCATTERED),
        "model.kernels.time_levels",
        "kernels are as wide along time as along space",
    ),
}


WORDS = {"marching": "fixed", "weights.causal": "causal", "in_turn": True}
"""Values for keys that take no number."""


@pytest.mark.parametrize(("case", "key", "reason"), IDLE.values(), ids=IDLE)
def test_a_key_that_would_change_nothing_says_why(case, key, reason):
    chosen, statement = case
    found = chosen.idle(statement)
    assert next(why for k, why in found.items() if key.startswith(k)) == reason
    config = RunConfig(statement.problem, chosen, "given")
    assert key not in settings(config)
    with pytest.raises(UserError, match=rf"{key} would change nothing: {reason}\. Leave it\."):
        with_settings(config, {key: WORDS.get(key, 2)})


BUSY = {
    "the start": (changed(), "points.initial"),
    "walls that are left to the loss": (changed(boundary=Penalty()), "points.boundary"),
    "their weight by order": (changed(boundary=Penalty()), "weights.per_order"),
    "harmonics": (changed(statement=WAVES), "model.harmonics"),
    "points that stay": (changed(), "points.adaptive.pool"),
    "levels": (
        changed(SCATTERED, model=KernelExpansion(Scattered(20, time_width=2.0))),
        "model.kernels.time_levels",
    ),
}


@pytest.mark.parametrize(("case", "key"), BUSY.values(), ids=BUSY)
def test_a_key_that_counts_is_shown_and_can_be_set(case, key):
    chosen, statement = case
    config = RunConfig(statement.problem, chosen, "given")
    assert key in settings(config)
    assert settings(with_settings(config, {key: 3}))[key] == 3


BAD = {
    "a pool of one": (lambda: ResidualAdaptive(pool=1), "pool of at least 2, not 1"),
    "nothing inside": (lambda: Drawn(0), "interior is 0; .* at least one point"),
    "nothing at the start": (lambda: Drawn(initial=-3), "initial is -3"),
    "nothing on the boundary": (lambda: Drawn(boundary=0), "boundary is 0"),
    "no grid": (lambda: Grid(()), r"at least one point along each coordinate; its counts are \[\]"),
    "a grid of none": (lambda: Grid((3, 0)), r"counts are \[3, 0\]"),
    "never updated": (lambda: GradientNorm(every=0), "every 1 step or more, not every 0"),
    "never updated either": (lambda: NeuralTangentKernel(every=-1), "not every -1"),
    "a momentum of one": (lambda: GradientNorm(momentum=1.0).balance, "below 1, not 1"),
    "no chunks": (lambda: Causal(chunks=0), "at least one chunk"),
    "never looked at": (lambda: Causal(every=0), "one step between updates, not 32 and 0"),
    "no tolerance": (lambda: Causal(tolerances=()).causality, "one or more positive numbers"),
}


@pytest.mark.parametrize(("make", "message"), BAD.values(), ids=BAD)
def test_parts_refuse_what_cannot_be(make, message):
    with pytest.raises(UserError, match=message):
        make()


DOMAIN = HEAT.domain
BAD_WINDOWS = {
    "none": (Fixed(0), "at least one window; marching.count is 0"),
    "a negative overshoot": (Fixed(overshoot=-0.1), "marching.overshoot cannot be negative"),
    "a steep taper": (Fixed(taper=1.5), "marching.taper is between -1 and 1"),
    "an end too early": (Given((0.5, 0.9)), "marching.ends must rise from above 0 to 1"),
    "ends that do not rise": (Given((0.5, 0.5, 1.0)), "marching.ends must rise"),
    "given ones with a steep taper": (Given(taper=-2.0), "marching.taper"),
    "given ones with a negative overshoot": (Given(overshoot=-1.0), "marching.overshoot"),
    "no first guess": (Adaptive(0), "at least one window; marching.count is 0"),
    "no tolerance": (Adaptive(tolerance=0.0), "marching.tolerance must be positive"),
    "adaptive ones with a negative overshoot": (Adaptive(overshoot=-1.0), "marching.overshoot"),
}


@pytest.mark.parametrize(("marching", "message"), BAD_WINDOWS.values(), ids=BAD_WINDOWS)
def test_windows_that_cannot_be_are_explained(marching, message):
    with pytest.raises(UserError, match=message):
        marching.windows(DOMAIN, 10)


@pytest.mark.parametrize("marching", [Fixed(), Given(), Adaptive()], ids=lambda m: m.kind)
def test_windows_need_time(marching):
    with pytest.raises(UserError, match="has no time to be cut into windows"):
        marching.windows(STEADY.domain, 10)


def ends(marching):
    return [round(w.end, 6) for w in marching.windows(DOMAIN, 10).windows]


def test_windows_are_those_that_were_chosen():
    assert Whole().windows(STEADY.domain, 10) is WHOLE
    assert ends(Fixed(4)) == [0.25, 0.5, 0.75, 1.0]
    assert ends(Fixed(2, growth=1.0)) == [0.025, 0.075, 0.175, 0.375, 0.775, 1.0]
    assert ends(Given((0.1, 0.4, 1.0))) == [0.1, 0.4, 1.0]
    longer = Fixed(2, overshoot=0.5, taper=0.75).windows(DOMAIN, 10).windows
    assert [(w.length, w.effort) for w in longer] == [(0.75, 1.25), (0.5, 0.75)]
    found = Adaptive(3, tolerance=0.2, overshoot=0.1).windows(DOMAIN, 10)
    assert found == AdaptiveWindows((0.0, 1.0), 3, 0.2, 10, 0.1)


def stages_of(chosen):
    return chosen.make_stages(chosen.model.build(chosen.inputs(WAVES), jax.random.key(0)))


@pytest.mark.parametrize(
    ("weights", "every"),
    [
        (Weights(), None),
        (Weights(balance=GradientNorm(every=7)), 7),
        (Weights(causal=Causal(every=5)), None),
        (Weights(causal=Causal(tolerances=(0.1, 1.0), every=5)), 5),
        (Weights(balance=GradientNorm(every=7), causal=Causal(every=5)), 7),
    ],
)
def test_how_often_weights_are_brought_up_to_date(weights, every):
    assert weights.rebalance_every == every
    stages = stages_of(replace(NETWORK, weights=weights))
    assert [stage.rebalance_every for stage in stages] == [every, every]


def test_points_are_chosen_as_asked():
    assert Drawn(adaptive=None).adaptivity == Adaptivity(1, 1.0, 1.0)
    chosen = Drawn(adaptive=ResidualAdaptive(4, 2.0, 0.5))
    assert chosen.adaptivity == Adaptivity(4, 2.0, 0.5)
    (stage,) = stages_of(replace(SCATTERED, points=chosen))
    assert stage.adaptivity == chosen.adaptivity
    (stage,) = stages_of(LATTICE)
    assert stage.adaptivity == Adaptivity(1, 1.0, 1.0)


def test_a_limit_of_time_joins_the_other_stops():
    assert Stopping(1e-3, 1e-9, 4).stops(60.0) == Stops(60.0, 1e-3, 1e-9, 4)
    assert Stopping().stops(None) == Stops()


def test_the_steps_of_all_stages():
    assert NETWORK.steps == 40


def posed(chosen, statement):
    model = chosen.model.build(chosen.inputs(statement), jax.random.key(0))
    _, assemble = flatten(model)
    return chosen.pose(statement, assemble, "float64")


@pytest.mark.usefixtures("x64")
def test_what_is_trained_is_what_was_chosen():
    weights = Weights(2.0, 3.0, 4.0, 5.0, GradientNorm(0.5), Causal(4, (0.3,)))
    trained, reported = posed(replace(NETWORK, boundary=Penalty(), weights=weights), HEAT)
    assert trained is reported
    assert [term.name for term in trained.terms] == ["interior", "initial", "dirichlet"]
    assert [term.weight for term in trained.terms] == [2.0, 3.0, 4.0 * 5.0]
    samples = trained.draw(jax.random.key(0))
    assert [len(samples[term.name].points) for term in trained.terms] == [64, 16, 16]
    assert trained.causality == Causal(4, (0.3,)).causality
    assert trained.weighting.balance == GradientNorm(0.5).balance


@pytest.mark.usefixtures("x64")
def test_points_on_a_grid_cover_the_image_behind_walls():
    """What is trained is the doubled problem, what is reported the one that was stated."""
    trained, reported = posed(replace(LATTICE, boundary=Reflected()), HEAT)
    assert trained is not reported
    assert (trained.statement, reported.statement) == (HEAT.reflected, HEAT)
    points = np.asarray(trained.draw(jax.random.key(0))["interior"].points)
    assert points.shape == (3 * 8, 2)
    assert points[:, 1].max() > 1, "behind the wall"
    both = posed(LATTICE, WAVES)
    assert both[0] is both[1], "what is periodic has no walls"


def test_stages_of_a_chain_with_too_few_steps_to_share_are_left_out():
    chain = StackedPINN(width=4, levels=2)
    model = chain.build(Lifted().inputs(HEAT), jax.random.key(0))
    chosen = replace(NETWORK, model=chain, in_turn=True, stages=(Adam(2), SSBroyden(7)))
    stages = chosen.make_stages(model)
    assert [(s.name, s.part, s.steps) for s in stages] == [("ssbroyden", k, 2) for k in (1, 2, 3)]
    with pytest.raises(UserError, match="among 3 networks, and no stage has as many"):
        replace(chosen, stages=(Adam(2), SSBroyden(1))).make_stages(model)
