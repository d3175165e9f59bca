"""The linear autoregressive model AR(s).

    y_t = Σ_{τ<s} w_τ x_{t−τ} + b,    w_0 the newest lag,

predicts x_{t+1}; the loss is the mean of (y_t − x_{t+1})² over the T − s windows that exist,
t = s−1 .. T−2. Shapes: series x (T,), weights w (s,), bias b a number.

Source: Hamilton, "Time Series Analysis" (1994), section 3.4; seq2col is the sliding-window matrix
of the linear-algebra view, row t holding x_t, x_{t−1}, ..., x_{t−s+1}.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import sympy

from symad.core.arrays import Array, ArrayLike
from symad.core.given import earlier_names
from symad.errors import ShapeError
from symad.models.layers.options import refuse_complex

T, s = sympy.symbols("T s", integer=True, positive=True)
x = sympy.IndexedBase("x", shape=(T,))
w = sympy.IndexedBase("w", shape=(s,))
b = sympy.Symbol("b", real=True)


def prediction(t: sympy.Expr | int) -> sympy.Expr:
    """y_t as SymPy: Σ_τ w_τ x_{t−τ} + b."""
    tau = sympy.Symbol("tau", integer=True)
    return sympy.Sum(w[tau] * x[t - tau], (tau, 0, s - 1)) + b


def loss() -> sympy.Expr:
    """The mean squared error of one-step prediction, in the symbols x, w, b of this module."""
    t = sympy.Symbol("t", integer=True)
    return sympy.Sum((prediction(t) - x[t + 1]) ** 2, (t, s - 1, T - 2)) / (T - s)


def seq2col(series: Array, lags: int) -> np.ndarray:
    """The sliding windows of a series: row k holds x_{k+s−1}, ..., x_k, the newest first.

    Args:
        series: (T,) numbers.
        lags: s, the length of a window.

    Returns:
        (T − s + 1, s) array, a read-only view.

    Raises:
        ShapeError: the series is shorter than a window, or not one-dimensional.
    """
    refuse_complex("seq2col", series)
    values = np.asarray(series, dtype=np.float64)
    if values.ndim != 1 or not 1 <= lags <= len(values):
        raise ShapeError(
            f"seq2col: windows of {lags} need a series of at least {max(lags, 1)} numbers, but the series "
            f"has shape {values.shape}"
        )
    return np.lib.stride_tricks.sliding_window_view(values, lags)[:, ::-1]


@dataclass(frozen=True)
class LagFit:
    """A least-squares fit: weights (s,), newest lag first, the bias, and the rank found."""

    weights: np.ndarray
    bias: float
    rank: int
    directions: np.ndarray
    """Null directions (s + 1 − rank, s + 1) of (w, b): adding them changes no prediction."""

    @property
    def deficient(self) -> bool:
        """True if other parameters predict the data equally well; this is the smallest one."""
        return self.rank < len(self.weights) + 1

    def __str__(self) -> str:
        rank = f"rank {self.rank} of {len(self.weights) + 1}"
        free = f"; {rank}, so the smallest of many" if self.deficient else ""
        return f"AR({len(self.weights)}): w = {np.round(self.weights, 6).tolist()}, b = {self.bias:.6g}{free}"


def fit(series: ArrayLike, lags: int, scale: float = 1e-10) -> LagFit:
    """The least-squares fit, of minimum norm if the windows do not determine it.

    Singular values below ``scale`` times the largest count as zero.

    Raises:
        ShapeError: no window with a successor, or NaN or infinity in the series.
    """
    refuse_complex("fit", series)
    values = np.asarray(series, dtype=np.float64)
    if not np.isfinite(values).all():
        place = int(np.argmin(np.isfinite(values)))
        raise ShapeError(f"fit: the series contains {values[place]} at {place}; clean the data first")
    windows = seq2col(np.asarray(series, dtype=np.float64)[:-1], lags)
    targets = np.asarray(series, dtype=np.float64)[lags:]
    design = np.column_stack([windows, np.ones(len(windows))])
    left, singular, right = np.linalg.svd(design, full_matrices=True)
    rank = int((singular > scale * singular[0]).sum())
    solution = right[:rank].T @ ((left[:, :rank].T @ targets) / singular[:rank])
    return LagFit(solution[:-1], float(solution[-1]), rank, right[rank:])


__getattr__ = earlier_names(__name__, Fit="LagFit")
