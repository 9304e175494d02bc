"""Numbers of parameters by formula, and networks of a given number of parameters."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from itertools import pairwise

import jax
import numpy as np
import pytest
from hyrespinn.errors import UserError
from hyrespinn.models import MODELS, Inputs, match_parameters, settings_from_json, tolerance
from hyrespinn.models.parameters import flatten

BOUNDS = ((0.0, 1.0), (-1.0, 3.0))
KEY = jax.random.key(3)
TARGETS = [600, 1500, 3000, 9999, 10_000, 14_248, 17_283, 75_000, 727_171]


def spread(count, rng):
    return rng.uniform(*np.transpose(BOUNDS), (count, 2))


def inputs(outputs=1, periodic=(False, True)):
    return Inputs(BOUNDS, periodic, outputs, 4, spread, spread)


def variants(base, changes):
    """The base settings with each change alone, and with each neighbouring two together."""
    pairs = [{**a, **b} for a, b in pairwise(changes)]
    return [{**base, **change} for change in [{}, *changes, *pairs]]


SHARED = [
    {"fourier": None},
    {"factorised": True},
    {"fourier": 12},
    {"factorised": False},
    {"fourier": 12, "train_fourier": False},
    {"depth": 1},
    {"fourier": 0},
]
LAST = [{"last_width": 3}, {"depth": 1}, {"last_width": 9}]
CHANGES = {
    "pinn": [*SHARED, *LAST],
    "respinn": [*SHARED, *LAST],
    "stackedpinn": [*SHARED, *LAST, {"levels": 1}, {"depth": 3}],
    "expertpinn": SHARED,
    "piratenet": [
        {"last_width": 3},
        {"factorised": False},
        {"blocks": 3},
        {"train_fourier": False},
        {"last_width": 5},
    ],
    "hyrespinn": [
        {"distance": "isotropic"},
        {"blocks": 3},
        {"distance": "full"},
        {"train_centers": False},
        {"fourier": 12},
        {"branches": "rbf"},
        {"fourier": None},
        {"branches": "dnn"},
        {"dnn": "modified"},
        {"fourier": 12, "train_fourier": False},
        {"dnn": "modified-rwf"},
        {"depth": 0},
        {"dnn": "mlp-rwf"},
        {"head_depth": 2},
    ],
}
SMALL = {name: {"width": 4} for name in MODELS} | {
    "hyrespinn": {"width": 4, "centers": 4, "depth": 1}
}
CASES = [(n, s) for n, changes in CHANGES.items() for s in variants(SMALL[n], changes)]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("outputs", "periodic"), [(1, (False, False)), (2, (True, False))], ids=str
)
def test_the_count_is_that_of_the_network(name, outputs, periodic):
    """Trained arrays only: fixed centres and fixed frequencies are no parameters."""
    given = inputs(outputs, periodic)
    for settings in [s for n, s in CASES if n == name]:
        config = MODELS[name](**settings, harmonics=2 if any(periodic) else 1)
        assert config.count(given) == size_of(config, given), settings


def size_of(config, given):
    """The size of the built network; its values are needed only where centres depend on them."""

    def parameters(key):
        return flatten(config.build(given, key))[0]

    if isinstance(config, MODELS["hyrespinn"]):
        return parameters(KEY).size
    return jax.eval_shape(parameters, KEY).size


DEEP = {
    "hyrespinn": [{"blocks": b} for b in (1, 3)],
    "pinn": [{"depth": d} for d in (3, 5, 11)],
    "respinn": [{"depth": d} for d in (3, 5, 11)],
    "expertpinn": [{"depth": d} for d in (2, 5, 11)],
    "stackedpinn": [{"levels": n} for n in (1, 2, 5)],
    "piratenet": [{"blocks": b} for b in (1, 3)],
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("outputs", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_targets_are_reached(name, outputs):
    """Within tolerance; only width and fine knob differ, and the knob only where it must."""
    given = inputs(outputs)
    for settings in DEEP[name]:
        for target in TARGETS:
            config = MODELS[name](**settings)
            found = match_parameters(config, target, given)
            case = f"{settings}, {target}: {found}"
            assert abs(found.count(given) - target) <= tolerance(target) * target, case
            fine = config.knob(given).name
            untouched = {"width": config.width, fine: getattr(config, fine)}
            assert replace(found, **untouched) == config, case
            alone = by_width(config, given, found.width)
            if getattr(found, fine) == getattr(config, fine):
                nearest = min(alone, key=lambda count: abs(count - target))
                assert abs(found.count(given) - target) == abs(nearest - target), case
            else:
                assert all(abs(c - target) > tolerance(target) * target for c in alone), case


def by_width(config, given, near):
    """The counts of all possible widths around one, with the fine knob as given."""
    step = 2 if config.fourier is None else 1
    first = max(step, (near - 8) // 2 * 2)
    return [replace(config, width=w).count(given) for w in range(first, near + 9, step)]


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("pinn", 1500),
        ("respinn", 1500),
        ("stackedpinn", 1500),
        ("expertpinn", 600),
        ("hyrespinn", 600),
        ("hyrespinn", 1500),
        ("piratenet", 600),
        ("piratenet", 3000),
    ],
)
def test_the_knob_is_turned_as_little_as_possible(name, target):
    """No other width with a smaller change of the knob is within tolerance, by trying them all."""
    given = inputs()
    config = MODELS[name](**DEEP[name][-1])
    found = match_parameters(config, target, given)
    knob = config.knob(given)
    assert getattr(found, knob.name) != getattr(config, knob.name)

    def change(one):
        return abs(getattr(one, knob.name) - replace(config, width=one.width).knob(given).value)

    for width in range(1, found.width + 9):
        if width % replace(config, **{knob.name: knob.smallest}).width_step:
            continue
        sized = replace(config, width=width)
        for setting in range(knob.smallest, 80, knob.step):
            other = replace(sized, **{knob.name: setting})
            if abs(other.count(given) - target) <= tolerance(target) * target:
                assert change(other) >= change(found), other


@pytest.mark.parametrize("name", MODELS)
def test_a_matched_network_is_built_and_rebuilt(name):
    given = inputs(2)
    config = match_parameters(MODELS[name](**DEEP[name][-1]), 900, given)
    again = settings_from_json(name, json.loads(json.dumps(asdict(config))))
    assert again == config
    assert size_of(again, given) == config.count(given)
    assert abs(config.count(given) - 900) <= 45


def test_tolerance():
    assert [tolerance(n) for n in (1, 9_999, 10_000, 10**6)] == [0.05, 0.05, 0.02, 0.02]


@pytest.mark.parametrize("name", MODELS)
def test_a_target_below_the_smallest_network(name):
    given, config = inputs(), MODELS[name]()
    with pytest.raises(UserError, match="the smallest has") as error:
        match_parameters(config, 5, given)
    smallest = int(str(error.value).split("smallest has ")[1].split(".")[0])
    assert abs(match_parameters(config, smallest, given).count(given) - smallest) < 0.05 * smallest


def test_steps_that_are_too_wide():
    """Without a knob a deep, narrow network has nothing in between; the message says what it has."""
    config = MODELS["expertpinn"](depth=11, fourier=0)
    with pytest.raises(UserError, match=r"1,500 parameters within 5%: the nearest has 1,608"):
        match_parameters(config, 1500, inputs())


@dataclass(frozen=True)
class Foreign:
    width: int = 3


@dataclass(frozen=True)
class Counted:
    """A foreign model that says its size, and nothing else."""

    width: int = 3

    def count(self, inputs):
        return 10 * self.width


@dataclass(frozen=True)
class Stuck(Counted):
    def count(self, inputs):
        return 10


def test_foreign_settings():
    with pytest.raises(UserError, match="Foreign has no count"):
        match_parameters(Foreign(), 100, inputs())
    assert match_parameters(Counted(), 1000, inputs()) == Counted(width=100)
    with pytest.raises(UserError, match="stays below 1,000 whatever the width"):
        match_parameters(Stuck(), 1000, inputs())
    with pytest.raises(UserError, match="must be at least 1, not 0"):
        match_parameters(Counted(), 0, inputs())
