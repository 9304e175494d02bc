"""Linear layers."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array


def glorot(key: Array, inputs: int, outputs: int) -> Array:
    """Glorot's normal initialisation (the paper's, for weights and RBF coefficients)."""
    return jax.nn.initializers.glorot_normal()(key, (inputs, outputs), float)


class Dense(eqx.Module):
    """``h W + b``."""

    weight: Array
    bias: Array

    def __init__(self, inputs: int, outputs: int, key: Array):
        self.weight = glorot(key, inputs, outputs)
        self.bias = jnp.zeros(outputs)

    def __call__(self, h: Any) -> Any:
        return h @ self.weight + self.bias

    def affine(self) -> tuple[Any, Any]:
        """The arrays in which the layer is affine (or what stands for them in ``eqx.tree_at``)."""
        return self.weight, self.bias

    def last_layer(self) -> tuple[Any, ...]:
        return self.affine()


def composed(first: Dense, second: Dense) -> Dense:
    """``second(first(h))`` as one layer."""
    weight = first.weight @ second.weight
    bias = first.bias @ second.weight + second.bias
    return eqx.tree_at(lambda d: d.affine(), second, (weight, bias))


class FactorisedDense(eqx.Module):
    """Random weight factorisation: ``W = V · diag(exp s)``, a scale for each neuron.

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

    def __call__(self, h: Any) -> Any:
        return h @ (self.direction * jnp.exp(self.log_scale)) + self.bias

    def affine(self) -> tuple[Any, Any]:
        """The arrays in which the layer is affine; its scales are none of them."""
        return self.direction, self.bias


def dense_count(inputs: int, outputs: int, factorised: bool = False) -> int:
    """The number of parameters of a layer.

    >>> dense_count(3, 5), dense_count(3, 5, factorised=True)
    (20, 25)
    """
    return inputs * outputs + outputs * (2 if factorised else 1)
