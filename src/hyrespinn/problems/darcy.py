"""Darcy flow through a ring, with a solution that is known."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import jax.numpy as jnp
from jax import Array

from ..errors import UserError
from ..geometry import Annulus, Domain
from .conditions import Boundary, Condition, Dirichlet, MeanValue
from .fields import Field, Point
from .permeability import Permeability, flux, minus_divergence
from .problem import Problem, Quantities, exact_fields, register


class Darcy(Problem):
    """−∇·(μ∇u) = f with f such that ``exact`` solves it; the flux is −μ∇u.

    ``mu`` is a number, a symmetric positive definite matrix, or a function of the point that
    returns either: ``lambda p: 1 + p.x**2`` or ``lambda p: [[2, p.x], [p.x, 2]]``.
    """

    mu: Any = 1.0
    inner: float = 0.25
    outer: float = 1.0
    fields = ("u",)

    @property
    def ring(self) -> Annulus:
        if not self.inner > 0:
            raise UserError(f"problem.inner must be positive, not {self.inner}.")
        return Annulus(self.inner, self.outer)

    @cached_property
    def permeability(self) -> Permeability:
        return Permeability(self.mu, self.domain)

    def residual(self, u: Field, p: Point) -> Array:
        (known,) = exact_fields(self, p, order=2)
        return minus_divergence(self.permeability, u, p) - minus_divergence(
            self.permeability, known, p
        )

    def derived(self, u: Field, p: Point) -> Quantities:
        return {"flux": flux(self.permeability, u, p)}

    def outflow(self, u: Field, p: Point) -> Array:
        """The flux through the boundary, less that of the exact solution."""
        (known,) = exact_fields(self, p, order=1)
        pairs = zip(flux(self.permeability, u, p), flux(self.permeability, known, p), strict=True)
        return sum(
            getattr(p, f"n{c}") * (q - q_known)
            for c, (q, q_known) in zip(self.domain.space, pairs, strict=True)
        )

    def flux_conditions(self) -> list[Condition]:
        """The flux on the whole boundary, and the mean of u, which it leaves free: zero by symmetry."""
        return [Boundary(self.outflow, name="flux"), MeanValue(0.0)]


class Darcy2D(Darcy):
    """Darcy flow in the ring inner ≤ r ≤ outer."""

    test_grid = (201, 201)

    @cached_property
    def domain(self) -> Domain:  # type: ignore[override]
        return self.ring

    def exact(self, p: Point) -> Array:
        return jnp.sin(jnp.pi * p.x) * jnp.cos(3 * jnp.pi * p.y)


class Darcy3D(Darcy):
    """Darcy flow in the ring times 0 ≤ z ≤ 1."""

    test_grid = (61, 61, 31)

    @cached_property
    def domain(self) -> Domain:  # type: ignore[override]
        return self.ring.extrude(z=(0, 1))

    def exact(self, p: Point) -> Array:
        return jnp.sin(jnp.pi * p.x) * jnp.sin(3 * jnp.pi * p.y) * jnp.sin(jnp.pi * p.z)


@register("darcy-2d-dirichlet")
class Darcy2DDirichlet(Darcy2D):
    """−∇·(μ∇u) = f in a ring, u = sin πx cos 3πy given on the boundary."""

    description = "flow in a ring, pressure given on the boundary"

    def conditions(self) -> list[Condition]:
        return [Dirichlet(self.exact)]


@register("darcy-2d-neumann")
class Darcy2DNeumann(Darcy2D):
    """−∇·(μ∇u) = f in a ring, the flux of u = sin πx cos 3πy given on the boundary."""

    description = "flow in a ring, flux given on the boundary"

    def conditions(self) -> list[Condition]:
        return self.flux_conditions()


@register("darcy-3d-dirichlet")
class Darcy3DDirichlet(Darcy3D):
    """−∇·(μ∇u) = f in a ring times [0, 1], u = sin πx sin 3πy sin πz given on the boundary."""

    description = "flow in a thick ring, pressure given on the boundary"

    def conditions(self) -> list[Condition]:
        return [Dirichlet(self.exact)]


@register("darcy-3d-neumann")
class Darcy3DNeumann(Darcy3D):
    """−∇·(μ∇u) = f in a ring times [0, 1], the flux of sin πx sin 3πy sin πz given on the boundary."""

    description = "flow in a thick ring, flux given on the boundary"

    def conditions(self) -> list[Condition]:
        return self.flux_conditions()
