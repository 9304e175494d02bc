"""Which estimate of the error of a window follows its true error, on first windows of three lengths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from hyrespinn.experiments.monitor import Monitor
from hyrespinn.experiments.presets import configure
from hyrespinn.experiments.solve import Session
from hyrespinn.experiments.stages import make_stages
from hyrespinn.losses.relative_residual import relative_residual
from hyrespinn.problems import problem_named
from hyrespinn.references import reference_of
from hyrespinn.training.adaptive_windows import window_error
from hyrespinn.training.loop import Trainer, objective_scale
from hyrespinn.training.records import Silent
from hyrespinn.training.windows import FixedWindows, Window


class Rows(Silent):
    """Keeps the history."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def append(self, row: Any) -> None:
        self.rows.append(dict(row))


def estimates(name: str, seed: int, size: float) -> Iterator[dict[str, Any]]:
    """Every 50 of ``size`` steps: three estimates beside the true error."""
    with jax.enable_x64(True):
        problem = problem_named(name)()
        reference = reference_of(problem, print)
        assert reference is not None
        config = configure(problem, seed=seed, preset="general")
        train = replace(config.train, adam_steps=300, ssbroyden_steps=int(size or 150))
        session = Session(replace(config, train=train), progress=False)
        key = jax.random.key(seed)
        theta, assemble = session._model(key)
        objective = session._objective(assemble)
        true_error = Monitor(objective, reference)

        @jax.jit
        def squares(theta: Any, context: Any) -> Any:
            samples = objective.draw(key, context)
            loss = objective.value(theta, samples, context)
            scale = objective_scale(objective, theta, key, context)
            return loss / scale, window_error(objective, theta, context, key)

        def monitor(theta: Any, context: Any, stretch: Any) -> dict[str, float]:
            share, added = squares(theta, context)
            residual = relative_residual(objective, [(theta, context)])
            return {
                **true_error(theta, context, stretch),
                "root of the loss over that of zero": float(np.sqrt(share)),
                "relative residual": next(iter(residual.values())),
                "window_error": float(added),
            }

        begin, end = problem.domain.bounds[0]
        for share in (1, 1 / 4, 1 / 16):
            length = share * (end - begin)
            kept = Rows()
            windows = FixedWindows((Window(begin, begin + length, length),))
            stages = make_stages(train, assemble(theta))
            Trainer(objective, stages, key, store=kept, monitor=monitor, windows=windows).run(theta)
            for row in kept.rows:
                yield {"problem": name, "seed": seed, "length": length, **row}
