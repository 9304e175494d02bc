"""What an error is estimated on: the solution from one time to another."""

from __future__ import annotations

from typing import NamedTuple

from jax import Array

from ..losses.context import Context


class Part(NamedTuple):
    """A stretch of time, or all of the problem, and the solution on it and before it."""

    start: Array
    length: Array
    is_first: Array
    theta: Array
    context: Context
    theta_before: Array
    context_before: Context
