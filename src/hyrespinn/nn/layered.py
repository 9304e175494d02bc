"""The settings of networks that are hidden layers one after the other, with skips or without."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass

from .inputs import Inputs
from .mlp import mlp_count
from .settings import Knob, Settings, at_least, check_shared


@dataclass(frozen=True)
class LayeredSettings(Settings, ABC):
    """``depth`` hidden layers; ``last_width`` is the width of the last one, 0 for the same."""

    width: int = 32
    depth: int = 3
    last_width: int = 0
    fourier: int | None = 0
    factorised: bool = False

    def check(self) -> None:
        check_shared(self, "depth")
        at_least(self, 0, "last_width")

    def count(self, inputs: Inputs) -> int:
        self.check()
        sizes = self.seen(inputs), inputs.outputs, self.width, self.depth
        return self.fourier_count(inputs) + mlp_count(*sizes, self.factorised, self.last_width)

    def knob(self, inputs: Inputs) -> Knob:
        return Knob("last_width", self.last_width or self.width, inputs.outputs)
