"""The rules by which presets look at a problem."""

from __future__ import annotations

import hyrespinn as hp
import pytest
from hyrespinn.experiments.presets import configure
from hyrespinn.experiments.rules import Traits, traits_of


class Beam(hp.Problem):
    """Of the fourth order in space, and of the second in time, which does not count."""

    domain = hp.TimeBox(t=(0.0, 1.0), x=(0.0, 1.0))
    fields = ("u",)

    def residual(self, u, p):
        return u.tt + 0.01 * u.xxxx

    def conditions(self):
        return [hp.Initial(0.0), hp.Initial(1.0, derivative="t"), hp.Dirichlet(0.0)]


@pytest.mark.parametrize(
    ("problem", "traits"),
    [
        (Beam(), Traits(time=True, order=4, dimension=2)),
        (hp.problems.Wave1D(), Traits(time=True, order=2, dimension=2)),
        (hp.problems.Darcy3DNeumann(), Traits(time=False, order=2, dimension=3)),
        (hp.problems.KortewegDeVries(), Traits(time=True, order=3, dimension=2)),
    ],
)
def test_traits_are_read_off_the_equation(problem, traits):
    assert traits_of(problem) == traits


@pytest.mark.parametrize("preset", ["fast", "accurate"])
def test_an_equation_of_ones_own_gets_its_windows(preset):
    config = configure(Beam(), preset=preset)
    assert config.train.windows == 20
    assert config.train.window_start == "continued"
    assert config.model_config.harmonics > 1
    whole = configure(hp.problems.Wave1D(), preset=preset)
    assert whole.train.windows == whole.model_config.harmonics == 1
    assert config.train.points < whole.train.points


def test_a_steady_problem_starts_with_soap():
    steady = configure(hp.problems.Poisson2D()).train
    moving = configure(hp.problems.Burgers()).train
    assert (steady.adam_rule, moving.adam_rule) == ("soap", "adam")
    assert steady.adam_steps < moving.adam_steps


def test_a_surface_gets_more_points_than_a_line():
    """The boundary of a body and the initial time of a plane against those of fewer dimensions."""
    plane = configure(hp.problems.Darcy2DDirichlet()).train
    body = configure(hp.problems.Darcy3DDirichlet()).train
    line, moving = configure(hp.problems.Burgers()).train, configure(hp.problems.GreyScott()).train
    assert body.boundary_points == 4 * plane.boundary_points
    assert moving.initial_points == 4 * line.initial_points
    assert body.points == 2 * plane.points


@pytest.mark.parametrize("preset", ["fast", "accurate"])
def test_a_steady_network_is_less_deep_in_the_plane(preset):
    depths = {
        name: configure(problem, preset=preset).model_config.depth
        for name, problem in {
            "plane": hp.problems.Poisson2D(),
            "body": hp.problems.Darcy3DNeumann(),
            "moving": hp.problems.Burgers(),
        }.items()
    }
    assert depths == {"plane": 1, "body": 2, "moving": 2}


def test_a_steady_problem_starts_with_wide_kernels():
    steady = configure(hp.problems.Poisson2D()).model_config
    moving = configure(hp.problems.Burgers()).model_config
    assert (steady.kernel, moving.kernel) == ("gaussian", "wendland-c4")
    assert steady.width_quantile > moving.width_quantile
