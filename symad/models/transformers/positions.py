"""The position of a token: encodings that are added, rotations, and biases of the attention scores.

Sinusoidal, d even, i = 0..d/2−1:   PE[t, 2i] = sin(t / base^{2i/d}),   PE[t, 2i+1] = cos(t / base^{2i/d}).
A shift is a rotation of each pair, the same at every t: PE[t + Δ] = R(Δ) PE[t].
Cosine first, i = 1..d/2:           (cos(t / base^{2i/d}), sin(t / base^{2i/d})).
Rotary: queries and keys are rotated by R(t), so that scores depend on t − t' alone.
ALiBi: −m_h (t − t') is added to the scores, m_h = 2^{−8h/H}, h = 1..H.
Relative: a learned number for each head and each distance, clipped to −r..r.

Sources: Vaswani et al. (2017), section 3.5; Su et al., "RoFormer" (2021), equation 34; Press, Smith &
Lewis, "Train short, test long" (2022), section 3; Shaw, Uszkoreit & Vaswani (2018), as the scalar bias
of Raffel et al. (2020), section 2.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy

from symad.core.arrays import Array, Number
from symad.core.dims import Dim
from symad.errors import ShapeError
from symad.functions import concatenate, stack


def frequencies(d: int, base: sympy.Expr | float = 10000, first: int = 0) -> list[Number]:
    """1 / base^{2i/d} for i = first..first + d/2 − 1; exact if ``base`` is a SymPy number or symbol.

    Raises:
        ShapeError: d is odd.
    """
    if d % 2 or d < 2:
        raise ShapeError(f"positions are encoded in pairs of features, but d = {d} is not even")
    exponents = [sympy.Rational(2 * i, d) for i in range(first, first + d // 2)]
    if isinstance(base, sympy.Expr):
        return [base**-e for e in exponents]
    return [float(base) ** -float(e) for e in exponents]


def sinusoidal(t: Array | int, d: int, base: Dim = 10000) -> Array:
    """PE[t] for positions t (n,), as an array (n, d); an integer n stands for the positions 0, …, n − 1.

    For a SymPy t a list of d expressions.
    """
    return _interleaved(t, frequencies(d, base), sine_first=True)


def cosine_first(t: Array | int, d: int, base: int = 10000) -> Array:
    """The pairs (cos, sin) with i = 1..d/2, for positions t (n,) or a SymPy t."""
    return _interleaved(t, frequencies(d, base, first=1), sine_first=False)


def _interleaved(t: Array | int, rates: list[Number], sine_first: bool) -> Any:
    if isinstance(t, sympy.Expr):
        pairs = [(sympy.sin(t * r), sympy.cos(t * r)) for r in rates]
        return [v for pair in pairs for v in (pair if sine_first else pair[::-1])]
    t = np.arange(float(t)) if isinstance(t, int) else t
    angles = t[:, None] * np.array(rates)
    both = np.sin(angles), np.cos(angles)
    waves = stack(both if sine_first else both[::-1], axis=-1)
    return waves.reshape(t.shape[0], 2 * len(rates))


def shift_matrix(delta: sympy.Expr | float, d: int, base: sympy.Expr | float = 10000) -> sympy.Matrix:
    """R(Δ), the block-diagonal rotation with PE[t + Δ] = R(Δ) PE[t] for the sinusoidal encoding."""
    blocks = []
    for rate in frequencies(d, base):
        c, s = sympy.cos(delta * rate), sympy.sin(delta * rate)
        blocks.append(sympy.Matrix([[c, s], [-s, c]]))
    return sympy.diag(*blocks)


def rotate(x: Array, t: Array, base: float = 10000, interleaved: bool = False) -> Array:
    """Rotate the pairs (x_i, x_{i + d/2}) by the angles t / base^{2i/d}: rotary positions.

    The half-split pairs are those of GPT-NeoX and of Llama in the transformers library, the others those of
    the paper; the scores of one are those of the other for permuted features.

    Args:
        x: queries or keys (..., n, d), d even.
        t: positions (n,).
        base: the base of the frequencies.
        interleaved: true if the pairs are (x_{2i}, x_{2i+1}).
    """
    half = x.shape[-1] // 2
    angles = t[:, None] * np.array(frequencies(x.shape[-1], base))
    c, s = np.cos(angles), np.sin(angles)
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
        return stack([a * c - b * s, a * s + b * c], axis=-1).reshape(x.shape)
    a, b = x[..., :half], x[..., half:]
    return concatenate([a * c - b * s, a * s + b * c], axis=-1)


def alibi_slopes(heads: int) -> Array:
    """m_h = 2^{−8h/H}, h = 1..H (for H a power of two the numbers of the paper)."""
    return 2.0 ** (-8.0 * np.arange(1, heads + 1) / heads)


def alibi(heads: int, t: Array, s: Array) -> Array:
    """The bias −m_h |t − s| (H, n, m) for queries at t (n,) and keys at s (m,)."""
    return -alibi_slopes(heads)[:, None, None] * np.abs(t[:, None] - s[None, :])


def relative(table: Array, t: Array, s: Array) -> Array:
    """The bias table[h, clip(t − s, −r, r) + r] (H, n, m), of a table (H, 2r + 1)."""
    r = (table.shape[1] - 1) // 2
    return table[:, np.clip(t[:, None] - s[None, :], -r, r) + r]
