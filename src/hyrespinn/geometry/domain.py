"""What every domain can do."""

from __future__ import annotations

from abc import ABC, abstractmethod

import jax.numpy as jnp
import numpy as np
from jax import Array

from ..errors import UserError
from .sampling import Sampler


class Domain(ABC):
    """A region with named coordinates; time, where there is one, is the first of them."""

    coordinates: tuple[str, ...]
    bounds: tuple[tuple[float, float], ...]
    has_time: bool

    @property
    def dimension(self) -> int:
        return len(self.coordinates)

    @property
    def space(self) -> tuple[str, ...]:
        """The coordinates without time."""
        return self.coordinates[1:] if self.has_time else self.coordinates

    @property
    @abstractmethod
    def pieces(self) -> tuple[str, ...]:
        """The names of the pieces of the boundary (in space)."""

    def expand(self, on: str | tuple[str, ...] | None) -> tuple[str, ...]:
        """The pieces meant by ``on``: a piece, an axis (both its faces), several, or all for ``None``."""
        if on is None:
            return self.pieces
        names = (on,) if isinstance(on, str) else tuple(on)
        result: list[str] = []
        for name in names:
            found = [piece for piece in self.pieces if name in (piece, piece.split(".")[0])]
            if not found:
                raise UserError(
                    f"There is no boundary piece {name!r}; this domain has {', '.join(self.pieces)} "
                    "(the letter of an axis alone stands for both its faces)."
                )
            result += found
        return tuple(dict.fromkeys(result))

    @abstractmethod
    def interior(self, key: Array, count: int, sampler: Sampler, dtype: jnp.dtype) -> Array:
        """``count`` points of the domain."""

    @abstractmethod
    def boundary(
        self, key: Array, count: int, pieces: tuple[str, ...], sampler: Sampler, dtype: jnp.dtype
    ) -> tuple[Array, Array]:
        """``count`` points on these pieces and the outward normals there, both ``(count, d)``."""

    @abstractmethod
    def initial(self, key: Array, count: int, sampler: Sampler, dtype: jnp.dtype) -> Array:
        """``count`` points at the initial time."""

    @abstractmethod
    def contains(self, points: np.ndarray) -> np.ndarray:
        """Whether each point lies in the closed domain, up to rounding."""

    @abstractmethod
    def spread(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """``count`` points with a large minimum distance."""

    @abstractmethod
    def cover(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """``count`` points that cover the domain evenly (a scrambled Sobol sequence)."""

    @abstractmethod
    def grid(self, counts: tuple[int, ...], open_axes: tuple[bool, ...]) -> list[np.ndarray]:
        """Equispaced axes with both ends, or without the right end on an open (periodic) axis."""
