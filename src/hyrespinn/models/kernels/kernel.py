"""Radial kernels as functions of the squared distance ``s = r²``, with every derivative in ``s``.

The shape parameter is inside the distance, so a kernel has no trained parameters. Derivatives in
``s`` are closed forms: nothing is divided by ``r`` that the formula does not divide itself, and
where it does (the third derivative of Matérn-5/2 behaves like ``1/r``) the distance is kept above a
tiny floor, so that the product with the powers of ``∂s`` that always go with it is 0 and not
``∞·0`` when a point sits on a centre.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from ...derivatives import compose
from ...errors import UserError
from ...registry import Registry
from ..checks import refused
from ..layers import Series

Laurent = dict[int, float]
"""A polynomial in ``r`` with negative powers: exponent → coefficient."""


@dataclass(frozen=True)
class Kernel(ABC):
    """A radial kernel. A new one is one class with these two and ``@register("name")`` above it.

    Attributes:
        smoothness: The number of continuous derivatives at the centre.

    >>> Gaussian()(jnp.zeros(2)).tolist()
    [1.0, 1.0]
    """

    smoothness: ClassVar[float]

    @abstractmethod
    def derivatives(self, s: Array, n: int) -> list[Array]:
        """``[ψ(s), ψ'(s), …]`` up to the ``n``-th derivative, elementwise."""

    def __call__(self, s: Series) -> Series:
        """The kernel of squared distances."""
        return compose(self.derivatives, s)

    def check(self, order: int) -> None:
        """Refuse an equation that needs more derivatives than the kernel has."""
        if self.smoothness >= order:
            return
        smooth = [name for name, kernel in KERNELS.items() if kernel.smoothness >= order]
        raise refused(
            self,
            f"this kernel has {self.smoothness} continuous derivatives and the equation needs "
            f"{order}. Kernels that have them: {', '.join(smooth)}.",
        )


@dataclass(frozen=True)
class Gaussian(Kernel):
    """``exp(−r²/2)``."""

    smoothness: ClassVar[float] = math.inf

    def derivatives(self, s: Array, n: int) -> list[Array]:
        value = jnp.exp(-0.5 * s)
        return [(-0.5) ** k * value for k in range(n + 1)]


@dataclass(frozen=True)
class Multiquadric(Kernel):
    """``√(1+r²)``."""

    smoothness: ClassVar[float] = math.inf

    def derivatives(self, s: Array, n: int) -> list[Array]:
        return _power(0.5, jnp.sqrt(1 + s), s, n)


@dataclass(frozen=True)
class InverseMultiquadric(Kernel):
    """``1/√(1+r²)``."""

    smoothness: ClassVar[float] = math.inf

    def derivatives(self, s: Array, n: int) -> list[Array]:
        return _power(-0.5, jnp.sqrt(1 / (1 + s)), s, n)


@dataclass(frozen=True)
class Matern52(Kernel):
    """Matérn's with ν = 5/2: ``(1 + √5 r + 5r²/3) exp(−√5 r)``."""

    smoothness: ClassVar[float] = 4

    def derivatives(self, s: Array, n: int) -> list[Array]:
        rate = math.sqrt(5.0)
        r = _radius(s)
        decay = jnp.exp(-rate * r)
        factor: Laurent = {0: 1.0, 1: rate, 2: 5.0 / 3.0}
        found = [decay * _laurent(factor, r)]
        for _ in range(n):
            factor = _add((-rate / 2, -1, factor), (0.5, -1, _slope(factor)))
            found.append(decay * _laurent(factor, r))
        return found


@dataclass(frozen=True)
class WendlandC4(Kernel):
    """``(1−r)₊⁶ (35r² + 18r + 3)``, which the paper prints as "Wendland C²" (D4 in docs/differences.md)."""

    smoothness: ClassVar[float] = 4

    def derivatives(self, s: Array, n: int) -> list[Array]:
        return _compact(6, {0: 3.0, 1: 18.0, 2: 35.0}, s, n)


@dataclass(frozen=True)
class WendlandC2(Kernel):
    """``(1−r)₊⁴ (4r + 1)``."""

    smoothness: ClassVar[float] = 2

    def derivatives(self, s: Array, n: int) -> list[Array]:
        return _compact(4, {0: 1.0, 1: 4.0}, s, n)


KERNELS = Registry("kernel", Kernel)
KERNELS.register("gaussian", Gaussian)
KERNELS.register("multiquadric", Multiquadric)
KERNELS.register("inverse-multiquadric", InverseMultiquadric)
KERNELS.register("matern52", Matern52)
KERNELS.register("wendland-c4", WendlandC4)
KERNELS.register("wendland-c2", WendlandC2)


def _power(exponent: float, value: Array, s: Array, n: int) -> list[Array]:
    """``(1+s)^exponent``, given its value."""
    inverse = 1 / (1 + s)
    found, factor = [value], 1.0
    for k in range(n):
        factor *= exponent - k
        value = value * inverse
        found.append(factor * value)
    return found


def _compact(power: int, polynomial: Laurent, s: Array, n: int) -> list[Array]:
    """``(1−r)₊^power · P(r)``; ``d/ds = (1/2r) d/dr`` leaves one power less of ``1−r``."""
    if n > power:
        raise UserError(f"a Wendland kernel with (1−r)^{power} has no derivative of order {n}")
    r = _radius(s)
    rest = jnp.maximum(1 - r, 0)
    inside = r < 1  # (1−r)⁰ would be 1 outside the support too
    factor, found = polynomial, []
    for m in range(power, power - n - 1, -1):
        found.append(jnp.where(inside, rest**m * _laurent(factor, r), 0))
        slope = _slope(factor)
        factor = _add((-m / 2, -1, factor), (0.5, -1, slope), (-0.5, 0, slope))
    return found


def _radius(s: Array) -> Array:
    # The floor keeps r⁻⁵ finite: float32 reaches 1e30, float64 1e75.
    return jnp.sqrt(jnp.maximum(s, 1e-30 if s.dtype == jnp.float64 else 1e-12))


def _laurent(coefficients: Laurent, r: Array) -> Array:
    if not coefficients:
        return jnp.zeros_like(r)
    lowest = min(coefficients)
    result = jnp.zeros_like(r)
    for power in range(max(coefficients), lowest - 1, -1):
        result = result * r + coefficients.get(power, 0.0)
    return result * r**lowest if lowest else result


def _slope(p: Laurent) -> Laurent:
    return {k - 1: k * c for k, c in p.items() if k}


def _add(*terms: tuple[float, int, Laurent]) -> Laurent:
    """``Σ c · r^shift · p``, without the coefficients that cancel."""
    result: Laurent = {}
    for c, shift, p in terms:
        for k, value in p.items():
            result[k + shift] = result.get(k + shift, 0.0) + c * value
    scale = max(map(abs, result.values()), default=0.0)
    return {k: v for k, v in result.items() if abs(v) > 1e-12 * scale}
