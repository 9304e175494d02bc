"""The verdict on a run: whether it is solved, and if not, what limits it and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ..estimate import Estimate
from ..problems.checks import Caution
from ..training.march import Outcome
from .config import RunConfig

Judgement = Literal["solved", "unresolved", "stopped", "failed"]
GROWTH = 100.0
"""An error that has become so many times as large in the second half of time has grown by itself."""
OUT_OF_STEPS = ("completed", "time_limit", "stalled", "unconverged")
"""How optimisers end that might have gone on."""


@dataclass(frozen=True)
class Verdict:
    """A judgement, with what is to be said about it."""

    judgement: Judgement
    cautions: tuple[Caution, ...] = ()


def judge(config: RunConfig, outcome: Outcome, estimate: Estimate | None) -> Verdict:
    """The estimated error against the tolerance; the reference takes no part in it.

    A run that reached its time limit with a good solution of all of the time is solved.
    """
    if outcome.status == "diverged":
        return Verdict("failed", (Caution("diverged", "The run diverged.", outcome.message),))
    if outcome.status == "interrupted" or not outcome.complete:
        return Verdict("stopped")
    if estimate is None:
        return Verdict("unresolved", (_not_estimated(config),))
    if estimate.unique and estimate.largest <= config.tolerance:
        return Verdict("solved")
    if outcome.status == "time_limit":
        return Verdict("stopped", tuple(_limits(config, outcome, estimate)))
    return Verdict("unresolved", tuple(_limits(config, outcome, estimate)))


def _not_estimated(config: RunConfig) -> Caution:
    if config.preset == "smoke":
        text = "A smoke run shows that a problem runs; its error is not estimated."
        return Caution("not-estimated", text, "Take --preset fast.")
    text = "The error could not be estimated."
    return Caution("not-estimated", text, "Compare with --preset accurate or another seed.")


def _limits(config: RunConfig, outcome: Outcome, estimate: Estimate) -> Iterator[Caution]:
    """What limits a solution that is not good enough, the most likely cause first."""
    place = ", ".join(f"{name} = {value:.3g}" for name, value in estimate.worst.items())
    if not estimate.unique:
        yield Caution(
            "not-unique",
            "The equations hardly notice some large change of the solution: there is no unique "
            "solution, or none at all.",
            "Look for a missing condition, data that contradict each other, or a resonance.",
        )
        return
    first, last = _halves(estimate)
    if first > 0 and last > GROWTH * first:
        yield Caution(
            "growth",
            f"The error grows {last / first:.0e}-fold in the second half of time, whatever caused it "
            "at first.",
            "Take --preset accurate; an ill-posed or chaotic problem has a horizon beyond which "
            "nothing is accurate.",
        )
    if outcome.status in OUT_OF_STEPS and config.method != "collocation":
        yield Caution(
            "optimiser",
            f"The optimiser had more to gain when it ended ({outcome.message or outcome.status}).",
            "Give it more steps or time (--preset accurate, or resume the run).",
        )
        return
    yield Caution(
        "resolution",
        f"The model is too coarse: the error is largest near {place}.",
        "Take --preset accurate or more kernels (hyrespinn list --keys shows the setting), or, for a "
        "layer or shock, coordinates that stretch it.",
    )


def _halves(estimate: Estimate) -> tuple[float, float]:
    """The largest error of a part in either half of time."""
    sizes = [max(part.values()) for part in estimate.parts]
    middle = len(sizes) // 2
    return (max(sizes[:middle], default=0.0), max(sizes[middle:], default=0.0))
