"""What the fields of specifications must be; messages name the class and the field."""

from __future__ import annotations

from ..derivatives import ACTIVATIONS
from ..errors import UserError, unknown


def at_least(owner: object, bound: float, **fields: float) -> None:
    """These fields of the owner must be at least ``bound``.

    >>> at_least("a text", 1, width=0)
    Traceback (most recent call last):
    hyrespinn.errors.UserError: str: width must be at least 1, not 0.
    """
    for name, value in fields.items():
        if not value >= bound:
            raise refused(owner, f"{name} must be at least {bound}, not {value}.")


def positive(owner: object, **fields: float) -> None:
    """These fields of the owner must be greater than zero."""
    for name, value in fields.items():
        if not value > 0:
            raise refused(owner, f"{name} must be positive, not {value}.")


def known_activation(name: str) -> None:
    """There must be an activation of this name."""
    if name not in ACTIVATIONS:
        raise unknown("activation", name, ACTIVATIONS)


def refused(owner: object, message: str) -> UserError:
    """The error with the name of the owner's class before the message."""
    return UserError(f"{type(owner).__name__}: {message}")
