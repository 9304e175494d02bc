"""Sparse least squares whose normal matrix has a narrow band."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

DAMPINGS = (1e-15, 1e-13, 1e-11, 1e-9, 1e-7)
"""Relative to columns of length one; the first with which the factorisation succeeds is taken."""

DENSE = 0.3
"""The share of entries from which on a matrix is multiplied as a dense one."""


@dataclass(frozen=True)
class Least:
    """``min ‖A x − b‖`` with a banded Cholesky factor of ``AᵀA`` as preconditioner: the factor alone
    would lose what rounding makes of the normal equations, conjugate gradients bring it back."""

    matrix: scipy.sparse.csr_array  # with columns of length one
    lengths: np.ndarray
    factor: np.ndarray

    @classmethod
    def of(cls, matrix: scipy.sparse.csr_array) -> Least:
        """The factor of a matrix whose unknowns are numbered as they lie."""
        squares = np.asarray(matrix.multiply(matrix).sum(axis=0)).ravel()
        lengths = np.sqrt(np.where(squares > 0, squares, 1))
        scaled = (matrix @ scipy.sparse.diags_array(1 / lengths)).tocsr()
        normal = scipy.sparse.triu(_products(scaled), format="coo")
        width = int(np.max(normal.col - normal.row, initial=0))
        band = np.zeros((width + 1, normal.shape[0]), order="F")
        band[width + normal.row - normal.col, normal.col] = normal.data
        band[width][squares == 0] = 1
        for damping in DAMPINGS:
            trial = band.copy(order="F")
            trial[width] += damping
            try:
                factor = scipy.linalg.cholesky_banded(trial, overwrite_ab=True, check_finite=False)
            except np.linalg.LinAlgError:
                continue
            return cls(scaled, lengths, factor)
        raise np.linalg.LinAlgError("the normal matrix is not positive definite")

    def _inverse(self, vector: np.ndarray) -> np.ndarray:
        return scipy.linalg.cho_solve_banded((self.factor, False), vector, check_finite=False)

    def solve(self, right: np.ndarray, tolerance: float = 1e-3, most: int = 40) -> np.ndarray:
        """Preconditioned conjugate gradients for least squares."""
        x = np.zeros(self.matrix.shape[1])
        residual = right.copy()
        gradient = self.matrix.T @ residual
        better = self._inverse(gradient)
        direction, size = better, float(gradient @ better)
        enough = tolerance**2 * size
        for _ in range(most):
            image = self.matrix @ direction
            square = float(image @ image)
            if not square > 0 or not np.isfinite(square):
                break
            step = size / square
            x = x + step * direction
            residual = residual - step * image
            gradient = self.matrix.T @ residual
            better = self._inverse(gradient)
            size, before = float(gradient @ better), size
            if not size > enough:
                break
            direction = better + size / before * direction
        return x / self.lengths

    def weakest(self, values: scipy.sparse.csr_array, turns: int = 6) -> float:
        """The least ``‖A x‖ / ‖V x‖``, by inverse iteration."""
        generator = np.random.default_rng(0)
        scaled = (values @ scipy.sparse.diags_array(1 / self.lengths)).tocsr()
        x = generator.standard_normal(self.matrix.shape[1])
        for _ in range(turns):
            x = self._inverse(scaled.T @ (scaled @ x))
            x /= np.linalg.norm(x)
        size = float(np.linalg.norm(scaled @ x))
        return float(np.linalg.norm(self.matrix @ x)) / size if size > 0 else np.inf


def _products(matrix: scipy.sparse.csr_array) -> scipy.sparse.sparray:
    """``AᵀA``, by dense products where there is little that is zero."""
    if matrix.nnz < DENSE * math.prod(matrix.shape):
        return matrix.T @ matrix
    whole = matrix.toarray()
    return scipy.sparse.csr_array(whole.T @ whole)
