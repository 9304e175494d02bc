"""The settings that all models share, and what follows from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, NamedTuple

import jax
from jax import Array

from ..derivatives import ACTIVATIONS
from ..errors import UserError, unknown
from .dense import Dense, FactorisedDense
from .embeddings import Embedding
from .features import Features
from .fourier import FourierFeatures, fourier_count
from .inputs import Inputs


def later(default: Any) -> Any:
    """A setting that came after results were recorded; its default is what its absence meant.

    A result stays valid where such a setting is left as it is.
    """
    return field(default=default, metadata={"later": True})


def later_settings(config: type[Any]) -> dict[str, Any]:
    """The settings that came later, with their defaults."""
    return {f.name: f.default for f in fields(config) if f.metadata.get("later")}


class Knob(NamedTuple):
    """A setting that changes the number of parameters in finer steps than the width does.

    ``value`` is what it amounts to now; it may take ``smallest``, ``smallest + step`` and so on.
    """

    name: str
    value: int
    smallest: int = 1
    step: int = 1


@dataclass(frozen=True)
class Settings(ABC):
    """The base of all settings of models, which hold plain values only.

    ``fourier`` is the number of Fourier features of the embedded point (0 for none, None for as
    many as the width), ``fourier_scale`` the standard deviation of their frequencies;
    ``factorised`` is random weight factorisation, whose logarithmic scales are normal with
    ``factor_mean`` and ``factor_deviation``. Both are settings or follow from others.
    """

    width: int = 24
    activation: str = "tanh"
    harmonics: int = 1
    fourier_scale: float = 1.0
    train_fourier: bool = True
    factor_mean: float = 1.0
    factor_deviation: float = 0.1

    @property
    @abstractmethod
    def fourier(self) -> int | None: ...

    @property
    @abstractmethod
    def factorised(self) -> bool: ...

    @abstractmethod
    def check(self) -> None:
        """Refuse settings of which no network can be made."""

    @abstractmethod
    def build(self, inputs: Inputs, key: Array) -> Any:
        """A freshly initialised network for a problem with these inputs."""

    @abstractmethod
    def count(self, inputs: Inputs) -> int:
        """The number of trained parameters, by formula: nothing is built."""

    @abstractmethod
    def knob(self, inputs: Inputs) -> Knob | None:
        """The setting that tunes the number of parameters, if there is one."""

    @property
    def features(self) -> int:
        """The number of Fourier features."""
        return self.width if self.fourier is None else self.fourier

    @property
    def width_step(self) -> int:
        """The width is a multiple of this: half of the Fourier features are cosines."""
        return 2 if self.fourier is None else 1

    @property
    def layer(self) -> Callable[..., Any]:
        """The kind of linear layer, called with inputs, outputs and a key."""
        if not self.factorised:
            return Dense
        return partial(FactorisedDense, mean=self.factor_mean, deviation=self.factor_deviation)

    def embedding(self, inputs: Inputs) -> Embedding:
        return Embedding(inputs.bounds, inputs.periodic, self.harmonics)

    def fourier_layer(self, inputs: int, key: Array) -> FourierFeatures:
        return FourierFeatures(inputs, self.features, key, self.fourier_scale, self.train_fourier)

    def fourier_count(self, inputs: Inputs) -> int:
        """The number of trained frequencies."""
        return fourier_count(self.embedding(inputs).size, self.features, self.train_fourier)

    def see(self, inputs: Inputs, key: Array) -> Features:
        """What the network sees of a point."""
        embedding = self.embedding(inputs)
        fourier = self.fourier_layer(embedding.size, key) if self.features else None
        return Features(embedding, fourier)

    def seen(self, inputs: Inputs) -> int:
        """The number of features that :meth:`see` gives."""
        return self.features or self.embedding(inputs).size


def apart(key: Array) -> Array:
    """A key that no split of this one gives, so that what is optional changes nothing else."""
    return jax.random.fold_in(key, 2**32 - 1)


def check_shared(config: Settings, *positive: str) -> None:
    """The settings of all models; the named ones, whole numbers, must be at least one."""
    if config.activation not in ACTIVATIONS:
        raise unknown("model.activation", config.activation, ACTIVATIONS)
    at_least(config, 1, "width", "harmonics", *positive)
    at_least(config, 0, "factor_deviation")
    if config.fourier is None and config.width % 2:
        raise UserError(
            f"model.width must be even, not {config.width}: it is the number of Fourier features, "
            "and half of them are cosines."
        )
    if config.features % 2 or config.features < 0:
        raise UserError(
            f"model.fourier must be even and at least 2, or 0 for none, not {config.fourier}."
        )
    if not config.fourier_scale > 0:
        raise UserError(f"model.fourier_scale must be positive, not {config.fourier_scale}.")


def at_least(config: Any, bound: int, *names: str) -> None:
    """These settings must be at least this."""
    for name in names:
        if not getattr(config, name) >= bound:
            raise UserError(f"model.{name} must be at least {bound}, not {getattr(config, name)}.")
