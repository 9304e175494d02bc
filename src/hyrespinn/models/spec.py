"""What a specification of a model is: plain values from which a network is built."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
from jax import Array

from .checks import at_least, known_activation, refused
from .dense import Factorisation, MakeLayer, layer_maker
from .embeddings import Embedding
from .features import Features, Frequencies
from .inputs import Inputs
from .model import Model
from .parameters import flatten


class Knob(NamedTuple):
    """A field that changes the number of parameters in finer steps than the width does.

    ``value`` is what it amounts to now; it may take ``smallest``, ``smallest + step`` and so on, and
    ``turned(v)`` is the specification with ``v`` in its place.
    """

    value: int
    turned: Callable[[int], ModelSpec]
    smallest: int = 1
    step: int = 1


@dataclass(frozen=True)
class ModelSpec(ABC):
    """The specification of a model: a frozen dataclass of plain values and other such parts.

    A model of one's own derives from this and defines :meth:`build`; ``@register("name")`` gives it a
    name. With a field ``width`` it can be matched in size to others.
    """

    is_chain: ClassVar[bool] = False
    """Whether it builds a :class:`Chain`, whose networks can be trained in turn."""

    @abstractmethod
    def build(self, inputs: Inputs, key: Array) -> Model:
        """A freshly initialised network for a problem with these inputs."""

    def check(self) -> None:  # noqa: B027 - not abstract: most specifications are always possible
        """Refuse fields that do not go together."""

    def count(self, inputs: Inputs) -> int:
        """The number of trained parameters: of a network that is built, unless a formula is known."""
        return flatten(self.build(inputs, jax.random.key(0)))[0].size

    @property
    def width_step(self) -> int:
        """The width is a multiple of this."""
        return 1

    def knob(self, inputs: Inputs) -> Knob | None:
        """What tunes the number of parameters more finely than the width, if there is such a field."""
        return None


@dataclass(frozen=True)
class Layered(ModelSpec, ABC):
    """What the specifications of the baselines share.

    Args:
        width: The number of neurons in a hidden layer.
        activation: The function of the hidden layers.
        harmonics: The number of waves that stand for a periodic coordinate.
        fourier: Fourier features of the embedded point, which the network sees in place of it.
        factorisation: Random weight factorisation of its layers.
    """

    width: int = 24
    activation: str = "tanh"
    harmonics: int = 1
    fourier: Frequencies | None = None
    factorisation: Factorisation | None = None

    def check(self) -> None:
        at_least(self, 1, width=self.width, harmonics=self.harmonics)
        known_activation(self.activation)
        check_width(self, self.width, self.fourier)

    @property
    def width_step(self) -> int:
        return self.fourier.width_step if self.fourier else 1

    @property
    def layer(self) -> MakeLayer:
        """How linear layers are made."""
        return layer_maker(self.factorisation)

    @property
    def factorised(self) -> bool:
        return self.factorisation is not None

    def embedding(self, inputs: Inputs) -> Embedding:
        """What stands for the coordinates of a point."""
        return Embedding(inputs.bounds, inputs.periodic, self.harmonics)

    def see(self, inputs: Inputs, key: Array) -> Features:
        """What the network sees of a point."""
        embedding = self.embedding(inputs)
        if self.fourier is None:
            return Features(embedding, None)
        return Features(embedding, self.fourier.layer(embedding.size, self.width, key))

    def seen(self, inputs: Inputs) -> int:
        """The number of features that :meth:`see` gives."""
        return self.fourier.size(self.width) if self.fourier else self.embedding(inputs).size

    def frequencies(self, inputs: Inputs) -> int:
        """The number of trained frequencies."""
        size = self.embedding(inputs).size
        return self.fourier.parameters(size, self.width) if self.fourier else 0


def check_width(spec: ModelSpec, width: int, fourier: Frequencies | None) -> None:
    """A width that is the number of Fourier features must be even."""
    if fourier is not None and width % fourier.width_step:
        raise refused(
            spec,
            f"width must be even, not {width}: it is the number of Fourier features, and half of "
            "them are cosines.",
        )
