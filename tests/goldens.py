"""What the methods choose for every problem, the first losses, and the losses after a few steps.

``python tests/goldens.py`` compares all of them with ``goldens.json`` and says what differs;
``python tests/goldens.py --write`` makes the file anew. A change of the code's structure leaves all
as they are, to rounding; a change that is meant is listed where it is made.
"""

from __future__ import annotations

import argparse
import gc
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from hyrespinn.problems import PROBLEMS
from hyrespinn.run.config import configure
from hyrespinn.run.session import Session
from hyrespinn.training.march import March

FILE = Path(__file__).with_name("goldens.json")
STEPS = {"adam": 2, "ssbroyden": 2, "trust-region": 1, "gauss-newton": 1, "gauss-newton-cg": 1}
"""Steps of each stage after which the loss is looked at."""
ROUNDING = {"trust-region": 0.97, "gauss-newton": 1e-2, "gauss-newton-cg": 0.97}
"""By how much the loss after steps of some stages, and of those after them, may differ, relatively.
Conjugate gradients on nearly dependent kernels take another path with every other order of a sum: with and
without optimisation by the compiler their losses are up to eight times as large as each other. A long step
from a random start is made of directions that the rows hardly notice, in which rounding decides. Of both,
magnitudes are compared."""
TOO_LARGE = (
    "allen-cahn-periodic/paper/full",
    "grey-scott/paper/full",
    "kuramoto-sivashinsky/paper/full",
)
"""Their first fit of the last layer needs 38 GB, that of the last of them 21 GB."""
BASELINES = ("pinn", "respinn", "expertpinn", "stackedpinn", "piratenet")
RUNS = ("network/smoke", "network/fast", "collocation/fast", "collocation/accurate", "paper/full")


def names() -> list[str]:
    """Every problem with every method and two seeds; the baselines on two problems."""
    plain = [f"{n}/{run}/{s}" for n in PROBLEMS for run in RUNS for s in (0, 1)]
    others = [
        f"{n}/{run}/0/{m}"
        for m in BASELINES
        for n in ("allen-cahn-periodic", "darcy-2d-neumann")
        for run in ("network/fast", "paper/full")
    ]
    return [
        name
        for name in (*plain, *others)
        if not (name.startswith(TOO_LARGE) and name.endswith(("/0", "/1", "piratenet")))
    ]


def probe(name: str) -> dict[str, Any]:
    """The golden of ``problem/method/preset/seed``, perhaps with ``/model``."""
    problem, method, preset, seed, *model = name.split("/")
    config = configure(
        PROBLEMS[problem](),
        method=method,
        preset=preset,
        seed=int(seed),
        model=model[0] if model else None,
    )
    session = Session(config, progress=False, reference=False)
    with jax.enable_x64(True):
        theta, training, _ = session.training()
        return _measured(March(training), theta, jax.random.key(config.seed))


def _measured(march: March, theta: jax.Array, key: jax.Array) -> dict[str, Any]:
    training = march.training
    objective, windows = training.objective, getattr(training.windows, "windows", (None,))
    context = march.context_of(march.window, (), theta)
    found: dict[str, Any] = {
        "n_params": int(theta.size),
        "stages": [[stage.name, stage.steps] for stage in training.stages],
        "windows": [len(windows), *([w.start, w.end, w.length] for w in windows[:2] if w)],
        "start": training.start if windows[0] else None,
    }
    if training.prepare is not None:
        theta = jax.jit(training.prepare)(theta, context)
    samples = jax.jit(objective.draw)(jax.random.fold_in(key, 3), context)
    found["terms"] = {
        term.name: [
            int(samples[term.name].points.shape[0]),
            *(float(context.weights[n]) for n in term.names),
        ]
        for term in objective.terms
    }
    found["theta"] = float(jnp.linalg.norm(theta))
    losses = jax.jit(objective.losses)(theta, samples, context)
    found["first"] = {name: float(loss) for name, loss in losses.items()}
    found["after"] = []
    for index, stage in enumerate(training.stages):
        march.run.progress.stage = index
        count = jnp.asarray(STEPS[stage.name])
        start, renew, run = (
            jax.jit(lambda *a, f=f: f(objective, *a)) for f in (stage.start, stage.renew, stage.run)
        )
        state = run(renew(start(theta, march.stage_key(), context)), count)
        theta, context = state.optimiser.theta, state.context
        row = [stage.name, int(count), float(state.optimiser.value)]
        # Rounding decides how far coefficients of nearly dependent kernels go, not what they make.
        moved = () if stage.name.startswith("gauss-newton") else (float(jnp.linalg.norm(theta)),)
        found["after"].append([*row, *moved])
    return found


def differences(golden: Any, found: Any, where: str = "", rounding: float = 1e-6) -> Iterator[str]:
    """Where two goldens differ by more than rounding."""
    if isinstance(golden, dict) and isinstance(found, dict):
        for key in golden.keys() | found.keys():
            if key in golden and key in found:
                yield from differences(golden[key], found[key], f"{where}/{key}", rounding)
            else:
                yield f"{where}/{key} is in one of them alone"
    elif isinstance(golden, list) and isinstance(found, list) and len(golden) == len(found):
        stage = str(golden[0]) if golden else ""
        for i, pair in enumerate(zip(golden, found, strict=True)):
            rounding = max(rounding, ROUNDING.get(stage, 0.0))
            yield from differences(*pair, f"{where}[{i}]", rounding)
            if isinstance(pair[0], list) and pair[0]:  # what follows begins where this stage ended
                stage = str(pair[0][0])
    elif isinstance(golden, float) and isinstance(found, float):
        # A loss that is left of nearly dependent kernels is made of rounding errors.
        if abs(golden - found) > rounding * max(abs(golden), abs(found)) + 1e-14:
            yield f"{where}: {golden!r} became {found!r}"
    elif golden != found:
        yield f"{where}: {golden!r} became {found!r}"


def _write(known: dict[str, Any]) -> None:
    """One line for each, so that a change of one is a change of its line."""
    lines = [f"{json.dumps(n)}: {json.dumps(known[n])}" for n in names() if n in known]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="make the file anew")
    parser.add_argument("names", nargs="*", help="problem/method/preset/seed; default: all")
    options = parser.parse_args()
    known: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {}
    different = 0
    for name in options.names or names():
        found = probe(name)
        if options.write:
            known[name] = found
            _write(known)
        else:
            lines = list(differences(known.get(name), found))
            different += bool(lines)
            print(name, *(lines or ["the same"]), sep="\n  ", flush=True)
        jax.clear_caches()
        gc.collect()
    return min(different, 1)


if __name__ == "__main__":
    raise SystemExit(main())
