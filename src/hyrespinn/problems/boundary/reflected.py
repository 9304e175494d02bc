"""Walls built into the solution by its own image behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from ...derivatives import Taylor, propagate
from ...models.inputs import Inputs
from ...models.layers import Series
from ..reflection import Reflection
from ..statement import Statement
from .lifted import Lifted
from .treatment import Ansatz, BoundaryTreatment, Imposed, Network, not_embedded


@dataclass(frozen=True)
class ReflectedAnsatz(Ansatz):
    """``u = ½ (N(x) ± N(x̃))`` with the image ``x̃``: the conditions at all walls hold exactly.

    The network must be periodic on twice the length.
    """

    reflections: tuple[Reflection, ...]

    def __call__(self, network: Network, x: Series) -> Series:
        total: Series | None = None
        for chosen in product((False, True), repeat=len(self.reflections)):
            images = [r for r, is_image in zip(self.reflections, chosen, strict=True) if is_image]
            part = propagate(network, _images(x, images))
            signed = part * (0.5 ** len(self.reflections) * np.prod([r.parity for r in images]))
            total = signed if total is None else total + signed
        assert total is not None
        return total


def _images(x: Series, reflections: Sequence[Reflection]) -> Series:
    """The images of points, each in the wall that is nearer: a point on a wall is its own image."""
    for reflection in reflections:
        along = (x.value if isinstance(x, Taylor) else x)[..., reflection.axis]
        middle = 0.5 * (reflection.lower + reflection.upper)
        shift = jnp.where(along < middle, 2 * reflection.lower, 2 * reflection.upper)
        unit = np.eye(x.shape[-1])[reflection.axis]
        x = x * jnp.asarray(1 - 2 * unit, x.dtype) + shift[..., None] * jnp.asarray(unit, x.dtype)
    return x


@dataclass(frozen=True)
class Reflected(BoundaryTreatment):
    """Walls with zero values or slopes are built in by the images of the solution behind them."""

    kind: ClassVar[str] = "reflected"
    embeds: ClassVar[bool] = True

    def impose(self, statement: Statement) -> Imposed:
        reflections = statement.required_reflections()
        left = [
            place
            for place in not_embedded(self, statement)
            if statement.conditions[place].wall(statement) is None
        ]
        return Imposed(ReflectedAnsatz(reflections), tuple(left))

    def inputs(self, statement: Statement) -> Inputs:
        """Those of the reflected problem."""
        return Lifted().inputs(statement.reflected)

    def on_lattice(self, statement: Statement) -> tuple[Statement, BoundaryTreatment]:
        """A lattice covers the image behind the walls too, and trains the network by itself, which is
        then odd or even as it should be."""
        return statement.reflected, Lifted()
