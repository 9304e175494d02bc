"""Numbers of parameters by formula, and networks of a given number of parameters."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import pairwise

import jax
import numpy as np
import pytest
from hyrespinn.errors import UserError
from hyrespinn.models import (
    MODELS,
    Deep,
    Factorisation,
    Fourier,
    Frequencies,
    HyResPINN,
    Inputs,
    KernelExpansion,
    Lattice,
    ModelSpec,
    Moving,
    Scattered,
    match_parameters,
    tolerance,
)
from hyrespinn.models.kernels import Full, Isotropic
from hyrespinn.models.parameters import flatten
from hyrespinn.settings import from_json, to_json

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


NETWORKS = [name for name in MODELS if name != "kernel-expansion"]
FACTORS = Factorisation()
SHARED = [
    {"fourier": Fourier()},
    {"factorisation": FACTORS},
    {"fourier": Fourier(features=12)},
    {"factorisation": None},
    {"fourier": Fourier(features=12, trained=False)},
    {"depth": 1},
    {"fourier": None},
]
LAST = [{"last_width": 3}, {"depth": 1}, {"last_width": 9}]
CHANGES = {
    "pinn": [*SHARED, *LAST],
    "respinn": [*SHARED, *LAST],
    "stackedpinn": [*SHARED, *LAST, {"levels": 1}, {"depth": 3}],
    "expertpinn": SHARED,
    "piratenet": [
        {"last_width": 3},
        {"factorisation": None},
        {"blocks": 3},
        {"fourier": Frequencies(trained=False)},
        {"last_width": 5},
    ],
    "hyrespinn": [
        {"kernels": Moving(4, distance=Isotropic())},
        {"blocks": 3},
        {"kernels": Moving(4, distance=Full())},
        {"deep": Deep(1, gated=True)},
        {"kernels": Moving(4, train_centers=False)},
        {"deep": Deep(1, fourier=Fourier(features=12))},
        {"kernels": Moving(4, train_shapes=False)},
        {"deep": None},
        {"blocks": 2},
        {"deep": Deep(2, width=3, fourier=Fourier())},
        {"kernels": None},
        {"deep": Deep(1, fourier=Fourier(features=12, trained=False), gated=True)},
        {"head_depth": 2},
        {"deep": Deep(0)},
        {"blocks": 3},
        {"deep": Deep(2, gated=True, factorisation=FACTORS)},
        {"kernels": None},
        {"deep": Deep(2, factorisation=FACTORS)},
    ],
}
SMALL = {name: {"width": 4} for name in NETWORKS} | {
    "hyrespinn": {"width": 4, "kernels": Moving(4), "deep": Deep(1)}
}
CASES = [(n, s) for n, changes in CHANGES.items() for s in variants(SMALL[n], changes)]


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize(
    ("outputs", "periodic"), [(1, (False, False)), (2, (True, False))], ids=str
)
def test_the_count_is_that_of_the_network(name, outputs, periodic):
    """Trained arrays only: fixed centres and fixed frequencies are no parameters."""
    given = inputs(outputs, periodic)
    for settings in [s for n, s in CASES if n == name]:
        config = MODELS[name](**settings, harmonics=2 if any(periodic) else 1)
        assert config.count(given) == size_of(config, given), settings


@pytest.mark.parametrize("kernels", [Scattered(7), Lattice((3, 4))], ids=str)
def test_the_count_of_an_expansion_is_that_of_its_coefficients(kernels):
    given, spec = inputs(2, (False, True)), KernelExpansion(kernels)
    assert spec.count(given) == size_of(spec, given) == 2 * (kernels.number + 3 + 1)


def size_of(config, given):
    """The size of the built network; its values are needed only where centres depend on them."""

    def parameters(key):
        return flatten(config.build(given, key))[0]

    if isinstance(config, HyResPINN | KernelExpansion):
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


@pytest.mark.parametrize("name", NETWORKS)
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
            turned = setting(found, given)
            untuned = replace(config, width=found.width)
            assert found in (untuned, untuned.knob(given).turned(turned)), case
            alone = by_width(config, given, found.width)
            if found == untuned:
                nearest = min(alone, key=lambda count: abs(count - target))
                assert abs(found.count(given) - target) == abs(nearest - target), case
            else:
                assert all(abs(c - target) > tolerance(target) * target for c in alone), case


def setting(spec, given):
    """What the fine knob of a specification amounts to."""
    return spec.knob(given).value


def by_width(config, given, near):
    """The counts of all possible widths around one, with the fine knob as given."""
    step = config.width_step
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
    assert found != replace(config, width=found.width)

    def change(one):
        return abs(setting(one, given) - setting(replace(config, width=one.width), given))

    for width in range(1, found.width + 9):
        knob = replace(config, width=width).knob(given)
        if width % knob.turned(knob.smallest).width_step:
            continue
        for tried in range(knob.smallest, 80, knob.step):
            other = knob.turned(tried)
            if abs(other.count(given) - target) <= tolerance(target) * target:
                assert change(other) >= change(found), other


@pytest.mark.parametrize("name", NETWORKS)
def test_a_matched_network_is_built_and_rebuilt(name):
    given = inputs(2)
    config = match_parameters(MODELS[name](**DEEP[name][-1]), 900, given)
    again = from_json(ModelSpec, json.loads(json.dumps(to_json(config))))
    assert again == config
    assert size_of(again, given) == config.count(given)
    assert abs(config.count(given) - 900) <= 45


def test_tolerance():
    assert [tolerance(n) for n in (1, 9_999, 10_000, 10**6)] == [0.05, 0.05, 0.02, 0.02]


@pytest.mark.parametrize("name", NETWORKS)
def test_a_target_below_the_smallest_network(name):
    given, config = inputs(), MODELS[name]()
    with pytest.raises(UserError, match="the smallest has") as error:
        match_parameters(config, 5, given)
    smallest = int(str(error.value).split("smallest has ")[1].split(".")[0])
    assert abs(match_parameters(config, smallest, given).count(given) - smallest) < 0.05 * smallest


def test_steps_that_are_too_wide():
    """Without a knob a deep, narrow network has nothing in between; the message says what it has."""
    config = MODELS["expertpinn"](depth=11, fourier=None)
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


@dataclass(frozen=True)
class Derived(ModelSpec):
    """One that derives from the package's own, and gives no formula for its size."""

    width: int = 3

    def build(self, inputs, key):
        return MODELS["pinn"](width=self.width, depth=1).build(inputs, key)


def test_foreign_specifications():
    with pytest.raises(UserError, match="The size of Foreign cannot be matched"):
        match_parameters(Foreign(), 100, inputs())
    assert match_parameters(Counted(), 1000, inputs()) == Counted(width=100)
    with pytest.raises(UserError, match="stays below 1,000 whatever the width"):
        match_parameters(Stuck(), 1000, inputs())
    with pytest.raises(UserError, match="must be at least 1, not 0"):
        match_parameters(Counted(), 0, inputs())


def test_a_size_without_a_formula_is_that_of_the_network():
    matched = match_parameters(Derived(), 301, inputs())
    assert matched == Derived(width=60)  # (3 + 1) 60 + 60 + 1
    assert matched.count(inputs()) == 301


def test_an_expansion_is_matched_by_its_number_of_kernels():
    spec = KernelExpansion(Scattered(10, overlap=2.0))
    matched = match_parameters(spec, 1000, inputs())
    assert matched == KernelExpansion(Scattered(1000 - 4, overlap=2.0))
    assert matched.count(inputs()) == 1000
    with pytest.raises(UserError, match="the smallest has 10"):
        match_parameters(spec, 3, inputs(2))
    with pytest.raises(UserError, match="The size of KernelExpansion cannot be matched"):
        match_parameters(KernelExpansion(Lattice()), 1000, inputs())
