"""Parts of one's own, each one class: a file as a person would write it beside the package."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import hyrespinn as hp
import jax
import jax.numpy as jnp
from hyrespinn.derivatives import tanh
from hyrespinn.discretise import Discretisation, Drawn, Penalty, Weights, Whole
from hyrespinn.geometry.sampling import UnitSampler
from hyrespinn.methods import Method, Suits, WhyNot
from hyrespinn.models import Gate, Gates, HyResPINN, Model, ModelSpec, Moving
from hyrespinn.models.kernels import Kernel
from hyrespinn.optim import Optimiser
from jax import Array


@hp.register("sech")
@dataclass(frozen=True)
class Sech(Kernel):
    """``exp(−r²)``, sharper than a Gaussian."""

    smoothness: ClassVar[float] = math.inf

    def derivatives(self, s, n):
        return [(-1.0) ** k * jnp.exp(-s) for k in range(n + 1)]


@hp.register("arctan")
@dataclass(frozen=True)
class ArcTan(Gate):
    """``φ(z) = ½ + atan(z/width)/π``."""

    width: float = 1.0

    def start(self, value):
        return jnp.asarray(self.width * math.tan(math.pi * (value - 0.5)))

    def __call__(self, z):
        return 0.5 + jnp.arctan(z / self.width) / jnp.pi


class OneLayer(Model):
    first: Array
    bias: Array
    last: Array

    def __call__(self, x):
        return tanh(x @ self.first + self.bias) @ self.last


@hp.register("one-layer")
@dataclass(frozen=True)
class OneLayerSpec(ModelSpec):
    """A single hidden layer.

    Args:
        neurons: How many.
    """

    neurons: int = 16

    def build(self, inputs, key):
        a, b, c = jax.random.split(key, 3)
        size = len(inputs.bounds), self.neurons
        last = jax.random.normal(c, (self.neurons, inputs.outputs)) / self.neurons
        return OneLayer(jax.random.normal(a, size), jax.random.normal(b, (self.neurons,)), last)


class DescentState(NamedTuple):
    theta: Array
    value: Array
    steps: Array
    failed: Array


@hp.register("descent")
@dataclass(frozen=True)
class Descent(Optimiser[DescentState]):
    """Steepest descent with a fixed rate, on points that stay.

    Args:
        steps: The number of steps.
        rate: What multiplies the gradient.
    """

    rate: float = 1e-3

    def init(self, system, theta):
        return DescentState(
            theta, jnp.asarray(jnp.inf, theta.dtype), jnp.asarray(0), jnp.asarray(False)
        )

    def step(self, system, state):
        value, gradient = system.value_and_grad(state.theta)
        return DescentState(
            state.theta - self.rate * gradient, value, state.steps + 1, jnp.asarray(False)
        )

    def renew(self, system, state):
        return state._replace(value=system.value(state.theta))

    def forget(self, state):
        return state


@hp.register("jitter")
@dataclass(frozen=True)
class Jitter(UnitSampler):
    """Evenly spaced along the first coordinate, random along the others."""

    def __call__(self, key, count, dimension, dtype):
        points = jax.random.uniform(key, (count, dimension), dtype)
        return points.at[:, 0].set((jnp.arange(count, dtype=dtype) + 0.5) / count)


@dataclass(frozen=True)
class Robin(hp.Condition):
    """``∂u/∂n + a u = g`` on pieces of the boundary."""

    a: float
    g: float
    on: str = "all"

    def place(self, equation):
        return hp.places.Pieces(equation.domain.expand(self.on))

    def order(self, equation):
        return 1

    def residuals(self, equation, solution, at):
        value, slope = jax.jvp(lambda x: solution(x)[:, 0], (at.points,), (at.normals,))
        return slope + self.a * value - self.g


@hp.register("cooling")
class Cooling(hp.Problem):
    """u'' = 0 with u' = 1 at the left and u' + u = 3 at the right: u = x + 1."""

    domain = hp.Box(x=(0, 1))
    fields = ("u",)
    test_grid = (11,)

    def residual(self, u, p):
        return u.xx

    def conditions(self):
        return [hp.Neumann(-1.0, on="x.min"), Robin(1.0, 3.0, on="x.max")]

    def exact(self, p):
        return 1 + p.x


@hp.register("own-way")
@dataclass(frozen=True)
class OwnWay(Method):
    """A small network of one's own parts, for problems without time."""

    width: int = 6

    def suits(self, statement, precision):
        if statement.has_time:
            return WhyNot("it knows no time")
        return Suits("nothing moves")

    def discretise(self, statement, effort):
        return Discretisation(
            HyResPINN(
                width=self.width,
                kernels=Moving(5, kernel=Sech()),
                gates=Gates(gate=ArcTan()),
            ),
            Drawn(32, 8, 8, sampler=Jitter(), adaptive=None),
            Penalty(),
            Weights(boundary=10.0),
            Whole(),
            (Descent(steps=round(40 * effort.scale)),),
        )
