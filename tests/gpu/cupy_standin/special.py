"""The stand-in's cupyx.scipy.special: the functions that CuPy has, on device arrays only."""

from __future__ import annotations

import numpy as np
import scipy.special

from tests.gpu.cupy_standin.array import host, ndarray, wrapped

NAMES = [
    "gamma", "digamma", "polygamma", "beta", "erfinv", "erfcinv", "zeta", "expn",
    "gammainc", "gammaincc", "log_ndtr", "erfcx", "j0", "j1", "y0", "y1", "i0", "i1",
]  # fmt: skip


def _function(name):
    def call(*args):
        if not all(isinstance(a, ndarray) for a in args if not isinstance(a, int)):
            raise TypeError(f"cupyx.scipy.special.{name} takes device arrays")
        with np.errstate(all="ignore"):
            return wrapped(getattr(scipy.special, name)(*host(args)), args, explicit=True)

    return call


globals().update({name: _function(name) for name in NAMES})
