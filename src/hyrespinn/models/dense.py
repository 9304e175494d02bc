"""Linear layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from .checks import at_least
from .layers import Layer, Series


def glorot(key: Array, inputs: int, outputs: int) -> Array:
    """Glorot's normal initialisation (the paper's, for weights and RBF coefficients)."""
    return jax.nn.initializers.glorot_normal()(key, (inputs, outputs), float)


class Dense(Layer):
    """``h W + b``."""

    weight: Array
    bias: Array

    def __init__(self, inputs: int, outputs: int, key: Array):
        self.weight = glorot(key, inputs, outputs)
        self.bias = jnp.zeros(outputs)

    def __call__(self, h: Series) -> Series:
        return h @ self.weight + self.bias

    def linear_leaves(self) -> tuple[Array, ...]:
        return self.weight, self.bias


def composed(first: Dense, second: Dense) -> Dense:
    """``second(first(h))`` as one layer."""
    weight = first.weight @ second.weight
    bias = first.bias @ second.weight + second.bias
    return eqx.tree_at(lambda d: d.linear_leaves(), second, (weight, bias))


class FactorisedDense(Layer):
    """A layer with random weight factorisation, ``W = V · diag(exp s)``: a scale for each neuron.

    Starts as the Glorot weight, whatever the scales drawn.
    """

    direction: Array
    log_scale: Array
    bias: Array

    def __init__(
        self, inputs: int, outputs: int, key: Array, mean: float = 1.0, deviation: float = 0.1
    ):
        weight_key, scale_key = jax.random.split(key)
        weight = glorot(weight_key, inputs, outputs)
        self.log_scale = mean + deviation * jax.random.normal(scale_key, (outputs,))
        self.direction = weight / jnp.exp(self.log_scale)
        self.bias = jnp.zeros(outputs)

    def __call__(self, h: Series) -> Series:
        return h @ (self.direction * jnp.exp(self.log_scale)) + self.bias

    def linear_leaves(self) -> tuple[Array, ...]:
        """The scales are none of them."""
        return self.direction, self.bias


MakeLayer: TypeAlias = Callable[[int, int, Array], Layer]
"""From the numbers of inputs and outputs and a key to a layer."""


@dataclass(frozen=True)
class Factorisation:
    """Random weight factorisation (Wang, Wang, Seidman and Perdikaris).

    Every weight is ``V · diag(exp s)``, and both factors are trained.

    Args:
        mean: Of the normal distribution that the logarithmic scales ``s`` are drawn from.
        deviation: Its standard deviation.
    """

    mean: float = 1.0
    deviation: float = 0.1

    def __post_init__(self) -> None:
        at_least(self, 0, deviation=self.deviation)

    def layer(self, inputs: int, outputs: int, key: Array) -> FactorisedDense:
        """A layer whose scales are drawn."""
        return FactorisedDense(inputs, outputs, key, self.mean, self.deviation)


def layer_maker(factorisation: Factorisation | None) -> MakeLayer:
    """How the layers of a network are made."""
    return Dense if factorisation is None else factorisation.layer


def dense_count(inputs: int, outputs: int, factorised: bool = False) -> int:
    """The number of parameters of a layer.

    >>> dense_count(3, 5), dense_count(3, 5, factorised=True)
    (20, 25)
    """
    return inputs * outputs + outputs * (2 if factorised else 1)
