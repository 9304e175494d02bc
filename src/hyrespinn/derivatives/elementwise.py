"""Elementwise functions with all their derivatives in closed form."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..errors import unknown
from .polynomial import horner
from .taylor import Derivatives, compose
from .trigonometry import sine_and_cosine


@cache
def _in_own_value(first: tuple[float, ...], n: int) -> tuple[tuple[float, ...], ...]:
    """For ``y' = P(y)``: the polynomials in ``y`` of the derivatives 1…n."""
    p = np.polynomial.Polynomial(first)
    polynomials = [p]
    for _ in range(n - 1):
        polynomials.append(polynomials[-1].deriv() * p)
    return tuple(tuple(float(c) for c in q.coef) for q in polynomials)


def _autonomous(function: Callable[[Array], Array], slope: tuple[float, ...]) -> Derivatives:
    """Derivatives of a function with ``f' = P(f)``, such as tanh and the logistic sigmoid."""

    def derivatives(x: Array, n: int) -> list[Array]:
        y = function(x)
        return [y, *(horner(q, y) for q in _in_own_value(slope, n))] if n else [y]

    return derivatives


tanh_derivatives = _autonomous(jnp.tanh, (1.0, 0.0, -1.0))
sigmoid_derivatives = _autonomous(jax.nn.sigmoid, (0.0, 1.0, -1.0))
reciprocal_derivatives = _autonomous(jnp.reciprocal, (0.0, 0.0, -1.0))


def sine_derivatives(x: Array, n: int) -> list[Array]:
    s, c = sine_and_cosine(x)
    return [(s, c, -s, -c)[k % 4] for k in range(n + 1)]


def cosine_derivatives(x: Array, n: int) -> list[Array]:
    s, c = sine_and_cosine(x)
    return [(c, -s, -c, s)[k % 4] for k in range(n + 1)]


def exponential_derivatives(x: Array, n: int) -> list[Array]:
    return [jnp.exp(x)] * (n + 1)


def swish_derivatives(x: Array, n: int) -> list[Array]:
    """``x·sigmoid(x)``: the k-th derivative is ``x s⁽ᵏ⁾ + k s⁽ᵏ⁻¹⁾``."""
    s = sigmoid_derivatives(x, n)
    return [x * s[0], *(x * s[k] + k * s[k - 1] for k in range(1, n + 1))]


def softplus_derivatives(x: Array, n: int) -> list[Array]:
    return [jax.nn.softplus(x), *(sigmoid_derivatives(x, n - 1) if n else ())]


def gelu_derivatives(x: Array, n: int) -> list[Array]:
    """``x Φ(x)`` with the exact Gaussian Φ; derivatives of the density by Hermite's recurrence."""
    cdf = jax.scipy.stats.norm.cdf(x)
    density = [jax.scipy.stats.norm.pdf(x)]
    if n > 1:
        density.append(-x * density[0])
    for k in range(2, n):
        density.append(-x * density[-1] - (k - 1) * density[-2])
    phi = [cdf, *density]
    return [x * cdf, *(x * phi[k] + k * phi[k - 1] for k in range(1, n + 1))]


ACTIVATIONS: dict[str, Derivatives] = {
    "tanh": tanh_derivatives,
    "sin": sine_derivatives,
    "sigmoid": sigmoid_derivatives,
    "swish": swish_derivatives,
    "softplus": softplus_derivatives,
    "gelu": gelu_derivatives,
}


def activation(name: str) -> Callable[[Any], Any]:
    """An activation by name; it takes arrays and :class:`Taylor` series alike."""
    if name not in ACTIVATIONS:
        raise unknown("activation", name, ACTIVATIONS)
    derivatives = ACTIVATIONS[name]
    return lambda x: compose(derivatives, x)


def tanh(x: Any) -> Any:
    return compose(tanh_derivatives, x)


def sin(x: Any) -> Any:
    return compose(sine_derivatives, x)


def cos(x: Any) -> Any:
    return compose(cosine_derivatives, x)


def exp(x: Any) -> Any:
    return compose(exponential_derivatives, x)


def reciprocal(x: Any) -> Any:
    return compose(reciprocal_derivatives, x)
