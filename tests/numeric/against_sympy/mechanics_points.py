"""Points for systems of mechanics."""

import numpy as np
import sympy as sp


def point_of(system, seed=3):
    """Numbers with few digits for every input."""
    rng = np.random.default_rng(seed)
    symbols = [*system.q, *system.u, *system.others]
    return {
        s: sp.Rational(int(v), 64) for s, v in zip(symbols, rng.integers(20, 120, len(symbols)), strict=True)
    }


def numbers(point, symbols):
    return np.array([float(point[s]) for s in symbols])
