"""The contract between a network and what trains and evaluates it."""

from __future__ import annotations

from abc import abstractmethod

import equinox as eqx
from jax import Array

from .changes import median_change
from .layers import Series
from .located import Located


class Model(eqx.Module):
    """A network: fields ``(..., outputs)`` at points ``(..., d)``.

    A model of one's own derives from this and defines ``__call__``. Written with ``@``, ``+``, ``*``
    and the functions of :mod:`hyrespinn.derivatives` it takes Taylor series too, which is fast; any
    other function of arrays is differentiated by JAX.

    >>> import jax.numpy as jnp
    >>> class Line(Model):
    ...     slope: Array
    ...     def __call__(self, x):
    ...         return x @ self.slope
    >>> line = Line(jnp.ones((2, 1)))
    >>> line(jnp.ones((3, 2))).shape, line.penalty(), line.diagnostics()
    ((3, 1), None, {})
    """

    @abstractmethod
    def __call__(self, x: Series) -> Series:
        """The fields at points, with their derivatives where ``x`` is a Taylor series."""

    def linear_leaves(self) -> tuple[Array, ...]:
        """The arrays in which the output is affine, such as weight and bias of the last layer.

        They can be fitted by linear least squares. By default none is known.
        """
        return ()

    def penalty(self) -> Array | None:
        """A number, never negative, that is added to the loss; ``None`` if there is no such thing."""
        return None

    def diagnostics(self) -> dict[str, Array]:
        """Numbers worth a column of the training's history, such as the values of gates."""
        return {}

    def located(self) -> Located | None:  # type: ignore[explicit-any]
        """Where its kernels lie in the domain; ``None`` if it has none there."""
        return None

    def changes(self, start: Model) -> dict[str, Array]:
        """How far each group of parameters has gone from those of ``start``, a model of the same form.

        Medians over the group; by default all parameters are one.
        """
        return {"parameters": median_change(self, start)}


class Chain(Model):
    """A sequence of networks that can be trained one after the other."""

    @property
    @abstractmethod
    def parts(self) -> int:
        """The number of networks."""

    @abstractmethod
    def upto(self, k: int) -> Chain:
        """The chain of the first ``k`` networks, of which only the last is trained."""
