"""The relative ℓ2 errors that the paper prints in its Table 1, to stand beside ours."""

from __future__ import annotations

_MODELS = ("pinn", "respinn", "expertpinn", "stackedpinn", "piratenet", "hyrespinn")
_TABLE = {
    ("allen-cahn-dirichlet", "u"): (2.65e-1, 6.82e-2, 9.66e-3, 6.11e-2, 1.10e-2, 2.39e-3),
    ("allen-cahn-periodic", "u"): (5.26e-1, 2.70e-3, 3.86e-3, 5.87e-3, 2.62e-5, 1.19e-5),
    ("darcy-2d-dirichlet", "u"): (7.50e-4, 4.60e-4, 5.00e-4, 9.00e-4, 8.71e-5, 5.44e-5),
    ("darcy-2d-neumann", "u"): (2.00e-3, 1.40e-3, 1.20e-4, 4.10e-3, 1.70e-4, 6.00e-5),
    ("darcy-3d-dirichlet", "u"): (2.20e-3, 1.20e-2, 2.10e-2, 5.40e-2, 3.90e-2, 1.20e-3),
    ("darcy-3d-neumann", "u"): (8.50e-3, 6.10e-3, 1.10e-3, 3.90e-2, 1.30e-3, 1.10e-3),
    ("darcy-five-strip", "u"): (6.85e-5, 2.69e-5, 1.10e-4, 1.50e-4, 5.44e-5, 1.05e-5),
    ("kuramoto-sivashinsky", "u"): (1.42e-1, 1.29e-2, 1.57e-3, 1.86e-1, 2.00e-3, 8.12e-4),
    ("korteweg-de-vries", "u"): (8.17e-1, 5.72e-1, 6.86e-4, 2.98e-1, 5.61e-4, 4.09e-4),
    ("grey-scott", "u"): (7.54e-1, 9.87e-3, 4.79e-3, 1.21e-3, 3.61e-3, 6.43e-3),
    ("grey-scott", "v"): (9.56e-1, 1.10e-2, 8.98e-3, 6.90e-2, 9.39e-3, 1.31e-2),
}

PAPER_ROWS = tuple(_TABLE)
"""The rows of its Table 1, each a problem and a field."""


def published_error(problem: str, field: str, model: str) -> float | None:
    """The paper's figure for a field of a problem and a model, where it has one.

    >>> published_error("korteweg-de-vries", "u", "hyrespinn")
    0.000409
    """
    row = _TABLE.get((problem, field))
    return row[_MODELS.index(model)] if row and model in _MODELS else None
