"""What every domain can do, and how domains are put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float

from ..errors import UserError
from .flat import Bounds, box_patch, check_side, moment_patch, plane_patch
from .patch import Patch, Placed, Points, draw, fixed_set, scatter, spread
from .sampling import PoissonDisk, Sampler, UnitSampler, sampler_named, sobol_points


class Domain:
    """A region with named coordinates; time, where there is one, is the first of them.

    Domains are put together with ``|``, ``&``, ``-``, :meth:`extrude` and :meth:`over`:

    >>> from hyrespinn import Box, Disk
    >>> plate = Box(x=(0, 1), y=(0, 1)) - Disk(radius=0.2, center=(0.5, 0.5)).named("hole")
    >>> plate.pieces
    ('x.min', 'x.max', 'y.min', 'y.max', 'hole.outer')
    >>> plate.over(t=(0, 1)).coordinates
    ('t', 'x', 'y')

    ``body`` and ``faces`` describe it as images of unit cubes; ``level`` is negative inside, zero
    on the boundary and positive outside, for numpy's arrays and JAX's; ``made_by`` is a call that
    makes the same domain.
    """

    def __init__(
        self,
        coordinates: tuple[str, ...],
        bounds: Bounds,
        body: Patch,
        faces: Mapping[str, Patch],
        level: Callable[[Points], Points],
        text: str,
        start: Patch | None = None,
        made_by: tuple[Callable[..., Domain], tuple[Any, ...]] | None = None,
    ):
        self.coordinates, self.bounds = coordinates, bounds
        self.body, self.faces, self.level = body, dict(faces), level
        self.text, self.start, self.made_by = text, start, made_by
        if len(set(coordinates)) < len(coordinates):
            raise UserError(f"The domain {text} has a coordinate twice: {', '.join(coordinates)}.")

    def __repr__(self) -> str:
        return self.text

    def __reduce__(self) -> Any:
        """A file holds how the domain was made, not its functions."""
        return super().__reduce__() if self.made_by is None else self.made_by

    @property
    def dimension(self) -> int:
        return len(self.coordinates)

    @property
    def has_time(self) -> bool:
        return self.start is not None

    @property
    def space(self) -> tuple[str, ...]:
        """The coordinates without time."""
        return self.coordinates[1:] if self.has_time else self.coordinates

    @property
    def volume(self) -> float:
        """Length, area or volume, with time where there is one; an estimate for compositions."""
        return self.body.measure

    @property
    def pieces(self) -> tuple[str, ...]:
        """The names of the pieces of the boundary (in space)."""
        return tuple(self.faces)

    def expand(self, on: str | tuple[str, ...] | None) -> tuple[str, ...]:
        """The pieces meant by ``on``: a piece, the first part of its name, several, or all for ``None``.

        >>> from hyrespinn import Box
        >>> Box(x=(0, 1), y=(0, 2)).expand("x")
        ('x.min', 'x.max')
        """
        if on is None:
            return self.pieces
        names = (on,) if isinstance(on, str) else tuple(on)
        result: list[str] = []
        for name in names:
            found = [p for p in self.pieces if p == name or p.startswith(f"{name}.")]
            if not found:
                raise UserError(
                    f"There is no boundary piece {name!r}; this domain has {', '.join(self.pieces)} "
                    "(the first part of a name, such as x, stands for all pieces that begin with it)."
                )
            result += found
        return tuple(dict.fromkeys(result))

    # Points, inside compiled code.

    def interior(self, key: Array, count: int, sampler: Sampler, dtype: jnp.dtype) -> Array:
        """``count`` points of the domain."""
        return draw((self.body,), key, count, sampler, dtype).points

    def boundary(
        self, key: Array, count: int, pieces: tuple[str, ...], sampler: Sampler, dtype: jnp.dtype
    ) -> tuple[Array, Array]:
        """``count`` points on these pieces and the outward normals there, both ``(count, d)``."""
        placed = draw(tuple(self.faces[p] for p in pieces), key, count, sampler, dtype)
        return placed.points, placed.normals

    def initial(self, key: Array, count: int, sampler: Sampler, dtype: jnp.dtype) -> Array:
        """``count`` points at the initial time."""
        if self.start is None:
            raise UserError(f"{self!r} has no time; use TimeBox or .over(t=…).")
        return draw((self.start,), key, count, sampler, dtype).points

    # Points, on the host.

    def sample(self, count: int, method: str = "sobol", seed: int = 0) -> Float[np.ndarray, "n d"]:
        """``count`` points of the domain: kronecker, uniform, sobol, latin or poisson.

        >>> from hyrespinn import Annulus
        >>> Annulus(inner=0.25, outer=1).sample(100, "poisson").shape
        (100, 2)
        """
        return self._host((self.body,), count, method, seed)[0]

    def sample_boundary(
        self,
        count: int,
        on: str | tuple[str, ...] | None = None,
        method: str = "sobol",
        seed: int = 0,
    ) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n d"]]:
        """``count`` points on pieces of the boundary, and the outward normals there."""
        patches = tuple(self.faces[p] for p in self.expand(on))
        points, normals = self._host(patches, count, method, seed)
        assert normals is not None
        return points, normals

    def _host(
        self, patches: tuple[Patch, ...], count: int, method: str, seed: int
    ) -> tuple[np.ndarray, np.ndarray | None]:
        if count < 1:
            raise UserError(f"The number of points must be at least 1, not {count}.")
        if not patches:
            raise UserError(f"{self!r} has no boundary to sample.")
        sampler = sampler_named(method)
        if isinstance(sampler, PoissonDisk):
            points, normals, _ = fixed_set(patches, count, seed)
            return points.copy(), None if normals is None else normals.copy()
        assert isinstance(sampler, UnitSampler)
        placed = scatter(patches, count, sampler, seed)
        return placed.points, placed.normals

    def contains(self, points: Float[np.ndarray, "*n d"]) -> Bool[np.ndarray, "*n"]:
        """Whether each point lies in the closed domain, up to rounding."""
        return self.level(np.asarray(points, dtype=float)) <= 1e-9 * self._size

    @property
    def _size(self) -> float:
        return max(b - a for a, b in self.bounds)

    def spread(self, count: int, rng: np.random.Generator) -> Float[np.ndarray, "{count} _"]:
        """``count`` points far from each other when every side of the bounding box has length one."""
        lower, upper = np.asarray(self.bounds).T
        body = self.body

        def place(unit: Points) -> Placed:
            points, _, keep = body.place(unit)
            return Placed((points - lower) / (upper - lower), None, keep)

        scaled = Patch(body.dimension, body.full / float(np.prod(upper - lower)), place)
        points, _, _ = spread((scaled,), count, rng)
        return lower + (upper - lower) * points

    def cover(self, count: int, rng: np.random.Generator) -> Float[np.ndarray, "{count} _"]:
        """``count`` points that cover the domain evenly (a scrambled Sobol sequence)."""
        dimension = self.body.dimension
        return self.body.scatter(count, rng, lambda n: sobol_points(n, dimension, rng)).points

    def grid(self, counts: tuple[int, ...], open_axes: tuple[bool, ...]) -> list[np.ndarray]:
        """Equispaced axes of the bounding box, without the right end on an open (periodic) axis."""
        return [
            np.linspace(a, b, n, endpoint=not is_open)
            for (a, b), n, is_open in zip(self.bounds, counts, open_axes, strict=True)
        ]

    def cut(self, axis: str, at: float) -> Patch:
        """The part of the plane ``axis = at`` inside the domain, with its normal along the axis."""
        if axis not in self.space:
            raise UserError(f"There is no axis {axis!r} to cut; there are {', '.join(self.space)}.")
        i = self.coordinates.index(axis)
        lower, upper = self.bounds[i]
        others = tuple(b for k, b in enumerate(self.bounds) if k != i)
        plane = plane_patch(others, i, at, 1.0)
        inside = plane.where(lambda points, normals: self.level(points) <= 0)
        if not lower < at < upper or inside.share == 0:
            raise UserError(f"The plane {axis} = {at:g} lies outside the domain {self!r}.")
        return plane if inside.share == 1.0 else inside

    # Putting domains together.

    def __or__(self, other: Domain) -> Domain:
        """The union."""
        self._check_partner(other)
        pairs = zip(self.bounds, other.bounds, strict=True)
        bounds = tuple((min(a, c), max(b, d)) for (a, b), (c, d) in pairs)
        return self._composed(
            other,
            "|",
            bounds,
            self.body.joined(other.body.where(lambda points, normals: self.level(points) > 0)),
            lambda a, b: a.__array_namespace__().minimum(a, b),
        )

    def __and__(self, other: Domain) -> Domain:
        """The intersection."""
        self._check_partner(other)
        pairs = zip(self.bounds, other.bounds, strict=True)
        bounds = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in pairs)
        body = min(self.body, other.body, key=lambda patch: patch.measure)
        return self._composed(
            other, "&", bounds, body, lambda a, b: a.__array_namespace__().maximum(a, b)
        )

    def __sub__(self, other: Domain) -> Domain:
        """This domain without the other; the other's boundary inside this one becomes boundary."""
        self._check_partner(other)
        return self._composed(
            other,
            "-",
            self.bounds,
            self.body,
            lambda a, b: a.__array_namespace__().maximum(a, -b),
            flip=True,
        )

    def _check_partner(self, other: Domain) -> None:
        if self.coordinates != other.coordinates or self.has_time or other.has_time:
            raise UserError(
                f"Only domains in the same coordinates of space can be combined, not {self!r} and "
                f"{other!r}; add time afterwards, with .over(t=…)."
            )
        both = set(self.faces) & set(other.faces)
        if both:
            raise UserError(
                f"Both {self!r} and {other!r} have a boundary piece {min(both)!r}; give one of them "
                'a name, such as other.named("hole"), and its pieces become hole.…'
            )

    def _composed(
        self,
        other: Domain,
        sign: str,
        bounds: Bounds,
        body: Patch,
        combine: Callable[[Points, Points], Points],
        flip: bool = False,
    ) -> Domain:
        text = f"({self!r} {sign} {other!r})"

        def level(points: Points) -> Points:
            return combine(self.level(points), other.level(points))

        smallest = min(b - a for a, b in (*self.bounds, *other.bounds))
        largest = max(abs(end) for side in (*self.bounds, *other.bounds) for end in side)

        def is_boundary(
            level: Callable[[Points], Points], points: Points, normals: Points
        ) -> Points:
            """Whether a domain lies on the inner side of these points and not on the outer."""
            # A step small next to every side, and large next to the rounding of the coordinates.
            step = max(1e-5 * smallest, 16 * float(np.finfo(points.dtype).eps) * largest)
            return (level(points - step * normals) < 0) & (level(points + step * normals) > 0)

        def mine(points: Points, normals: Points) -> Points:
            return is_boundary(level, points, normals)

        def theirs(
            points: Points, normals: Points
        ) -> Points:  # where faces coincide, this domain's counts
            return mine(points, normals) & ~is_boundary(self.level, points, normals)

        inner = body.where(lambda points, normals: level(points) <= 0)
        if any(a >= b for a, b in bounds) or inner.share == 0:
            raise UserError(f"The domain {text} is empty.")
        faces = {name: patch.where(mine) for name, patch in self.faces.items()}
        for name, patch in other.faces.items():
            faces[name] = (patch.flipped() if flip else patch).where(theirs)
        kept = {name: face for name, face in faces.items() if face.share > 0}
        operator = {"|": Domain.__or__, "&": Domain.__and__, "-": Domain.__sub__}[sign]
        made_by = (operator, (self, other))
        return Domain(self.coordinates, bounds, inner, kept, level, text, made_by=made_by)

    def named(self, name: str) -> Domain:
        """The same domain with ``name.`` before the names of its pieces."""
        faces = {f"{name}.{piece}": patch for piece, patch in self.faces.items()}
        text = f"{self!r}.named({name!r})"
        return Domain(
            self.coordinates,
            self.bounds,
            self.body,
            faces,
            self.level,
            text,
            self.start,
            made_by=(Domain.named, (self, name)),
        )

    def extrude(self, **side: tuple[float, float]) -> Domain:
        """This domain times an interval of a further axis, such as ``annulus.extrude(z=(0, 1))``."""
        name, bounds = _one_side(side, "extrude", "z=(0, 1)")
        if self.has_time:
            raise UserError("Extrude before adding time: domain.extrude(z=…).over(t=…).")
        split = self.dimension
        interval = box_patch((bounds,))
        faces = {piece: patch.times(interval) for piece, patch in self.faces.items()}
        for end, side_name in enumerate(("min", "max")):
            cap = plane_patch((), 0, bounds[end], 2.0 * end - 1)
            faces[f"{name}.{side_name}"] = self.body.times(cap)

        def level(points: Points) -> Points:
            xp = points.__array_namespace__()
            return xp.maximum(self.level(points[..., :split]), _outside(points[..., split], bounds))

        return Domain(
            (*self.coordinates, name),
            (*self.bounds, bounds),
            self.body.times(interval),
            faces,
            level,
            f"{self!r}.extrude({name}=({bounds[0]:g}, {bounds[1]:g}))",
            made_by=(_extruded, (self, {name: bounds})),
        )

    def over(self, **side: tuple[float, float]) -> Domain:
        """This domain over an interval of time, such as ``annulus.over(t=(0, 1))``."""
        name, bounds = _one_side(side, "over", "t=(0, 1)")
        if self.has_time:
            raise UserError(f"{self!r} has a time already.")
        interval = box_patch((bounds,))

        def level(points: Points) -> Points:
            xp = points.__array_namespace__()
            return xp.maximum(self.level(points[..., 1:]), _outside(points[..., 0], bounds))

        return Domain(
            (name, *self.coordinates),
            (bounds, *self.bounds),
            interval.times(self.body),
            {piece: interval.times(patch) for piece, patch in self.faces.items()},
            level,
            f"{self!r}.over({name}=({bounds[0]:g}, {bounds[1]:g}))",
            start=moment_patch(bounds[0]).times(self.body),
            made_by=(_over, (self, {name: bounds})),
        )


def _extruded(domain: Domain, side: dict[str, tuple[float, float]]) -> Domain:
    return domain.extrude(**side)


def _over(domain: Domain, side: dict[str, tuple[float, float]]) -> Domain:
    return domain.over(**side)


def _one_side(side: Mapping[str, Any], what: str, example: str) -> tuple[str, tuple[float, float]]:
    if len(side) != 1:
        raise UserError(f".{what}() takes one axis, such as .{what}({example}).")
    ((name, bounds),) = side.items()
    return name, check_side(name, bounds)


def _outside(x: Points, bounds: tuple[float, float]) -> Points:
    return abs(x - 0.5 * (bounds[0] + bounds[1])) - 0.5 * (bounds[1] - bounds[0])
