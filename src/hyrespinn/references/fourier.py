"""Periodic problems in Fourier space, in one and two dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy

from .etdrk4 import integrate_to


class Torus:
    """A periodic box with the same number of modes along each axis.

    States are spectra of real fields, ``(..., modes, modes/2 + 1)`` in two dimensions. Odd
    derivatives leave the highest mode out, whose sine the grid does not see.
    """

    def __init__(self, bounds: Sequence[tuple[float, float]], modes: int):
        self.bounds, self.modes, self.dimension = tuple(bounds), modes, len(bounds)
        self.shape = (modes,) * self.dimension
        self.axes = tuple(range(-self.dimension, 0))
        waves = []
        for axis, (a, b) in enumerate(self.bounds):
            last = axis == self.dimension - 1
            k = np.arange(modes // 2 + 1.0) if last else np.fft.fftfreq(modes, 1 / modes)
            k = 2 * np.pi / (b - a) * k
            waves.append(k.reshape([-1 if i == axis else 1 for i in range(self.dimension)]))
        self.waves = waves

    def derivative(self, axis: int = 0) -> np.ndarray:
        """The multiplier ``ik`` of a first derivative."""
        k = self.waves[axis].copy()
        k.ravel()[self.modes // 2] = 0
        return 1j * k

    @property
    def laplacian(self) -> np.ndarray:
        """The multiplier ``−|k|²``."""
        return -sum(k**2 for k in self.waves)  # type: ignore[return-value]

    def to_spectrum(self, fields: np.ndarray) -> np.ndarray:
        return scipy.fft.rfftn(fields, axes=self.axes)

    def to_fields(self, spectrum: np.ndarray) -> np.ndarray:
        return scipy.fft.irfftn(spectrum, s=self.shape, axes=self.axes)

    def project(self, function: Callable[[np.ndarray], np.ndarray], finer: int) -> np.ndarray:
        """The spectrum of ``function(points)``, from a grid ``finer`` times as fine.

        Sampled on the grid itself, a kink at the seam would spoil even the lowest modes, like
        1/modes² (D9 in docs/differences.md).
        """
        fine = Torus(self.bounds, finer * self.modes)
        return self.to_spectrum(self._resampled(function(fine.points()), self.modes))

    def _resampled(self, fields: np.ndarray, count: int) -> np.ndarray:
        """Band-limited fields on ``count`` points along each axis."""
        for axis in self.axes:
            fields = scipy.signal.resample(fields, count, axis=axis)
        return fields

    def points(self) -> np.ndarray:
        """The grid, with the coordinates on a last axis."""
        lines = [np.linspace(a, b, self.modes, endpoint=False) for a, b in self.bounds]
        return np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1)

    def on_grid(self, spectrum: np.ndarray, count: int) -> np.ndarray:
        """The fields on ``count`` points along each axis: the trigonometric interpolant."""
        every = -(-self.modes // count)
        fields = self.to_fields(spectrum)
        if every * count != self.modes:
            fields = self._resampled(fields, every * count)
        return fields[..., ::every] if self.dimension == 1 else fields[..., ::every, ::every]


def evolve(
    torus: Torus,
    linear: np.ndarray,
    nonlinear: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    times: np.ndarray,
    steps: int,
    count: int,
) -> np.ndarray:
    """The fields at these equispaced times on ``count`` points along each axis."""
    states = integrate_to(linear, nonlinear, start, times, steps)
    return np.stack([torus.on_grid(state, count) for state in states])
