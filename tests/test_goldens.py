"""The methods choose what they chose, and train as they did, to rounding."""

from __future__ import annotations

import json

import pytest

import goldens

KNOWN = json.loads(goldens.FILE.read_text())
SAMPLE = {
    "heat-1d/network/smoke/0", "poisson-2d/collocation/fast/1", "burgers/collocation/fast/0",
    "advection/network/fast/1", "allen-cahn-dirichlet/paper/full/0",
    "darcy-2d-neumann/network/fast/0/respinn",
}  # fmt: skip


def test_all_are_there():
    assert set(KNOWN) == set(goldens.names())


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n in SAMPLE else pytest.mark.slow) for n in goldens.names()],
)
def test_a_golden_holds(name):
    assert not list(goldens.differences(KNOWN[name], goldens.probe(name)))


def test_differences_are_seen():
    one = {"first": {"total": 1.0}, "stages": [["adam", 5]]}
    assert not list(
        goldens.differences(one, {"first": {"total": 1 + 1e-9}, "stages": [["adam", 5]]})
    )
    two = {"first": {"total": 1.1}, "stages": [["adam", 6]]}
    assert len(list(goldens.differences(one, two))) == 2
