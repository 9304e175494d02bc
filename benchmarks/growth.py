"""Does growing by a block help? One block, two blocks, and one grown to two, at the same cost.

The new block's last layers are zero and the linear map behind it absorbs the factor 1−φ(β), so the
function stays the same while gradients flow. A cost is in seconds of the processor, which other
programs on the machine change less than the time of day.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from hyrespinn.experiments.monitor import Monitor
from hyrespinn.experiments.presets import configure
from hyrespinn.experiments.solve import Session
from hyrespinn.experiments.stages import make_stages
from hyrespinn.models import initialise
from hyrespinn.models.parameters import flatten
from hyrespinn.problems import problem_named
from hyrespinn.references import reference_of
from hyrespinn.training.loop import Progress, Stops, Trainer
from hyrespinn.training.records import Clock, Silent
from hyrespinn.training.windows import WHOLE, FixedWindows, Window

SIZE = 12
"""Width and number of centres: small, so that one block is soon at the end of its wits."""
FIRST_WINDOW = {"korteweg-de-vries": FixedWindows((Window(0.0, 0.25, 0.25),))}
"""Where the whole of time is too much for a short training, its beginning."""


class ProcessorClock(Clock):
    """Counts what the processor does, not what the clock on the wall shows."""

    @contextmanager
    def measure(self, what: Any) -> Iterator[None]:
        begin = time.process_time()
        try:
            yield
        finally:
            setattr(self, what, getattr(self, what) + time.process_time() - begin)


class LastState(Silent):
    """Keeps the state with which a training ended."""

    state: Any = None

    def checkpoint(self, state: Any, meta: Any) -> None:
        self.state = jax.tree.map(jnp.copy, state)


class Trial:
    """A problem with its reference, to be trained in several ways."""

    def __init__(self, name: str, seed: int):
        self.problem = problem_named(name)()
        self.windows = FIRST_WINDOW.get(name, WHOLE)
        self.reference = reference_of(self.problem, print)
        self.seed = seed

    def session(self, blocks: int) -> Session:
        config = configure(self.problem, seed=self.seed, preset="general")
        model = replace(config.model_config, blocks=blocks, width=SIZE, centers=SIZE)
        train = replace(config.train, ssbroyden_steps=10**6, relative_target=0.0)
        return Session(replace(config, model_config=model, train=train), progress=False)

    def train(
        self, session: Session, assemble: Any, theta: Any, seconds: float, old: Any = None
    ) -> tuple[Any, dict[str, Any]]:
        """The last state and the row of the history that goes with it."""
        objective = session._objective(assemble)
        kept = LastState()
        trainer = Trainer(
            objective,
            make_stages(session.config.train, assemble(theta)),
            jax.random.fold_in(jax.random.key(self.seed), 1 if old is None else 7),
            stops=Stops(seconds),
            clock=ProcessorClock(),
            store=kept,
            monitor=Monitor(objective, self.reference),
            windows=self.windows,
        )
        restored = None
        if old is not None:  # copied, because the compiled code overwrites what it is given
            restored = jax.tree.map(jnp.copy, old), self._going_on(old), []
        outcome = trainer.run(theta, restored)
        error = next(v for k, v in trainer.row.items() if k.startswith("rel_l2"))
        return kept.state, {
            "n_params": int(theta.size),
            "steps": outcome.steps,
            "loss": trainer.losses["total"],
            "rel_l2": error,
        }

    def _going_on(self, state: Any) -> Progress:
        """The second stage, with new points before anything else."""
        steps = int(state.optimiser.steps)
        return Progress(stage=1, steps=steps, stage_steps=steps, next_round=steps)


def grown(session: Session, model: Any, key: Any) -> tuple[Any, Any]:
    """The model with one more block, and the factor on the linear map behind it."""
    settings = session.config.model_config
    inputs = session.boundary.inputs(session.statement)
    rng = np.random.default_rng(5)
    entering = model.embedding(jnp.asarray(inputs.cover(32 * settings.centers, rng)))
    hidden = model.lift(entering)
    for block in model.blocks:
        entering = hidden = block(entering, hidden)
    centers = initialise.k_means(np.asarray(hidden), settings.centers, rng)
    block = replace(settings, phi_beta=0.1)._block(centers, key)
    last = block.dnn.layers[-1]
    block = eqx.tree_at(
        lambda b: (b.rbf.coefficients, b.dnn.layers[-1].weight, b.dnn.layers[-1].bias),
        block,
        (0 * block.rbf.coefficients, 0 * last.weight, 0 * last.bias),
    )
    factor = 1 / (1 - block.beta())
    larger = eqx.tree_at(
        lambda m: (m.blocks, m.head.layers[0].weight),
        model,
        ([*model.blocks, block], factor * model.head.layers[0].weight),
    )
    return larger, factor


def extended(session: Session, state: Any, assemble: Any, key: Any, keep: bool) -> tuple[Any, Any]:
    """The state of the optimiser on the grown network, with its matrix or a new one."""
    old = state.optimiser
    model = assemble(old.theta)
    larger, factor = grown(session, model, key)
    theta, assemble_larger = flatten(larger)
    n = old.theta.size
    # Where each old parameter has gone: the new block comes between the blocks and the head.
    head = sum(leaf.size for leaf in jax.tree.leaves(model.head))
    place = np.r_[0 : n - head, theta.size - head : theta.size]
    scale = np.ones(n)
    weight = model.head.layers[0].weight.size
    scale[n - head : n - head + weight] = float(factor)
    np.testing.assert_allclose(np.asarray(theta)[place], scale * np.asarray(old.theta), rtol=1e-14)
    matrix = jnp.eye(theta.size)
    if keep:
        known = np.asarray(old.inverse_hessian) * scale[:, None] * scale[None, :]
        larger_matrix = float(np.median(np.diag(known))) * np.eye(theta.size)
        larger_matrix[np.ix_(place, place)] = known
        matrix = jnp.asarray(larger_matrix)
    fresh = jnp.asarray(not keep)
    zero = jnp.zeros_like(theta)
    optimiser = old._replace(
        theta=theta, gradient=zero, direction=zero, inverse_hessian=matrix, fresh=fresh
    )
    return state._replace(optimiser=optimiser, context=moved(state.context, theta)), assemble_larger


def moved(context: Any, theta: Any) -> Any:
    """A first window has no network before it, so any parameters of the right size do."""
    if context.window is None:
        return context
    return context._replace(window=context.window._replace(before=theta))


def growth(name: str, seed: int, size: float) -> Iterator[dict[str, Any]]:
    """Rows of four ways to use ``size`` seconds of the processor."""
    seconds = size or 80.0
    with jax.enable_x64(True):
        trial, key = Trial(name, seed), jax.random.key(seed)
        about = {"problem": name, "seed": seed, "processor_seconds": seconds}
        two = trial.session(2)
        theta, assemble = two._model(key)
        yield {**about, "way": "two blocks", **trial.train(two, assemble, theta, seconds)[1]}
        one = trial.session(1)
        theta, assemble = one._model(key)
        half, row = trial.train(one, assemble, theta, seconds / 2)
        yield {**about, "way": "one block, half the time", **row}
        _, row = trial.train(one, assemble, half.optimiser.theta, seconds / 2, half)
        yield {**about, "way": "one block", **row}
        for keep in (True, False):
            state, larger = extended(one, half, assemble, jax.random.key(99), keep)
            _, row = trial.train(one, larger, state.optimiser.theta, seconds / 2, state)
            yield {**about, "way": f"grown, matrix {'extended' if keep else 'new'}", **row}
