"""Functions at their poles and at infinities: nothing is raised, and all kernels agree with the graph."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

from symad.numeric import lower
from tests.gpu.cupy_agreement import leaves
from tests.numeric.agreement.agreement_cases import CASES, arity, scalar_graph

POINTS = (0.0, -0.0, 1.0, -1.0, 2.0, -2.0, -3.0, -0.5, 0.5, math.nan)
ENDS = (math.inf, -math.inf, 1e308, -1e308, 5e-324)
NAMES = [name for name in CASES if arity(name) == 1]
KNOWN = ("polygamma", "trigamma", "gamma", "loggamma", "digamma", "zeta", "log", "inverse", "atanh")


def rows(f: Any, points: tuple[float, ...]) -> Any:
    return np.array([[float(v) for v in leaves(f(p))] for p in points])


def check(name: str, backends: list[str]) -> None:
    graph = scalar_graph(name)
    with np.errstate(all="ignore"):
        wanted = rows(graph, POINTS)
    for backend in backends:
        kernel = lower(graph, style="plain") if backend == "plain" else lower(graph, backend)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # those of NumPy stay inside
            found, ends = rows(kernel, POINTS), rows(kernel, ENDS)
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-290, err_msg=backend)
        every = (*POINTS, *ENDS)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            arrays = [np.broadcast_to(v, len(every)) for v in leaves(kernel(np.array(every)))]
        np.testing.assert_allclose(
            np.array(arrays).T, np.concatenate([wanted, ends]), rtol=1e-9, atol=1e-290, err_msg=backend
        )


@pytest.mark.parametrize("name", KNOWN)
def test_some_functions(name: str) -> None:
    check(name, ["numpy", "plain", "c"])


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_all_functions(name: str) -> None:
    check(name, ["numpy", "plain", "c", "runs"])
