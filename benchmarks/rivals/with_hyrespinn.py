"""hyrespinn's worker.

``step``: an Adam stage on a problem without boundary conditions, as training runs it: many steps
in one compiled loop, with fresh points drawn every step (the others keep theirs). ``ssbroyden``:
the SSBroyden stage on the shared points. ``accuracy``: ``hyrespinn.solve(problem,
method="network")`` as it stands; its monitor is asked for the error with the clock stopped.
"""

from __future__ import annotations

import sys
from typing import Any

import cases
import equinox as eqx
import hyrespinn as hp
import jax
import jax.numpy as jnp
import protocol
from hyrespinn.geometry.sampling import sampler_named
from hyrespinn.losses.objective import Objective
from hyrespinn.losses.terms import Counts, Samples, Sampling, Weights
from hyrespinn.models import PINN
from hyrespinn.models.parameters import cast, flatten
from hyrespinn.problems.boundary import Lifted
from hyrespinn.problems.statement import state
from hyrespinn.run import session as running
from hyrespinn.training.stage import Stage

CHUNK = 100


class AllenCahn(hp.problems.AllenCahnPeriodic):
    """Allen–Cahn with its initial condition alone."""

    def conditions(self) -> list[Any]:
        return super().conditions()[:1]


class KuramotoSivashinsky(hp.problems.KuramotoSivashinsky):
    """Kuramoto–Sivashinsky with its initial condition alone."""

    def conditions(self) -> list[Any]:
        return super().conditions()[:1]


PROBLEMS = {"allen-cahn": AllenCahn, "kuramoto-sivashinsky": KuramotoSivashinsky}


def with_weights(model: Any, size: cases.Size, bounds: Any) -> Any:
    """The network with the shared weights; it scales its inputs to [−1, 1], which is undone."""
    layers = [(jnp.asarray(w), jnp.asarray(b)) for w, b in cases.weights(size)]
    lower, upper = (jnp.asarray(side, size.precision) for side in zip(*bounds, strict=True))
    half = (upper - lower) / 2
    first, bias = layers[0]
    layers[0] = half[:, None] * first, bias + (half + lower) @ first
    arrays = [array for layer in layers for array in layer]
    return eqx.tree_at(
        lambda m: [array for layer in m.mlp.layers for array in layer.linear_leaves()],
        model,
        arrays,
    )


def prepare(name: str, size: cases.Size) -> tuple[Objective, Any, Any]:
    """The objective, the first parameters and the shared points."""
    problem = PROBLEMS[name]()
    config = PINN(width=size.width, depth=size.depth)
    model = config.build(Lifted().inputs(state(problem)), jax.random.key(0))
    model = with_weights(cast(model, size.precision), size, problem.domain.bounds)
    theta, assemble = flatten(model)
    assert theta.size == size.parameters
    objective = Objective(
        state(problem),
        assemble,
        sampling=Sampling(
            Counts(size.residual, size.initial, 1),
            sampler_named("kronecker"),
            jnp.dtype(size.precision),
        ),
        weights=Weights(1.0, 1.0, 1.0),
    )
    inside, first, _ = cases.points(name, size)
    samples = {"interior": Samples(jnp.asarray(inside)), "initial": Samples(jnp.asarray(first))}
    assert {term.name for term in objective.terms} == set(samples)
    return objective, theta, samples


def about(objective: Objective, theta: Any, samples: Any, drawn: Any) -> dict[str, Any]:
    return {
        "parameters": int(theta.size),
        "first loss": float(jax.jit(objective.value)(theta, samples)),
        "residual points": drawn["interior"].points.shape[0],
        "initial points": drawn["initial"].points.shape[0],
        "versions": protocol.versions("hyrespinn", "jax", "jaxlib"),
    }


def step(channel: protocol.Channel, name: str) -> None:
    objective, theta, samples = prepare(name, cases.STEP)
    batch = cases.STEP.residual
    stage = Stage(hp.optim.Adam(10**9, batch, rate=1e-3, warmup=0, decay=1.0, decay_steps=1000))
    start = jax.jit(lambda t, k, c: stage.start(objective, t, k, c))
    box = {"state": start(theta, jax.random.key(1), objective.context())}
    told = about(objective, theta, samples, box["state"].samples)
    run = jax.jit(lambda s, n: stage.run(objective, s, n), donate_argnums=0)

    def advance() -> int:
        box["state"] = jax.block_until_ready(run(box["state"], jnp.asarray(CHUNK)))
        return CHUNK

    protocol.take_turns(channel, advance, **told)


def ssbroyden(channel: protocol.Channel) -> None:
    jax.config.update("jax_enable_x64", True)
    objective, theta, samples = prepare("allen-cahn", cases.SSBROYDEN)
    stage = Stage(hp.optim.SSBroyden(10**9, round_steps=10**9))

    def begin(theta: Any, key: Any) -> Any:
        started = stage.start(objective, theta, key, objective.context())._replace(samples=samples)
        system = stage.system(objective, started)
        return started._replace(optimiser=stage.optimiser.renew(system, started.optimiser))

    box = {"state": jax.jit(begin)(theta, jax.random.key(1))}
    told = about(objective, theta, samples, box["state"].samples)
    run = jax.jit(lambda s, n: stage.run(objective, s, n), donate_argnums=0)

    def advance() -> int:
        before = int(box["state"].optimiser.steps)
        box["state"] = jax.block_until_ready(run(box["state"], jnp.asarray(10)))
        assert not bool(box["state"].optimiser.failed)
        return int(box["state"].optimiser.steps) - before

    def more() -> dict[str, Any]:
        optimiser = box["state"].optimiser
        steps, evaluations = int(optimiser.steps), int(optimiser.evaluations)
        last_steps, last_evaluations = box.get("last", (0, 0))
        box["last"] = steps, evaluations
        return {
            "steps": steps,
            "loss": float(optimiser.value),
            "evaluations a step": (evaluations - last_evaluations) / (steps - last_steps),
        }

    while int(box["state"].optimiser.steps) < 100:
        advance()
    more()
    protocol.take_turns(channel, advance, more, **told)


def accuracy(channel: protocol.Channel, arguments: list[str]) -> None:
    options = protocol.accuracy_arguments(arguments)
    watch = protocol.Watch(options.begin, options.limit, options.target)
    seen: dict[str, Any] = {}

    class March(running.March):
        def __init__(self, *positional: Any, **named: Any):
            super().__init__(*positional, **named)
            seen["march"] = self

    class Monitor(running.Monitor):
        def __call__(self, theta: Any, context: Any, window: Any) -> dict[str, float]:
            errors: dict[str, float] = {}

            def measure() -> float:
                errors.update(super(Monitor, self).__call__(theta, context, window))
                return errors["rel_l2_u"]

            march = seen["march"]
            watch.record(march.run.progress.steps, measure)
            watch.compiled = march.watch.clock.compilation
            return errors

    running.March, running.Monitor = March, Monitor
    ending = "stopped by the benchmark"
    try:
        problem = hp.problems.problem_named(options.problem)()
        solution = hp.solve(problem, method="network", seed=options.seed, progress=False)
        ending = solution.result["message"] or solution.result["status"]
    except protocol.Over:
        pass
    watch.compiled = seen["march"].watch.clock.compilation
    channel.send(
        **watch.result(),
        setting='hyrespinn.solve(problem, method="network"), float64',
        ending=ending,
        versions=protocol.versions("hyrespinn", "jax", "jaxlib"),
    )


if __name__ == "__main__":
    talk = protocol.Channel()
    match sys.argv[1:]:
        case ["step", equation]:
            step(talk, equation)
        case ["ssbroyden"]:
            ssbroyden(talk)
        case ["accuracy", *rest]:
            accuracy(talk, rest)
