"""How far the groups of a network's parameters have gone: known changes, group by group."""

from __future__ import annotations

import equinox as eqx
import hyrespinn as hp
import jax
import pytest
from hyrespinn.models import Deep, HyResPINN, Moving
from hyrespinn.models.gates import SigmoidGate
from hyrespinn.problems.statement import state


def built(**fields):
    spec = HyResPINN(width=4, kernels=Moving(count=5), deep=Deep(depth=1), **fields)
    inputs = hp.discretise.Lifted().inputs(state(hp.problems.Poisson2D()))
    return spec.build(inputs, jax.random.key(0))


GROUPS = {"gates", "centres", "log_widths", "coefficients", "deep", "linear"}


def test_nothing_has_changed_at_first():
    network = built(blocks=2)
    changes = network.changes(network)
    assert set(changes) == GROUPS
    assert all(float(change) == 0 for change in changes.values())


@pytest.mark.parametrize(
    ("group", "where", "change", "size"),
    [
        ("centres", lambda n: n.blocks[0].rbf.centers, lambda c: c + 100.0, None),
        ("log_widths", lambda n: n.blocks[0].rbf.shapes, lambda s: jax.tree.map(lambda a: a + 0.3, s), 0.3),
        ("deep", lambda n: [layer.weight for layer in n.blocks[0].deep.layers], lambda w: 1.25 * w, 0.2),
    ],
)  # fmt: skip
def test_each_group_is_seen_by_itself(group, where, change, size):
    start = built()
    changes = eqx.tree_at(where, start, replace_fn=change).changes(start)
    others = GROUPS - {group}
    assert all(float(changes[name]) == 0 for name in others)
    if size is None:
        assert float(changes[group]) > 10  # spacings
    else:
        assert float(changes[group]) == pytest.approx(size, rel=1e-5)


def test_gates_count_by_their_values():
    start = built()
    gate = SigmoidGate()
    half = eqx.tree_at(
        lambda n: (n.blocks[0].alpha, n.blocks[0].beta), start, (gate.start(0.8), gate.start(0.11))
    )
    assert float(half.changes(start)["gates"]) == pytest.approx((0.3 + 0.1) / 2, rel=1e-5)


def test_other_models_are_one_group():
    inputs = hp.discretise.Lifted().inputs(state(hp.problems.Poisson2D()))
    network = hp.models.PINN(width=3, depth=1).build(inputs, jax.random.key(0))
    twice = jax.tree.map(lambda a: 2 * a if eqx.is_inexact_array(a) else a, network)
    assert set(twice.changes(network)) == {"parameters"}
    # Nine weights are doubled, four biases are zero and stay.
    assert float(twice.changes(network)["parameters"]) == pytest.approx(0.5)
