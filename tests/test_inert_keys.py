"""Every key that ``list --keys`` shows has an effect: on the points, the parameters, the first loss,
the windows, the rounds, when the run stops, or on the program of a step."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import astuple
from typing import Any

import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyrespinn.run.config import configure, settings, with_settings
from hyrespinn.run.session import Session
from hyrespinn.settings import as_text
from hyrespinn.training.march import March

from helpers import TINY

SMALL = {k: v for k, v in TINY.items() if not k.startswith(("stages", "marching"))}
STAGES = {"stages": "adam(steps=40, batch=32), ssbroyden(steps=400, round_steps=15)"}
CASES: dict[str, dict[str, Any]] = {
    "network": {"problem": "heat-1d", "method": "network", "settings": SMALL | STAGES},
    "steady collocation": {"problem": "darcy-2d-neumann", "method": "collocation", "preset": "smoke"},
    "collocation in windows": {"problem": "heat-1d", "method": "collocation", "preset": "smoke"},
    "penalty, causal, windows": {
        "problem": "burgers",
        "method": "network",
        "settings": SMALL
        | {
            "boundary": "penalty", "weights.causal": "causal", "weights.balance": "ntk",
            "weights.causal.tolerances": "1, 2", "marching": "fixed", "marching.start": "warm",
            "stages": "soap(steps=40, batch=32), lm(steps=400, round_steps=7), lbfgs:900",
        },
    },
    "adaptive windows": {
        "problem": "advection",
        "method": "network",
        "model": "expertpinn",
        "settings": {"model.width": 8, "points.interior": 64, "marching": "adaptive"} | STAGES,
    },
    "paper": {
        "problem": "kuramoto-sivashinsky",
        "method": "paper",
        "preset": "smoke",
        "settings": SMALL | {"model.blocks": 2},
    },
    "trust region": {
        "problem": "heat-1d",
        "method": "network",
        "settings": SMALL
        | {"stages": "trust-region(steps=400, round_steps=15)", "marching": "whole"},
    },
    "chain": {
        "problem": "poisson-2d",
        "method": "network",
        "model": "stackedpinn",
        "settings": {"model.width": 6, "model.levels": 2, "points.interior": 64} | STAGES,
    },
}  # fmt: skip
for case in CASES.values():  # keys that a case does not have
    case["settings"] = {
        k: v
        for k, v in case.get("settings", {}).items()
        if case["method"] != "paper" or "adaptive" not in k
    }
QUICK = ("steady collocation",)


def made(case: dict[str, Any]):
    chosen = {k: v for k, v in case.items() if k != "problem"}
    return configure(hp.problems.PROBLEMS[case["problem"]](), **chosen)


def fingerprint(config: Any) -> str:
    """All that a training is made of, as far as it can be seen without training."""
    with jax.enable_x64(True):
        session = Session(config, progress=False, reference=False)
        theta, training, reported = session.training()
        for stage in training.stages:
            stage.check(training.objective, theta)
        march = March(training)
        context = march.context_of(march.window, (), theta)
        objective, key = training.objective, jax.random.key(3)
        _ = objective.statement.principal_part  # once, and not in the middle of a trace
        windows = [w for w in getattr(training.windows, "windows", ()) if w is not None]
        seen: list[Any] = [
            _digest(theta),
            _program(lambda k: objective.draw(k, context), key),
            _program(
                lambda t, x: reported.solution(t, context)(x),
                theta,
                jnp.zeros((3, len(session.statement.domain.bounds))),
            ),
            [(w.start, w.end, w.length) for w in windows] or str(training.windows),
            training.start,
            astuple(training.stops),
        ]
        if training.prepare is not None:
            seen.append(_program(lambda t: training.prepare(t, context), theta))
        for stage in training.stages:
            seen += [stage.name, stage.steps, [w.steps(stage.steps) for w in windows[:3]]]
            seen += [stage.round_length(n, stage.steps) for n in range(0, stage.steps, 5)]
            seen += [stage.rebalance_every, stage.optimiser.rounds, stage.optimiser.look_every]
            own = training.objective_of(stage)

            def start(t, k, c, stage=stage, own=own):
                return stage.start(own, t, k, c)

            two = jnp.asarray(2)
            shape = jax.eval_shape(start, theta, key, context)
            numbers = jax.tree.leaves((context.weights, context.parameters))
            seen.append([np.asarray(n).tolist() for n in numbers])
            seen.append(_program(start, theta, key, context))
            seen.append(_program(lambda x, s=stage, o=own: s.renew(o, x), shape))
            seen.append(_program(lambda x, s=stage, o=own: s.run(o, x, two), shape))
    return hashlib.sha256(json.dumps(seen, default=str).encode()).hexdigest()


def _digest(array: Any) -> str:
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        array = jax.random.key_data(array)
    return hashlib.sha256(np.asarray(array).tobytes()).hexdigest()


def _program(function: Any, *arguments: Any) -> str:
    """A hash of what is computed: the operations and the constants in them."""
    made = jax.make_jaxpr(function)(*arguments)
    text = re.sub(r"0x[0-9a-f]+", "", str(made))  # where functions are in memory
    return hashlib.sha256(f"{text} {[_digest(c) for c in made.consts]}".encode()).hexdigest()


def others(key: str, value: Any, config: Any) -> Iterator[str]:
    """Other values that a key may take, as texts."""
    kinds = {
        "model.kernels.kernel": ("gaussian", "wendland-c4", "matern52"),
        "model.kernels.distance": ("isotropic", "full"),
        "model.kernels": ("none", "lattice", "scattered"),
        "points.adaptive": ("none",),
        "weights.balance": ("none", "ntk", "gradient-norm"),
        "weights.causal": ("none", "causal"),
        "model.deep": ("none",),
        "model.deep.fourier": ("fourier", "none"),
        "model.fourier": ("fourier", "frequencies", "none"),
        "model.gates.gate": ("unconstrained", "sigmoid"),
        "model": ("pinn", "kernel-expansion"),
        "points.sampler": ("uniform",),
        "points": ("drawn", "grid"),
        "boundary": ("penalty", "lifted"),
        "marching": ("fixed", "whole"),
        "stages": ("lbfgs:20", "gauss-newton:5"),
        "initial_fit": ("equation", "initial"),
    }
    for kind in kinds.get(key, ()):
        if kind != as_text(value):
            yield kind
    yield from _other_values(value)
    if as_text(value) == "none":
        last = key.rpartition(".")[2]
        yield from ("gradient-norm", "causal", "residual-adaptive", last, "8", "0.5")


def _other_values(value: Any) -> Iterator[str]:
    match value:
        case bool():
            yield as_text(not value)
        case int():
            yield from (
                str(value + 1),
                str(value + 2),
                str(max(1, value // 2)),
                str(10 * value),
                "2",
            )
        case float():
            yield from (repr(value * 0.5), repr(value + 0.25), repr(value + 1.0), "0.5")
        case str():
            yield from (
                "new",
                "warm",
                "sin",
                "gelu",
                "tanh",
                "marquardt",
                "identity",
                "converged",
                "paper",
            )
        case tuple() if value and isinstance(value[0], int | float):
            yield as_text((*value[:-1], value[-1] * 2))
            yield as_text((*value, value[-1] * 2))


PARTS = 4
"""The keys of a case are dealt to so many tests, which can run beside each other."""


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in QUICK else [pytest.mark.slow]) for n in CASES]
)
def test_every_key_has_an_effect(name, part):
    config = made(CASES[name])
    before = fingerprint(config)
    assert fingerprint(made(CASES[name])) == before, "the same twice"
    keys = list(settings(config))[part::PARTS]
    assert not [key for key in keys if not has_effect(config, key, before)]


def has_effect(config: Any, key: str, before: str) -> bool:
    """Whether some other value of a key changes anything, or all of them are refused with a reason."""
    refused, accepted = False, False
    value = settings(config)[key]
    for other in others(key, value, config):
        if other == as_text(value):
            continue
        try:
            after = fingerprint(with_settings(config, {key: other}))
        except hp.UserError:
            refused = True
            continue
        if after != before:
            return True
        accepted = True
    return refused and not accepted
