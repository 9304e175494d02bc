"""Problems that are not built in, with known answers: does a run know whether it has solved one?

``catalogue()`` gives them by name. The easy ones are to be solved and called solved; the hard ones to be
solved, or called unresolved; the impossible ones never to be called solved.

Run ``python benchmarks/verdict_problems.py`` for a table with the method that ``auto`` chooses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import pi
from typing import Any, TypeVar

import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import scipy
from hyrespinn import Boundary, Box, Dirichlet, Initial, MeanValue, Neumann, Periodic, TimeBox
from hyrespinn.problems.fields import Field, Point
from hyrespinn.references.etdrk4 import integrate
from hyrespinn.references.reference import initial_values
from jax import Array
from jax.numpy import cos, cosh, exp, log, sin, sinh, sqrt, tanh
from scipy.interpolate import BSpline, make_interp_spline

Answer = Callable[[np.ndarray], dict[str, np.ndarray]]
"""Points ``(n, d)`` to the values ``(n,)`` of each field."""
Conditions = list[hp.Condition]
P = TypeVar("P", bound=type[hp.Problem])

SOLVED = "solved"
UNRESOLVED = "solved, or not resolved"
NO_SOLUTION = "not solved: there is no solution"
NOT_UNIQUE = "no unique solution"
UNSTABLE = "not to be trusted: the smallest error in the data grows without bound"


@dataclass(frozen=True)
class Entry:
    """A problem, what makes it easy or hard, its answer where there is one, and the right verdict."""

    problem: hp.Problem
    kind: str
    answer: Answer | None
    expected: str


@dataclass(frozen=True)
class _Listed:
    cls: type[hp.Problem]
    kind: str
    expected: str
    parameters: dict[str, float]


_LISTED: dict[str, _Listed] = {}


def listed(name: str, kind: str, expected: str = SOLVED, **parameters: float) -> Callable[[P], P]:
    """Put a problem into the catalogue, with these values of its parameters."""

    def decorate(cls: P) -> P:
        assert name not in _LISTED
        _LISTED[name] = _Listed(cls, kind, expected, parameters)
        return cls

    return decorate


def catalogue() -> dict[str, Entry]:
    """All problems by name."""
    made = {name: (item, item.cls(**item.parameters)) for name, item in _LISTED.items()}
    return {
        name: Entry(problem, item.kind, _answer(problem), item.expected)
        for name, (item, problem) in made.items()
    }


def _answer(problem: hp.Problem) -> Answer | None:
    """A reference that the problem computes (its method ``known``), or its exact solution."""
    known: Answer | None = getattr(problem, "known", None)
    if known is not None:
        return known
    if type(problem).exact is hp.Problem.exact:
        return None

    def answer(points: np.ndarray) -> dict[str, np.ndarray]:
        with jax.enable_x64(True):
            found: Any = problem.exact(Point(jnp.asarray(points), problem.domain.coordinates))
            several = found if isinstance(found, tuple) else (found,)
            return {
                name: np.broadcast_to(np.asarray(value), len(points))
                for name, value in zip(problem.fields, several, strict=True)
            }

    return answer


class Scalar(hp.Problem):
    """A problem with one field, u."""

    fields = ("u",)


SQUARE = Box(x=(0, 1), y=(0, 1))


# Steady, smooth, along a line.


@listed("smooth-1d", "smooth")
class Smooth1D(Scalar):
    """u″ − 2u′ + 10u = 0, u = eˣ cos 3x: a value at one end, a slope at the other."""

    domain = Box(x=(0, 1))

    def residual(self, u: Field, p: Point) -> Array:
        return u.xx - 2 * u.x + 10 * u

    def conditions(self) -> Conditions:
        slope = np.e * (np.cos(3) - 3 * np.sin(3))
        return [Dirichlet(1.0, on="x.min"), Neumann(slope, on="x.max")]

    def exact(self, p: Point) -> Array:
        return exp(p.x) * cos(3 * p.x)


@listed("high-frequency-1d", "smooth")
class HighFrequency1D(Scalar):
    """−u″ = 1600 sin 40x, zero at both ends: six waves and a straight line."""

    domain = Box(x=(0, 1))

    def residual(self, u: Field, p: Point) -> Array:
        return u.xx + 1600 * sin(40 * p.x)

    def conditions(self) -> Conditions:
        return [Dirichlet(0.0)]

    def exact(self, p: Point) -> Array:
        return sin(40 * p.x) - p.x * np.sin(40)


@listed("cantilever-beam", "smooth")
class CantileverBeam(Scalar):
    """u⁗ = 24 + sin 2x: clamped at the left; at the right free, with moment and force given."""

    domain = Box(x=(0, 1))

    def residual(self, u: Field, p: Point) -> Array:
        return u.xxxx - 24 - sin(2 * p.x)

    def conditions(self) -> Conditions:
        moment, force = 12 - np.sin(2) / 4, 24 - np.cos(2) / 2
        return [
            Dirichlet(0.0, on="x.min"),
            Neumann(-1 / 8, on="x.min"),
            Boundary(lambda u, p: u.xx - moment, on="x.max", name="moment"),
            Boundary(lambda u, p: u.xxx - force, on="x.max", name="force"),
        ]

    def exact(self, p: Point) -> Array:
        return p.x**4 + sin(2 * p.x) / 16


@listed("bratu", "nonlinear")
class Bratu(Scalar):
    """u″ + eᵘ = 0, zero at both ends; of its two solutions the lower one."""

    domain = Box(x=(0, 1))

    def residual(self, u: Field, p: Point) -> Array:
        return u.xx + exp(u.value)

    def conditions(self) -> Conditions:
        return [Dirichlet(0.0)]

    def exact(self, p: Point) -> Array:
        a = scipy.optimize.brentq(lambda a: a - np.sqrt(2) * np.cosh(a / 4), 1, 3, xtol=1e-15)
        return -2 * log(cosh((p.x - 0.5) * a / 2) / np.cosh(a / 4))


# Steady, smooth, in a plane.


@listed("poisson-variable", "smooth")
class PoissonVariable(Scalar):
    """∇·((2 + cos πx) ∇u) = f with u = sin πx sin πy."""

    domain = SQUARE

    def residual(self, u: Field, p: Point) -> Array:
        a = 2 + cos(pi * p.x)
        flux = a * u.laplacian - pi * sin(pi * p.x) * u.x
        return flux + pi**2 * (4 + 3 * cos(pi * p.x)) * self.exact(p)

    def conditions(self) -> Conditions:
        return [Dirichlet(0.0)]

    def exact(self, p: Point) -> Array:
        return sin(pi * p.x) * sin(pi * p.y)


@listed("advection-diffusion", "smooth")
class AdvectionDiffusion(Scalar):
    """Δu = 10 u_x in the square, sin πy at the left and zero elsewhere: a Péclet number of 10."""

    speed: float = 10.0
    domain = SQUARE

    def residual(self, u: Field, p: Point) -> Array:
        return u.laplacian - self.speed * u.x

    def conditions(self) -> Conditions:
        return [
            Dirichlet(lambda p: sin(pi * p.y), on="x.min"),
            Dirichlet(0.0, on=("x.max", "y")),
        ]

    def exact(self, p: Point) -> Array:
        a = sqrt(self.speed**2 / 4 + pi**2)
        return exp(self.speed / 2 * p.x) * sinh(a * (1 - p.x)) / sinh(a) * sin(pi * p.y)


@listed("helmholtz", "smooth", k=10.5)
@listed("helmholtz-fine", "smooth", UNRESOLVED, k=60.0)
class Helmholtz(Scalar):
    """Δu + k²u = 0 in the square with the values of a plane wave: indefinite, no resonance."""

    k: float
    domain = SQUARE

    def residual(self, u: Field, p: Point) -> Array:
        return u.laplacian + self.k**2 * u

    def conditions(self) -> Conditions:
        return [Dirichlet(self.exact)]

    def exact(self, p: Point) -> Array:
        return cos(self.k * (0.6 * p.x + 0.8 * p.y))


@listed("mixed-conditions", "smooth")
class MixedConditions(Scalar):
    """Δu = 0, u = eˣ cos y: value, slope and a Robin condition on the sides of a square."""

    domain = SQUARE

    def residual(self, u: Field, p: Point) -> Array:
        return u.laplacian

    def conditions(self) -> Conditions:
        top = np.cos(1) - np.sin(1) / 2
        return [
            Dirichlet(lambda p: cos(p.y), on="x.min"),
            Neumann(lambda p: np.e * cos(p.y), on="x.max"),
            Neumann(0.0, on="y.min"),
            Boundary(lambda u, p: u + 0.5 * p.ny * u.y - top * exp(p.x), on="y.max", name="robin"),
        ]

    def exact(self, p: Point) -> Array:
        return exp(p.x) * cos(p.y)


@listed("anisotropic", "smooth")
class Anisotropic(Scalar):
    """∇·(K∇u) = f with u = sin πx sin πy: K is 100 along the diagonal and 1 across it."""

    domain = SQUARE

    def residual(self, u: Field, p: Point) -> Array:
        source = 101 * self.exact(p) - 99 * cos(pi * p.x) * cos(pi * p.y)
        return 50.5 * (u.xx + u.yy) + 99 * u.xy + pi**2 * source

    def conditions(self) -> Conditions:
        return [Dirichlet(0.0)]

    def exact(self, p: Point) -> Array:
        return sin(pi * p.x) * sin(pi * p.y)


@listed("clamped-plate", "smooth")
class ClampedPlate(Scalar):
    """ΔΔu = f with u = sin² πx sin² πy: value and slope zero on all sides."""

    domain = SQUARE

    def residual(self, u: Field, p: Point) -> Array:
        a, b = cos(2 * pi * p.x), cos(2 * pi * p.y)
        return u.xxxx + 2 * u.xxyy + u.yyyy - 4 * pi**4 * (4 * a * b - a - b)

    def conditions(self) -> Conditions:
        return [Dirichlet(0.0), Neumann(0.0)]

    def exact(self, p: Point) -> Array:
        return sin(pi * p.x) ** 2 * sin(pi * p.y) ** 2


@listed("cubic-poisson", "nonlinear")
class CubicPoisson(Scalar):
    """−Δu + u³ = f with u = 2 sin πx sin πy."""

    domain = SQUARE

    def residual(self, u: Field, p: Point) -> Array:
        known = self.exact(p)
        return -u.laplacian + u**3 - 2 * pi**2 * known - known**3

    def conditions(self) -> Conditions:
        return [Dirichlet(0.0)]

    def exact(self, p: Point) -> Array:
        return 2 * sin(pi * p.x) * sin(pi * p.y)


@listed("viscous-eikonal", "nonlinear", epsilon=0.2)
class ViscousEikonal(Scalar):
    """|∇u|² − ε Δu = 1: the distance to a wall, nearly, with round ridges on the diagonals."""

    epsilon: float
    domain = Box(x=(-1, 1), y=(-1, 1))

    def residual(self, u: Field, p: Point) -> Array:
        return u.x**2 + u.y**2 - self.epsilon * u.laplacian - 1

    def conditions(self) -> Conditions:
        return [Dirichlet(self.exact)]

    def exact(self, p: Point) -> Array:
        e = self.epsilon
        return -e * log((cosh(p.x / e) + cosh(p.y / e)) / cosh(1 / e))


# Other domains.


@listed("poisson-disk", "geometry")
class PoissonDisk(Scalar):
    """−Δu = 4 in a disk, u = eˣ sin y on its rim."""

    domain = hp.Disk(radius=1)

    def residual(self, u: Field, p: Point) -> Array:
        return u.laplacian + 4

    def conditions(self) -> Conditions:
        return [Dirichlet(lambda p: exp(p.x) * sin(p.y))]

    def exact(self, p: Point) -> Array:
        return exp(p.x) * sin(p.y) + 1 - p.x**2 - p.y**2


@listed("laplace-annulus", "geometry")
class LaplaceAnnulus(Scalar):
    """Δu = 0 in a ring: values on the inner circle, the flux on the outer one."""

    domain = hp.Annulus(inner=1, outer=2)

    def residual(self, u: Field, p: Point) -> Array:
        return u.laplacian

    def conditions(self) -> Conditions:
        return [
            Dirichlet(lambda p: 2 * p.x, on="inner"),
            Neumann(lambda p: 0.5 + 3 / 8 * p.x, on="outer"),
        ]

    def exact(self, p: Point) -> Array:
        square = p.x**2 + p.y**2
        return log(square) / 2 + p.x * (1 + 1 / square)


@listed("flow-around-hole", "geometry")
class FlowAroundHole(Scalar):
    """Δu = 0 in a square with a round hole through whose rim nothing flows."""

    domain = Box(x=(-1, 1), y=(-1, 1)) - hp.Disk(radius=0.4).named("hole")

    def residual(self, u: Field, p: Point) -> Array:
        return u.laplacian

    def conditions(self) -> Conditions:
        return [Dirichlet(self.exact, on=("x", "y")), Neumann(0.0, on="hole")]

    def exact(self, p: Point) -> Array:
        return p.x * (1 + 0.16 / (p.x**2 + p.y**2))


@listed("poisson-3d", "3d")
class Poisson3D(Scalar):
    """−Δu = f in a cube with u = eˣ sin πy sin πz."""

    domain = Box(x=(0, 1), y=(0, 1), z=(0, 1))

    def residual(self, u: Field, p: Point) -> Array:
        return u.laplacian + (2 * pi**2 - 1) * self.exact(p)

    def conditions(self) -> Conditions:
        return [Dirichlet(self.exact)]

    def exact(self, p: Point) -> Array:
        return exp(p.x) * sin(pi * p.y) * sin(pi * p.z)


@listed("laplace-cylinder", "3d")
class LaplaceCylinder(Scalar):
    """Δu = 0 in a cylinder: values on its side, fluxes through bottom and top."""

    domain = hp.Disk(radius=1).extrude(z=(0, 1))

    def residual(self, u: Field, p: Point) -> Array:
        return u.laplacian

    def conditions(self) -> Conditions:
        return [
            Dirichlet(self.exact, on="outer"),
            Neumann(lambda p: p.nz * np.sqrt(2) * self.exact(p), on="z"),
        ]

    def exact(self, p: Point) -> Array:
        return exp(np.sqrt(2) * p.z) * cos(p.x) * cos(p.y)


# Steady systems.


@listed("elasticity", "system")
class Elasticity(hp.Problem):
    """An elastic square: displacements given at the left and right, tractions at bottom and top."""

    lam: float = 2.0
    mu: float = 1.0
    domain = SQUARE
    fields = ("u", "v")

    def residual(self, u: Field, v: Field, p: Point) -> tuple[Array, Array]:
        a, m = self.lam + self.mu, self.mu
        s, c = sin(pi * p.x) * sin(pi * p.y), cos(pi * p.x) * cos(pi * p.y)
        return (
            m * u.laplacian + a * (u.xx + v.xy) + pi**2 * (2 * m + a / 2) * s,
            m * v.laplacian + a * (u.xy + v.yy) + pi**2 * (m - a / 2) * c,
        )

    def traction(self, u: Field, v: Field, p: Point) -> tuple[Array, Array]:
        shear = self.mu * (u.y + v.x) - self.mu * pi / 2 * sin(pi * p.x) * cos(pi * p.y)
        return shear, (self.lam + 2 * self.mu) * v.y + self.lam * u.x

    def conditions(self) -> Conditions:
        return [
            Dirichlet(0.0, on="x", field="u"),
            Dirichlet(lambda p: self.exact(p)[1], on="x", field="v"),
            Boundary(self.traction, on="y", name="traction"),
        ]

    def exact(self, p: Point) -> tuple[Array, Array]:
        return sin(pi * p.x) * sin(pi * p.y), cos(pi * p.x) * cos(pi * p.y) / 2


@listed("kovasznay", "system", reynolds=40.0)
class Kovasznay(hp.Problem):
    """Navier–Stokes behind a grid (Kovasznay): velocities on the boundary, pressure at the outflow."""

    reynolds: float
    domain = Box(x=(-0.5, 1), y=(-0.5, 1.5))
    fields = ("u", "v", "q")

    @property
    def rate(self) -> Array:
        return self.reynolds / 2 - sqrt(self.reynolds**2 / 4 + 4 * pi**2)

    def residual(self, u: Field, v: Field, q: Field, p: Point) -> dict[str, Array]:
        return {
            "mass": u.x + v.y,
            "u": u * u.x + v * u.y + q.x - u.laplacian / self.reynolds,
            "v": u * v.x + v * v.y + q.y - v.laplacian / self.reynolds,
        }

    def conditions(self) -> Conditions:
        return [
            Dirichlet(lambda p: self.exact(p)[0], field="u"),
            Dirichlet(lambda p: self.exact(p)[1], field="v"),
            Dirichlet(lambda p: self.exact(p)[2], field="q", on="x.max"),
        ]

    def exact(self, p: Point) -> tuple[Array, Array, Array]:
        decay = exp(self.rate * p.x)
        return (
            1 - decay * cos(2 * pi * p.y),
            self.rate / (2 * pi) * decay * sin(2 * pi * p.y),
            (1 - decay**2) / 2,
        )


# Steady and hard.


@listed("layer-mild", "smooth", epsilon=0.1)
@listed("layer-thin", "layer", UNRESOLVED, epsilon=1e-2)
@listed("layer-thinner", "layer", UNRESOLVED, epsilon=1e-3)
class BoundaryLayer(Scalar):
    """−ε u″ + u′ = 1, zero at both ends: a layer of thickness ε at the right."""

    epsilon: float
    domain = Box(x=(0, 1))

    def residual(self, u: Field, p: Point) -> Array:
        return -self.epsilon * u.xx + u.x - 1

    def conditions(self) -> Conditions:
        return [Dirichlet(0.0)]

    def exact(self, p: Point) -> Array:
        return layered(p.x, self.epsilon)


def layered(x: Array, epsilon: float) -> Array:
    """The solution of −ε u″ + u′ = 1 that is zero at 0 and 1."""
    return x - (exp((x - 1) / epsilon) - exp(-1 / epsilon)) / (1 - exp(-1 / epsilon))


@listed("corner-layers", "layer", UNRESOLVED, epsilon=0.02)
class CornerLayers(Scalar):
    """−ε Δu + u_x + u_y = f, zero on the boundary: layers at two sides of a square."""

    epsilon: float
    domain = SQUARE

    def residual(self, u: Field, p: Point) -> Array:
        source = layered(p.x, self.epsilon) + layered(p.y, self.epsilon)
        return -self.epsilon * u.laplacian + u.x + u.y - source

    def conditions(self) -> Conditions:
        return [Dirichlet(0.0)]

    def exact(self, p: Point) -> Array:
        return layered(p.x, self.epsilon) * layered(p.y, self.epsilon)


@listed("interior-layer", "layer", UNRESOLVED, width=0.01)
@listed("interior-layer-wide", "smooth", width=0.2)
class InteriorLayer(Scalar):
    """Δu = f with u = tanh((x − ½)/width) cos y."""

    width: float
    domain = SQUARE

    def residual(self, u: Field, p: Point) -> Array:
        s = tanh((p.x - 0.5) / self.width)
        return u.laplacian + (2 * s * (1 - s**2) / self.width**2 + s) * cos(p.y)

    def conditions(self) -> Conditions:
        return [Dirichlet(self.exact)]

    def exact(self, p: Point) -> Array:
        return tanh((p.x - 0.5) / self.width) * cos(p.y)


@listed("l-shape", "singular", UNRESOLVED)
class LShape(Scalar):
    """Δu = 0 in an L, u = r^⅔ sin ⅔θ: its gradient is infinite at the corner."""

    domain = Box(x=(-1, 1), y=(-1, 1)) - Box(x=(0, 2), y=(-2, 0)).named("notch")

    def residual(self, u: Field, p: Point) -> Array:
        return u.laplacian

    def conditions(self) -> Conditions:
        return [Dirichlet(self.exact)]

    def exact(self, p: Point) -> Array:
        # Measured from the diagonal of the L, so that the cut of the angle lies outside.
        angle = 0.75 * pi + jnp.arctan2(-p.x - p.y, p.y - p.x)
        return (p.x**2 + p.y**2) ** (1 / 3) * sin(2 / 3 * angle)


@listed("jump-source", "singular", UNRESOLVED)
class JumpSource(Scalar):
    """u″ = 1 beyond x = 0.3 and −1 before it: the second derivative jumps."""

    domain = Box(x=(0, 1))

    def residual(self, u: Field, p: Point) -> Array:
        return u.xx - jnp.sign(p.x - 0.3)

    def conditions(self) -> Conditions:
        return [Dirichlet(0.0)]

    def exact(self, p: Point) -> Array:
        bent = jnp.sign(p.x - 0.3) * (p.x - 0.3) ** 2 / 2
        return bent + 0.045 * (1 - p.x) - 0.245 * p.x


# Steady, without a solution that could be found.


@listed("neumann-incompatible", "ill-posed", NO_SOLUTION)
class NeumannIncompatible(Scalar):
    """Δu = 1 in a square through whose sides nothing flows: what comes in has to go out."""

    domain = SQUARE

    def residual(self, u: Field, p: Point) -> Array:
        return u.laplacian - 1

    def conditions(self) -> Conditions:
        return [Neumann(0.0), MeanValue(0.0)]


@listed("neumann-free-constant", "ill-posed", NOT_UNIQUE)
class NeumannFreeConstant(Scalar):
    """Δu = f with all fluxes zero and no mean given: any constant may be added."""

    domain = SQUARE

    def residual(self, u: Field, p: Point) -> Array:
        return u.laplacian + 2 * pi**2 * self.exact(p)

    def conditions(self) -> Conditions:
        return [Neumann(0.0)]

    def exact(self, p: Point) -> Array:
        return cos(pi * p.x) * cos(pi * p.y)


@listed("helmholtz-eigenvalue", "resonant", NO_SOLUTION)
class HelmholtzEigenvalue(Scalar):
    """Δu + 2π²u = 1, zero on the sides: 2π² is an eigenvalue and 1 excites it."""

    domain = SQUARE

    def residual(self, u: Field, p: Point) -> Array:
        return u.laplacian + 2 * pi**2 * u - 1

    def conditions(self) -> Conditions:
        return [Dirichlet(0.0)]


@listed("helmholtz-eigenfunction", "resonant", NOT_UNIQUE)
class HelmholtzEigenfunction(Scalar):
    """Δu + 2π²u = −3π² sin πx sin 2πy: to a solution any multiple of sin πx sin πy may be added."""

    domain = SQUARE

    def residual(self, u: Field, p: Point) -> Array:
        return u.laplacian + 2 * pi**2 * u + 3 * pi**2 * self.exact(p)

    def conditions(self) -> Conditions:
        return [Dirichlet(0.0)]

    def exact(self, p: Point) -> Array:
        return sin(pi * p.x) * sin(2 * pi * p.y)


@listed("helmholtz-no-source", "resonant", NOT_UNIQUE)
class HelmholtzNoSource(Scalar):
    """Δu + 2π²u = 0, zero on the sides: any multiple of sin πx sin πy, zero too."""

    domain = SQUARE

    def residual(self, u: Field, p: Point) -> Array:
        return u.laplacian + 2 * pi**2 * u

    def conditions(self) -> Conditions:
        return [Dirichlet(0.0)]


@listed("helmholtz-near-eigenvalue", "resonant", "solved, four digits less accurately", delta=1e-4)
class HelmholtzNearEigenvalue(Scalar):
    """Δu + (2π² + δ) u = δ sin πx sin πy: δ away from an eigenvalue."""

    delta: float
    domain = SQUARE

    def residual(self, u: Field, p: Point) -> Array:
        return u.laplacian + (2 * pi**2 + self.delta) * u - self.delta * self.exact(p)

    def conditions(self) -> Conditions:
        return [Dirichlet(0.0)]

    def exact(self, p: Point) -> Array:
        return sin(pi * p.x) * sin(pi * p.y)


@listed("bratu-beyond-fold", "ill-posed", NO_SOLUTION)
class BratuBeyondFold(Scalar):
    """u″ + 4eᵘ = 0, zero at both ends: beyond 3.51 in the place of 4 there is no solution."""

    domain = Box(x=(0, 1))

    def residual(self, u: Field, p: Point) -> Array:
        return u.xx + 4 * exp(u.value)

    def conditions(self) -> Conditions:
        return [Dirichlet(0.0)]


@listed("missing-side", "ill-posed", NOT_UNIQUE)
class MissingSide(Scalar):
    """Δu = 0 in a square, u given on three sides alone."""

    domain = SQUARE

    def residual(self, u: Field, p: Point) -> Array:
        return u.laplacian

    def conditions(self) -> Conditions:
        return [Dirichlet(self.exact, on=("x", "y.min"))]

    def exact(self, p: Point) -> Array:
        return exp(p.x) * cos(p.y)


@listed("cauchy-laplace", "ill-posed", UNSTABLE)
class CauchyLaplace(Scalar):
    """Δu = 0 in a square, value and slope on one side and neither on the opposite one."""

    domain = SQUARE

    def residual(self, u: Field, p: Point) -> Array:
        return u.laplacian

    def conditions(self) -> Conditions:
        return [
            Dirichlet(0.0, on=("x", "y.min")),
            Neumann(lambda p: -pi * sin(pi * p.x), on="y.min"),
        ]

    def exact(self, p: Point) -> Array:
        return sin(pi * p.x) * sinh(pi * p.y)


@listed("overdetermined", "ill-posed", NO_SOLUTION)
class Overdetermined(Scalar):
    """Δu = −1 in a square with value and slope zero on all sides, one condition too many."""

    domain = SQUARE

    def residual(self, u: Field, p: Point) -> Array:
        return u.laplacian + 1

    def conditions(self) -> Conditions:
        return [Dirichlet(0.0), Neumann(0.0)]


@listed("front-anywhere", "ill-posed", f"not solved, or {NOT_UNIQUE}", epsilon=0.05)
@listed("front-held", "nonlinear", epsilon=0.4)
class StandingFront(Scalar):
    """½ε²u″ = u³ − u, u = tanh(x/ε) at both ends: if these are far, the front may stand anywhere."""

    epsilon: float
    domain = Box(x=(-1, 1))

    def residual(self, u: Field, p: Point) -> Array:
        return self.epsilon**2 * u.xx / 2 - u**3 + u

    def conditions(self) -> Conditions:
        return [Dirichlet(self.exact)]

    def exact(self, p: Point) -> Array:
        return tanh(p.x / self.epsilon)


# References that are computed.


@dataclass(frozen=True)
class Waves:
    """Fourier series along x, whose coefficients are splines of degree seven in time."""

    origin: float
    waves: np.ndarray
    coefficients: BSpline

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """The complex values ``(fields, n)`` at points ``(t, x)``."""
        several = [self._values(part) for part in np.array_split(points, len(points) // 4096 + 1)]
        return np.concatenate(several, axis=-1)

    def _values(self, points: np.ndarray) -> np.ndarray:
        t, x = points.T
        real, imaginary = np.moveaxis(self.coefficients(t), -1, 0)
        phases = np.exp(1j * self.waves * (x - self.origin)[:, None])
        return np.einsum("nfk,nk->fn", real + 1j * imaginary, phases) / self.waves.size


Spectra = np.ndarray
"""Discrete Fourier transforms ``(fields, modes)``."""


def evolve(
    problem: hp.Problem,
    linear: Callable[[np.ndarray], np.ndarray],
    nonlinear: Callable[[np.ndarray, np.ndarray], Spectra],
    *,
    modes: int = 256,
    steps: int,
    saves: int = 500,
    walls: bool = False,
    is_complex: bool = False,
) -> Waves:
    """The solution of ``v' = L(k) v + N(values, k)`` in Fourier space, by ETDRK4.

    Args:
        linear: The wave numbers to the factors L, ``(fields, modes)`` or ``(modes,)``.
        nonlinear: The values ``(fields, modes)`` on the grid and the wave numbers to the spectra N.
        walls: Whether slopes are zero at both ends: the solution is even, on twice the length.
        is_complex: Whether two fields are the real and imaginary part of one.
    """
    (begin, end), (lower, upper) = problem.domain.bounds
    length = (upper - lower) * (2 if walls else 1)
    x = lower + length * np.arange(modes) / modes
    seen = np.where(x > upper, 2 * upper - x, x)
    values = initial_values(problem, np.stack([np.full_like(x, begin), seen], axis=-1))
    start = np.stack([values[name] for name in problem.fields])
    start = start[:1] + 1j * start[1:] if is_complex else start
    k = 2 * pi / length * np.fft.fftfreq(modes, 1 / modes)

    def right_side(spectra: Spectra) -> Spectra:
        on_grid = np.fft.ifft(spectra)
        return nonlinear(on_grid if is_complex else on_grid.real, k)

    states = integrate(linear(k), right_side, np.fft.fft(start), end - begin, steps, saves)
    times = np.linspace(begin, end, saves + 1)
    parts = np.stack([states.real, states.imag], axis=-1)
    return Waves(lower, k, make_interp_spline(times, parts, k=7))


def cole_hopf(nu: float, t: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The solution of ``u_t + u u_x = ν u_xx`` from sin x.

    ``u = ∫ sin y f(y) dz / ∫ f(y) dz`` with ``f = exp(cos y/2ν − z²)`` and ``y = x − √(4νt) z``. Both
    are smooth and decay, so that sums over equidistant z are as good as integrals.
    """
    reach = 9 + np.sqrt(t.max() / (4 * nu))
    z = np.arange(-reach, reach, 0.06)
    y = x[:, None] - np.sqrt(4 * nu * t)[:, None] * z
    exponent = np.cos(y) / (2 * nu) - z**2
    f = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    return (f * np.sin(y)).sum(axis=1) / f.sum(axis=1)


# With time, periodic.


class Ring(Scalar):
    """One field on a ring of length 2π, up to the time 1."""

    domain = TimeBox(t=(0, 1), x=(0, 2 * pi))


@listed("advection-turns", "smooth", speed=20.0)
@listed("advection-slow", "smooth", speed=1.0)
class Advection(Ring):
    """u_t + c u_x = 0 from exp(sin x)."""

    speed: float

    def residual(self, u: Field, p: Point) -> Array:
        return u.t + self.speed * u.x

    def conditions(self) -> Conditions:
        return [Initial(lambda p: exp(sin(p.x))), Periodic("x")]

    def exact(self, p: Point) -> Array:
        return exp(sin(p.x - self.speed * p.t))


@listed("advection-square", "shock", UNRESOLVED)
class AdvectionSquare(Ring):
    """u_t + u_x = 0 from a square wave: its jumps stay jumps."""

    def residual(self, u: Field, p: Point) -> Array:
        return u.t + u.x

    def conditions(self) -> Conditions:
        return [Initial(lambda p: jnp.sign(sin(p.x))), Periodic("x")]

    def exact(self, p: Point) -> Array:
        return jnp.sign(sin(p.x - p.t))


@listed("burgers-shock", "shock", UNRESOLVED, nu=1e-3)
@listed("burgers-steep", "layer", UNRESOLVED, nu=5e-3)
@listed("burgers-smooth", "nonlinear", nu=0.05)
class Burgers(Scalar):
    """u_t + u u_x = ν u_xx from ½ + sin x: from t = 1 on there is a front of thickness 2ν, moving."""

    nu: float
    domain = TimeBox(t=(0, 2), x=(0, 2 * pi))

    def residual(self, u: Field, p: Point) -> Array:
        return u.t + u * u.x - self.nu * u.xx

    def conditions(self) -> Conditions:
        return [Initial(lambda p: 0.5 + sin(p.x)), Periodic("x")]

    def known(self, points: np.ndarray) -> dict[str, np.ndarray]:
        several = [
            0.5 + cole_hopf(self.nu, t, x - t / 2)
            for t, x in (part.T for part in np.array_split(points, len(points) // 1024 + 1))
        ]
        return {"u": np.concatenate(several)}


@listed("fisher-kpp", "nonlinear")
class FisherKPP(Scalar):
    """u_t = 0.05 u_xx + 4u(1 − u) from a bump: two fronts that run apart."""

    domain = TimeBox(t=(0, 2), x=(-pi, pi))

    def residual(self, u: Field, p: Point) -> Array:
        return u.t - 0.05 * u.xx - 4 * u * (1 - u)

    def conditions(self) -> Conditions:
        return [Initial(lambda p: 0.5 * exp(4 * (cos(p.x) - 1))), Periodic("x")]

    @cached_property
    def waves(self) -> Waves:
        return evolve(
            self,
            lambda k: 4 - 0.05 * k**2,
            lambda u, k: np.fft.fft(-4 * u**2),
            steps=4000,
        )

    def known(self, points: np.ndarray) -> dict[str, np.ndarray]:
        return {"u": self.waves(points)[0].real}


@listed("heat-variable", "smooth")
class HeatVariable(Ring):
    """u_t = (1 + ½ sin x) u_xx + f with u = e⁻ᵗ sin x: a coefficient that varies on the ring."""

    def residual(self, u: Field, p: Point) -> Array:
        return u.t - (1 + 0.5 * sin(p.x)) * u.xx - 0.5 * sin(p.x) ** 2 * exp(-p.t)

    def conditions(self) -> Conditions:
        return [Initial(lambda p: sin(p.x)), Periodic("x")]

    def exact(self, p: Point) -> Array:
        return exp(-p.t) * sin(p.x)


@listed("wave-periodic", "smooth")
class WavePeriodic(Ring):
    """u_tt = 9 u_xx: one wave to the right, another to the left."""

    def residual(self, u: Field, p: Point) -> Array:
        return u.tt - 9 * u.xx

    def conditions(self) -> Conditions:
        return [
            Initial(lambda p: exp(sin(p.x)) + cos(2 * p.x) / 2),
            Initial(lambda p: -3 * (cos(p.x) * exp(sin(p.x)) + sin(2 * p.x)), derivative="t"),
            Periodic("x"),
        ]

    def exact(self, p: Point) -> Array:
        return exp(sin(p.x - 3 * p.t)) + cos(2 * (p.x + 3 * p.t)) / 2


@listed("sine-gordon", "nonlinear")
class SineGordon(Scalar):
    """u_tt = u_xx − sin u: a breather on a long ring."""

    domain = TimeBox(t=(0, 5), x=(-40, 40))

    def residual(self, u: Field, p: Point) -> Array:
        return u.tt - u.xx + sin(u.value)

    def conditions(self) -> Conditions:
        return [
            Initial(0.0),
            Initial(lambda p: 3.2 / cosh(0.8 * p.x), derivative="t"),
            Periodic("x"),
        ]

    def exact(self, p: Point) -> Array:
        return 4 * jnp.arctan(4 / 3 * sin(0.6 * p.t) / cosh(0.8 * p.x))


@listed("schroedinger", "system")
class Schroedinger(hp.Problem):
    """iψ_t = −½ψ_xx for ψ = u + iv: two plane waves."""

    domain = TimeBox(t=(0, 2), x=(0, 2 * pi))
    fields = ("u", "v")

    def residual(self, u: Field, v: Field, p: Point) -> tuple[Array, Array]:
        return u.t + v.xx / 2, v.t - u.xx / 2

    def conditions(self) -> Conditions:
        return [
            Initial(lambda p: cos(p.x) + cos(3 * p.x) / 2, field="u"),
            Initial(lambda p: sin(p.x) + sin(3 * p.x) / 2, field="v"),
            Periodic("x"),
        ]

    def exact(self, p: Point) -> tuple[Array, Array]:
        a, b = p.x - p.t / 2, 3 * p.x - 4.5 * p.t
        return cos(a) + cos(b) / 2, sin(a) + sin(b) / 2


@listed("nonlinear-schroedinger", "system")
class NonlinearSchroedinger(hp.Problem):
    """iψ_t = −½ψ_xx − |ψ|²ψ for ψ = u + iv, from an even field with a ripple that grows."""

    domain = TimeBox(t=(0, 2), x=(0, 2 * pi))
    fields = ("u", "v")

    def residual(self, u: Field, v: Field, p: Point) -> tuple[Array, Array]:
        density = u**2 + v**2
        return u.t + v.xx / 2 + density * v, v.t - u.xx / 2 - density * u

    def conditions(self) -> Conditions:
        start = Initial(lambda p: 1 + 0.2 * cos(p.x), field="u")
        return [start, Initial(0.0, field="v"), Periodic("x")]

    @cached_property
    def waves(self) -> Waves:
        return evolve(
            self,
            lambda k: -0.5j * k**2,
            lambda psi, k: np.fft.fft(1j * np.abs(psi) ** 2 * psi),
            modes=64,
            steps=8000,
            is_complex=True,
        )

    def known(self, points: np.ndarray) -> dict[str, np.ndarray]:
        (psi,) = self.waves(points)
        return {"u": psi.real, "v": psi.imag}


class KortewegDeVries(Scalar):
    """u_t + 6u u_x + u_xxx = 0 on a long ring."""

    def residual(self, u: Field, p: Point) -> Array:
        return u.t + 6 * u * u.x + u.xxx


@listed("kdv-soliton", "nonlinear")
class KdVSoliton(KortewegDeVries):
    """u_t + 6u u_x + u_xxx = 0: one soliton."""

    domain = TimeBox(t=(0, 1), x=(-20, 20))

    def conditions(self) -> Conditions:
        return [Initial(self.exact), Periodic("x")]

    def exact(self, p: Point) -> Array:
        return 2 / cosh(p.x + 2 - 4 * p.t) ** 2


@listed("kdv-two-solitons", "nonlinear")
class KdVTwoSolitons(KortewegDeVries):
    """u_t + 6u u_x + u_xxx = 0: a soliton overtakes another."""

    domain = TimeBox(t=(0, 3), x=(-30, 30))

    def conditions(self) -> Conditions:
        return [Initial(self.exact), Periodic("x")]

    def exact(self, p: Point) -> Array:
        """2 (log f)_xx with f of Hirota."""
        k, m = 2.0, 1.4
        a, b = exp(k * (p.x + 6) - k**3 * p.t), exp(m * (p.x + 3) - m**3 * p.t)
        both = ((k - m) / (k + m)) ** 2 * a * b
        f = 1 + a + b + both
        f_x = k * a + m * b + (k + m) * both
        f_xx = k**2 * a + m**2 * b + (k + m) ** 2 * both
        return 2 * (f_xx / f - (f_x / f) ** 2)


@listed("airy", "smooth")
class Airy(Ring):
    """u_t + u_xxx = 0: three waves, each with a speed of its own."""

    def residual(self, u: Field, p: Point) -> Array:
        return u.t + u.xxx

    def conditions(self) -> Conditions:
        return [Initial(self.exact), Periodic("x")]

    def exact(self, p: Point) -> Array:
        return cos(p.x + p.t) + sin(2 * p.x + 8 * p.t) / 2 + cos(3 * p.x + 27 * p.t) / 3


@listed("kuramoto-sivashinsky-ring", "chaotic", "solved, less accurately later on")
class KuramotoSivashinsky(Scalar):
    """u_t + u u_x + u_xx + u_xxxx = 0 on a ring with eight cells: chaos sets in."""

    domain = TimeBox(t=(0, 50), x=(0, 16 * pi))

    def residual(self, u: Field, p: Point) -> Array:
        return u.t + u * u.x + u.xx + u.xxxx

    def conditions(self) -> Conditions:
        return [Initial(lambda p: cos(p.x / 4) + sin(p.x / 8)), Periodic("x")]

    @cached_property
    def waves(self) -> Waves:
        return evolve(
            self,
            lambda k: k**2 - k**4,
            lambda u, k: -0.5j * k * np.fft.fft(u**2),
            steps=32_000,
            saves=2000,
        )

    def known(self, points: np.ndarray) -> dict[str, np.ndarray]:
        return {"u": self.waves(points)[0].real}


@listed("cahn-hilliard", "nonlinear")
class CahnHilliard(Ring):
    """u_t = (u³ − u − 0.1 u_xx)_xx: a mixture that separates."""

    def residual(self, u: Field, p: Point) -> Array:
        return u.t - (3 * u**2 - 1) * u.xx - 6 * u * u.x**2 + 0.1 * u.xxxx

    def conditions(self) -> Conditions:
        return [Initial(lambda p: 0.2 * cos(p.x) + 0.1 * sin(2 * p.x)), Periodic("x")]

    @cached_property
    def waves(self) -> Waves:
        return evolve(
            self,
            lambda k: k**2 - 0.1 * k**4,
            lambda u, k: -(k**2) * np.fft.fft(u**3),
            modes=128,
            steps=8000,
        )

    def known(self, points: np.ndarray) -> dict[str, np.ndarray]:
        return {"u": self.waves(points)[0].real}


@listed("advection-diffusion-2d", "smooth")
class AdvectionDiffusion2D(Scalar):
    """u_t + u_x + ½u_y = 0.1 Δu on a torus."""

    domain = TimeBox(t=(0, 1), x=(0, 2 * pi), y=(0, 2 * pi))

    def residual(self, u: Field, p: Point) -> Array:
        return u.t + u.x + 0.5 * u.y - 0.1 * u.laplacian

    def conditions(self) -> Conditions:
        return [Initial(self.exact), Periodic("x"), Periodic("y")]

    def exact(self, p: Point) -> Array:
        x, y = p.x - p.t, p.y - p.t / 2
        return exp(-0.2 * p.t) * sin(x) * cos(y) + exp(-0.5 * p.t) * cos(2 * x + y)


@listed("backward-heat", "ill-posed", UNSTABLE)
class BackwardHeat(Ring):
    """u_t = −u_xx from sin x: the wave with number k grows like exp k²t."""

    def residual(self, u: Field, p: Point) -> Array:
        return u.t + u.xx

    def conditions(self) -> Conditions:
        return [Initial(lambda p: sin(p.x)), Periodic("x")]

    def exact(self, p: Point) -> Array:
        return exp(p.t) * sin(p.x)


@listed("backward-heat-impossible", "ill-posed", NO_SOLUTION)
class BackwardHeatImpossible(Ring):
    """u_t = −u_xx from exp(cos x), which no heat flow leads to."""

    def residual(self, u: Field, p: Point) -> Array:
        return u.t + u.xx

    def conditions(self) -> Conditions:
        return [Initial(lambda p: exp(cos(p.x))), Periodic("x")]


@listed("elliptic-in-time", "ill-posed", UNSTABLE)
class EllipticInTime(Ring):
    """u_tt + u_xx = 0 from sin x (Hadamard): the wave with number k grows like exp kt."""

    def residual(self, u: Field, p: Point) -> Array:
        return u.tt + u.xx

    def conditions(self) -> Conditions:
        return [Initial(lambda p: sin(p.x)), Initial(0.0, derivative="t"), Periodic("x")]

    def exact(self, p: Point) -> Array:
        return cosh(p.t) * sin(p.x)


@listed("blow-up", "ill-posed", "not solved: there is no solution beyond t = ½")
class BlowUp(Ring):
    """u_t = 0.1 u_xx + u² from 2 + cos x: infinite before t = ½."""

    def residual(self, u: Field, p: Point) -> Array:
        return u.t - 0.1 * u.xx - u**2

    def conditions(self) -> Conditions:
        return [Initial(lambda p: 2 + cos(p.x)), Periodic("x")]


# With time and walls.


class Rod(Scalar):
    """One field between x = 0 and 1, up to the time 1."""

    domain = TimeBox(t=(0, 1), x=(0, 1))


@listed("heat-cold-walls", "time-walls")
class HeatColdWalls(Rod):
    """u_t = 0.1 u_xx, zero at both ends: two waves that decay."""

    def residual(self, u: Field, p: Point) -> Array:
        return u.t - 0.1 * u.xx

    def conditions(self) -> Conditions:
        return [Initial(self.exact), Dirichlet(0.0)]

    def exact(self, p: Point) -> Array:
        rate = 0.1 * pi**2 * p.t
        return exp(-rate) * sin(pi * p.x) + exp(-9 * rate) * sin(3 * pi * p.x) / 2


@listed("heat-changing-walls", "time-walls")
class HeatChangingWalls(Rod):
    """u_t = ½ u_xx: both ends are heated and cooled in turns, and the heat wave goes in."""

    def residual(self, u: Field, p: Point) -> Array:
        return u.t - 0.5 * u.xx

    def conditions(self) -> Conditions:
        return [Initial(self.exact), Dirichlet(self.exact)]

    def exact(self, p: Point) -> Array:
        return exp(-3 * p.x) * cos(9 * p.t - 3 * p.x)


@listed("heat-flux-walls", "time-walls")
class HeatFluxWalls(Rod):
    """u_t = 0.2 u_xx with the flux given at both ends, which depends on time."""

    def residual(self, u: Field, p: Point) -> Array:
        return u.t - 0.2 * u.xx

    def conditions(self) -> Conditions:
        slope = -2 * np.sin(2)
        return [
            Initial(lambda p: cos(2 * p.x)),
            Neumann(0.0, on="x.min"),
            Neumann(lambda p: slope * exp(-0.8 * p.t), on="x.max"),
        ]

    def exact(self, p: Point) -> Array:
        return exp(-0.8 * p.t) * cos(2 * p.x)


@listed("heat-robin", "time-walls")
class HeatRobin(Rod):
    """u_t = u_xx, insulated at the left; at the right the flux is tan 1 times the value."""

    def residual(self, u: Field, p: Point) -> Array:
        return u.t - u.xx

    def conditions(self) -> Conditions:
        return [
            Initial(lambda p: cos(p.x)),
            Neumann(0.0, on="x.min"),
            Boundary(lambda u, p: p.nx * u.x + np.tan(1) * u, on="x.max", name="robin"),
        ]

    def exact(self, p: Point) -> Array:
        return exp(-p.t) * cos(p.x)


@listed("heat-jump", "singular", UNRESOLVED)
class HeatJump(Rod):
    """u_t = 0.1 u_xx from 1 with zero at both ends: in the corners the solution jumps."""

    def residual(self, u: Field, p: Point) -> Array:
        return u.t - 0.1 * u.xx

    def conditions(self) -> Conditions:
        return [Initial(1.0), Dirichlet(0.0)]

    def exact(self, p: Point) -> Array:
        width = 2 * sqrt(0.1 * jnp.maximum(p.t, 1e-12))
        images = [jax.scipy.special.erf((p.x - n) / width) for n in range(-6, 8)]
        steps = [(a - b) / 2 for a, b in pairwise(images)]
        return sum(steps[2::2], steps[0]) - sum(steps[3::2], steps[1])


@listed("black-scholes", "singular", UNRESOLVED)
class BlackScholes(Scalar):
    """The price of an option, t the time until it can be exercised: it starts with a kink."""

    domain = TimeBox(t=(0, 1), x=(0.2, 3))

    def residual(self, u: Field, p: Point) -> Array:
        return u.t - 0.045 * p.x**2 * u.xx - 0.05 * p.x * u.x + 0.05 * u

    def conditions(self) -> Conditions:
        return [Initial(lambda p: jnp.maximum(p.x - 1, 0)), Dirichlet(self.exact)]

    def exact(self, p: Point) -> Array:
        spread = 0.3 * sqrt(jnp.maximum(p.t, 1e-12))
        d = (log(p.x) + 0.05 * p.t) / spread + spread / 2
        normal = jax.scipy.stats.norm.cdf
        return p.x * normal(d) - exp(-0.05 * p.t) * normal(d - spread)


@listed("wave-free-ends", "time-walls")
class WaveFreeEnds(Rod):
    """u_tt = 4 u_xx with slope zero at both ends: two standing waves."""

    def residual(self, u: Field, p: Point) -> Array:
        return u.tt - 4 * u.xx

    def conditions(self) -> Conditions:
        return [
            Initial(lambda p: cos(pi * p.x)),
            Initial(lambda p: 1.8 * pi * cos(3 * pi * p.x), derivative="t"),
            Neumann(0.0),
        ]

    def exact(self, p: Point) -> Array:
        first = cos(pi * p.x) * cos(2 * pi * p.t)
        return first + 0.3 * cos(3 * pi * p.x) * sin(6 * pi * p.t)


@listed("wave-leaving", "time-walls")
class WaveLeaving(Rod):
    """u_tt = u_xx: a pulse that leaves through the right end (u_t + u_x = 0 there)."""

    def residual(self, u: Field, p: Point) -> Array:
        return u.tt - u.xx

    def conditions(self) -> Conditions:
        return [
            Initial(lambda p: exp(-30 * (p.x - 0.4) ** 2)),
            Initial(lambda p: 60 * (p.x - 0.4) * exp(-30 * (p.x - 0.4) ** 2), derivative="t"),
            Dirichlet(self.exact, on="x.min"),
            Boundary(lambda u, p: u.t + u.x, on="x.max", name="open"),
        ]

    def exact(self, p: Point) -> Array:
        return exp(-30 * (p.x - p.t - 0.4) ** 2)


@listed("burgers-front-sharp", "shock", UNRESOLVED, nu=0.002)
@listed("burgers-front", "time-walls", nu=0.05)
class BurgersFront(Rod):
    """u_t + u u_x = ν u_xx: a front from 1 to 0 moves to the right, with its values at both ends."""

    nu: float

    def residual(self, u: Field, p: Point) -> Array:
        return u.t + u * u.x - self.nu * u.xx

    def conditions(self) -> Conditions:
        return [Initial(self.exact), Dirichlet(self.exact)]

    def exact(self, p: Point) -> Array:
        return 0.5 - 0.5 * tanh((p.x - 0.25 - p.t / 2) / (4 * self.nu))


@listed("fisher-front", "time-walls")
class FisherFront(Scalar):
    """u_t = u_xx + u(1 − u): a travelling wave (Ablowitz–Zeppetella), its values at both ends."""

    domain = TimeBox(t=(0, 2), x=(-5, 10))

    def residual(self, u: Field, p: Point) -> Array:
        return u.t - u.xx - u * (1 - u)

    def conditions(self) -> Conditions:
        return [Initial(self.exact), Dirichlet(self.exact)]

    def exact(self, p: Point) -> Array:
        root = np.sqrt(6)
        return (1 + exp((p.x - 5 / root * p.t) / root)) ** -2


@listed("advection-inflow", "time-walls")
class AdvectionInflow(Rod):
    """u_t + u_x = 0 with what comes in at the left; nothing is given at the right."""

    def residual(self, u: Field, p: Point) -> Array:
        return u.t + u.x

    def conditions(self) -> Conditions:
        inflow = Dirichlet(lambda p: -sin(2 * pi * p.t), on="x.min")
        return [Initial(lambda p: sin(2 * pi * p.x)), inflow]

    def exact(self, p: Point) -> Array:
        return sin(2 * pi * (p.x - p.t))


@listed("advection-wrong-side", "ill-posed", NO_SOLUTION)
class AdvectionWrongSide(Rod):
    """u_t + u_x = 0 with a value where it flows out, which contradicts what arrives there."""

    def residual(self, u: Field, p: Point) -> Array:
        return u.t + u.x

    def conditions(self) -> Conditions:
        return [Initial(lambda p: sin(pi * p.x) ** 2), Dirichlet(0.0, on="x.max")]


@listed("heat-2d", "time-walls")
class Heat2D(Scalar):
    """u_t = 0.1 Δu in a square, zero on its sides."""

    domain = TimeBox(t=(0, 1), x=(0, 1), y=(0, 1))

    def residual(self, u: Field, p: Point) -> Array:
        return u.t - 0.1 * u.laplacian

    def conditions(self) -> Conditions:
        return [Initial(self.exact), Dirichlet(0.0)]

    def exact(self, p: Point) -> Array:
        rate = 0.1 * pi**2 * p.t
        first = exp(-2 * rate) * sin(pi * p.x) * sin(pi * p.y)
        return first + exp(-5 * rate) * sin(2 * pi * p.x) * sin(pi * p.y) / 2


@listed("heat-disk", "geometry")
class HeatDisk(Scalar):
    """u_t = ½ Δu in a disk with values on its rim that depend on time."""

    domain = hp.Disk(radius=1).over(t=(0, 1))

    def residual(self, u: Field, p: Point) -> Array:
        return u.t - 0.5 * u.laplacian

    def conditions(self) -> Conditions:
        return [Initial(self.exact), Dirichlet(self.exact)]

    def exact(self, p: Point) -> Array:
        return exp(-2.5 * p.t) * cos(p.x) * sin(2 * p.y)


@listed("coupled-diffusion", "system")
class CoupledDiffusion(hp.Problem):
    """Two fields that diffuse and approach each other, with insulated ends."""

    domain = TimeBox(t=(0, 1), x=(0, 1))
    fields = ("u", "v")

    def residual(self, u: Field, v: Field, p: Point) -> tuple[Array, Array]:
        return u.t - 0.1 * u.xx + u - v, v.t - 0.1 * v.xx + v - u

    def conditions(self) -> Conditions:
        return [
            Initial(lambda p: 1 + 2 * cos(pi * p.x), field="u"),
            Initial(1.0, field="v"),
            Neumann(0.0, field="u"),
            Neumann(0.0, field="v"),
        ]

    def exact(self, p: Point) -> tuple[Array, Array]:
        wave = exp(-0.1 * pi**2 * p.t) * cos(pi * p.x)
        apart = exp(-2 * p.t) * wave
        return 1 + wave + apart, 1 + wave - apart


@listed("fitzhugh-nagumo", "system")
class FitzHughNagumo(hp.Problem):
    """u_t = 0.01 u_xx + 5(u − u³ − v), v_t = 0.02 v_xx + u − v: excitation with insulated ends."""

    domain = TimeBox(t=(0, 2), x=(0, 1))
    fields = ("u", "v")

    def residual(self, u: Field, v: Field, p: Point) -> tuple[Array, Array]:
        return u.t - 0.01 * u.xx - 5 * (u - u**3 - v), v.t - 0.02 * v.xx - u + v

    def conditions(self) -> Conditions:
        return [
            Initial(lambda p: 0.5 * cos(pi * p.x) + 0.2 * cos(2 * pi * p.x), field="u"),
            Initial(lambda p: 0.1 * cos(3 * pi * p.x), field="v"),
            Neumann(0.0, field="u"),
            Neumann(0.0, field="v"),
        ]

    @cached_property
    def waves(self) -> Waves:
        return evolve(
            self,
            lambda k: np.stack([5 - 0.01 * k**2, -1 - 0.02 * k**2]),
            lambda w, k: np.fft.fft(np.stack([-5 * (w[0] ** 3 + w[1]), w[0]])),
            steps=8000,
            walls=True,
        )

    def known(self, points: np.ndarray) -> dict[str, np.ndarray]:
        u, v = self.waves(points).real
        return {"u": u, "v": v}


@listed("parabolic-elliptic", "system")
class ParabolicElliptic(hp.Problem):
    """u_t = 0.1 u_xx + w − u with w_xx − w + u = 0 at all times: w has no start."""

    domain = TimeBox(t=(0, 1), x=(0, 1))
    fields = ("u", "w")

    def residual(self, u: Field, w: Field, p: Point) -> tuple[Array, Array]:
        return u.t - 0.1 * u.xx - w + u, w.xx - w + u

    def conditions(self) -> Conditions:
        start = Initial(lambda p: 1 + cos(pi * p.x), field="u")
        return [start, Neumann(0.0, field="u"), Neumann(0.0, field="w")]

    def exact(self, p: Point) -> tuple[Array, Array]:
        share = 1 / (1 + pi**2)
        wave = exp((share - 1 - 0.1 * pi**2) * p.t) * cos(pi * p.x)
        return 1 + wave, 1 + share * wave


@listed("burgers-2d-system", "system", reynolds=80.0)
class Burgers2DSystem(hp.Problem):
    """The Burgers equations for two velocities in a square: a front along a diagonal."""

    reynolds: float
    domain = TimeBox(t=(0, 1), x=(0, 1), y=(0, 1))
    fields = ("u", "v")

    def residual(self, u: Field, v: Field, p: Point) -> tuple[Array, Array]:
        return (
            u.t + u * u.x + v * u.y - u.laplacian / self.reynolds,
            v.t + u * v.x + v * v.y - v.laplacian / self.reynolds,
        )

    def conditions(self) -> Conditions:
        def values(i: int) -> Callable[[Point], Array]:
            return lambda p: self.exact(p)[i]

        pairs = [(field, values(i)) for i, field in enumerate(self.fields)]
        starts = [Initial(value, field=field) for field, value in pairs]
        return [*starts, *(Dirichlet(value, field=field) for field, value in pairs)]

    def exact(self, p: Point) -> tuple[Array, Array]:
        share = jax.nn.sigmoid((4 * p.x - 4 * p.y + p.t) * self.reynolds / 32) / 4
        return 0.75 - share, 0.75 + share


def main() -> None:
    for name, entry in catalogue().items():
        print(f"{name:26} {entry.kind:11} {hp.configure(entry.problem).describe()}", flush=True)


if __name__ == "__main__":
    main()
