"""Problems that are not built in, with known answers: does a run know whether it has solved one?

``catalogue()`` gives them by name. The easy ones are to be solved and called solved; the hard ones to be
solved, or called unresolved; the impossible ones never to be called solved.

Run ``python benchmarks/verdict_problems.py`` for a table with the method that ``auto`` chooses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import pi
from typing import Any, TypeVar

import hyrespinn as hp
import jax
import jax.numpy as jnp
import numpy as np
import scipy
from hyrespinn import Boundary, Box, Dirichlet, MeanValue, Neumann
from hyrespinn.problems.fields import Field, Point
from jax import Array
from jax.numpy import cos, cosh, exp, log, sin, sinh, sqrt, tanh

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
    """A reference that the problem computes (its method ``reference``), or its exact solution."""
    reference = getattr(problem, "reference", None)
    if reference is not None:
        return reference
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


@listed("front-anywhere", "ill-posed", NOT_UNIQUE, epsilon=0.05)
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


def main() -> None:
    for name, entry in catalogue().items():
        print(f"{name:26} {entry.kind:11} {hp.configure(entry.problem).describe()}", flush=True)


if __name__ == "__main__":
    main()
