"""CuPy code against NumPy code: on the stand-in, or on a GPU where there is one."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from symad.numeric import lower
from tests.gpu.cupy_standin import installed

WHERE = ["stand-in", pytest.param("device", marks=pytest.mark.gpu)]


@contextlib.contextmanager
def library(where="stand-in"):
    """The stand-in, or CuPy itself; skips where CuPy has no device."""
    if where == "stand-in":
        with installed() as cp:
            yield cp
    else:
        cp = pytest.importorskip("cupy")
        if not cp.is_available():
            pytest.skip("no CUDA device")
        yield cp


def module_of(graph, dtype="float64"):
    """The names of the module that is printed for a graph."""
    namespace = {}
    with installed():
        exec(compile(lower(graph, backend="cupy", dtype=dtype).source, "generated", "exec"), namespace)
    return namespace


def on_device(cp, values, dtype="float64"):
    return [cp.asarray(np.asarray(v, dtype)) for v in values]


def leaves(result):
    if isinstance(result, dict):
        result = tuple(result.values())
    return [a for part in result for a in leaves(part)] if isinstance(result, tuple) else [result]


def agree(graph, values, dtype="float64", rtol=1e-12, where="stand-in"):
    """Checks that CuPy code has the values of NumPy code in float64, in its own type; returns the kernel."""
    expected = leaves(lower(graph)(*values))
    with library(where) as cp:
        kernel = lower(graph, backend="cupy", dtype=dtype)
        got = leaves(kernel(*on_device(cp, values, dtype)))
        for e, g in zip(expected, got, strict=True):
            assert isinstance(g, cp.ndarray)
            assert g.shape == np.shape(e)
            assert g.dtype in (np.dtype(dtype), np.dtype(bool), np.dtype(np.int64))
            wanted = np.asarray(e, float)
            scale = max(1.0, np.abs(wanted).max(initial=0.0))
            found = g.get().astype(float)
            np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * scale)
    return kernel
