"""The errors a person can act on."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(ValueError):
    """A mistake that the person who called can mend; its message says how.

    The command line prints the message alone, without a traceback, and exits with code 2.
    """


class StoppedEarly(UserError):
    """A run that was stopped before there was anything of it to return.

    ``signal`` is what stopped it; ``None``: a time limit, so that the command line exits with code 5.
    """

    def __init__(self, message: str, signal: int | None):
        super().__init__(message)
        self.signal = signal


def unknown(what: str, name: str, known: Iterable[str]) -> UserError:
    """The error for a name that does not exist, with the nearest one that does.

    >>> str(unknown("kernel", "gausian", ["gaussian", "matern52"]))
    "Unknown kernel 'gausian'. Did you mean 'gaussian'? Known: gaussian, matern52."
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return UserError(f"Unknown {what} {name!r}.{hint} Known: {', '.join(names)}.")


EXIT_FAILED, EXIT_USER, EXIT_DIVERGED, EXIT_SIGNAL = 1, 2, 3, 128
"""Exit codes: an internal error, a user's mistake, a run that diverged, 128 + n by signal n."""
EXIT_UNRESOLVED = 4
"""The estimated error is above the tolerance, or there is no unique solution."""
EXIT_LIMIT = 5
"""A limit was reached, and the run can be resumed."""
