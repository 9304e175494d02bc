"""Boxes, with or without time."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float
from scipy.stats import qmc

from ..errors import UserError
from .domain import Domain
from .sampling import Sampler


class Box(Domain):
    """A box with named sides, such as ``Box(x=(0, 1), y=(0, 2))``.

    Its faces are called ``x.min``, ``x.max``, ``y.min`` and so on; ``x`` stands for both faces
    across that axis.

    >>> Box(x=(0, 1), y=(0, 2)).pieces
    ('x.min', 'x.max', 'y.min', 'y.max')
    """

    def __init__(self, *, _time: bool = False, **sides: tuple[float, float]):
        if not sides:
            raise UserError("A box needs at least one side, such as Box(x=(0, 1)).")
        for name, side in sides.items():
            _check_side(name, side)
        self.coordinates = tuple(sides)
        self.bounds = tuple((float(a), float(b)) for a, b in sides.values())
        self.has_time = _time

    def __repr__(self) -> str:
        sides = ", ".join(
            f"{c}=({a:g}, {b:g})" for c, (a, b) in zip(self.coordinates, self.bounds, strict=True)
        )
        return f"{'TimeBox' if self.has_time else 'Box'}({sides})"

    @property
    def pieces(self) -> tuple[str, ...]:
        return tuple(f"{c}.{side}" for c in self.space for side in ("min", "max"))

    def face(self, piece: str) -> tuple[int, int]:
        """The axis of a face and its side: 0 for the lower one, 1 for the upper."""
        coordinate, side = piece.split(".")
        return self.coordinates.index(coordinate), ("min", "max").index(side)

    def _scale(self, unit: Array) -> Array:
        lower = jnp.asarray([a for a, _ in self.bounds], unit.dtype)
        size = jnp.asarray([b - a for a, b in self.bounds], unit.dtype)
        return lower + size * unit

    def interior(
        self, key: Array, count: int, sampler: Sampler, dtype: Any
    ) -> Float[Array, "{count} {self.dimension}"]:
        return self._scale(sampler(key, count, self.dimension, dtype))

    def initial(
        self, key: Array, count: int, sampler: Sampler, dtype: Any
    ) -> Float[Array, "{count} {self.dimension}"]:
        free = sampler(key, count, self.dimension - 1, dtype)
        return self._scale(jnp.concatenate([jnp.zeros((count, 1), dtype), free], axis=1))

    def boundary(
        self, key: Array, count: int, pieces: tuple[str, ...], sampler: Sampler, dtype: Any
    ) -> tuple[Float[Array, "{count} d"], Float[Array, "{count} d"]]:
        points, normals = [], []
        shares = np.diff(np.linspace(0, count, len(pieces) + 1).astype(int))
        for i, (piece, share) in enumerate(zip(pieces, shares, strict=True)):
            axis, side = self.face(piece)
            share = int(share)
            if self.dimension > 1:
                free = sampler(jax.random.fold_in(key, i), share, self.dimension - 1, dtype)
            else:
                free = jnp.zeros((share, 0), dtype)
            fixed = jnp.full((share, 1), side, dtype)
            unit = jnp.concatenate([free[:, :axis], fixed, free[:, axis:]], axis=1)
            points.append(self._scale(unit).at[:, axis].set(self.bounds[axis][side]))
            outward = jnp.zeros((share, self.dimension), dtype)
            normals.append(outward.at[:, axis].set(2 * side - 1))
        return jnp.concatenate(points), jnp.concatenate(normals)

    def contains(self, points: Float[np.ndarray, "*n d"]) -> Bool[np.ndarray, "*n"]:
        lower, upper = np.asarray(self.bounds).T
        slack = 1e-9 * (upper - lower)
        return np.all((points >= lower - slack) & (points <= upper + slack), axis=-1)

    def spread(self, count: int, rng: np.random.Generator) -> Float[np.ndarray, "{count} _"]:
        lower, upper = np.asarray(self.bounds).T
        return lower + (upper - lower) * poisson_disk(count, self.dimension, rng)

    def cover(self, count: int, rng: np.random.Generator) -> Float[np.ndarray, "{count} _"]:
        lower, upper = np.asarray(self.bounds).T
        powers = int(np.ceil(np.log2(max(count, 2))))
        unit = qmc.Sobol(self.dimension, rng=rng).random_base2(powers)[:count]
        return lower + (upper - lower) * unit

    def grid(self, counts: tuple[int, ...], open_axes: tuple[bool, ...]) -> list[np.ndarray]:
        return [
            np.linspace(a, b, n, endpoint=not is_open)
            for (a, b), n, is_open in zip(self.bounds, counts, open_axes, strict=True)
        ]


def TimeBox(t: tuple[float, float], **sides: tuple[float, float]) -> Box:
    """A box in space over an interval of time, such as ``TimeBox(t=(0, 1), x=(-1, 1))``."""
    return Box(_time=True, t=t, **sides)


def poisson_disk(
    count: int, dimension: int, rng: np.random.Generator
) -> Float[np.ndarray, "{count} _"]:
    """``count`` well-spread points of the unit cube (Poisson-disk sampling).

    The radius is found by bisection: the largest one with which the cube still holds ``count``
    points.

    >>> poisson_disk(32, 2, np.random.default_rng(0)).shape
    (32, 2)
    """
    seed = int(rng.integers(2**32))
    if count == 1:
        return np.full((1, dimension), 0.5)
    upper, lower = 1.5 * count ** (-1 / dimension), 0.1 * count ** (-1 / dimension)
    best: np.ndarray | None = None
    for _ in range(10):
        radius = 0.5 * (lower + upper)
        engine = qmc.PoissonDisk(dimension, radius=radius, rng=np.random.default_rng(seed))
        sample = engine.random(count)
        if len(sample) < count:
            upper = radius
        else:
            best, lower = sample, radius
    if best is None:
        raise RuntimeError(f"no Poisson-disk sample of {count} points in {dimension} dimensions")
    return best


def _check_side(name: str, side: Any) -> None:
    if len(name) != 1 or not name.isalpha():
        raise UserError(
            f"A coordinate is named by one letter (derivatives such as u.xx spell it), not {name!r}."
        )
    try:
        a, b = (float(v) for v in side)
    except (TypeError, ValueError):
        raise UserError(f"The side {name} must be a pair (lower, upper), not {side!r}.") from None
    if not (np.isfinite(a) and np.isfinite(b) and a < b):
        raise UserError(f"The side {name} must go from a lower to a higher number, not {side!r}.")
